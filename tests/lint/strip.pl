#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# strip.pl - C files without comments, strings and characters, each line as
# FILE:LINE:TEXT, so that a lint looks at code and not at prose.
use strict;
use warnings;

sub blank {
	my ($token) = @_;
	my $lines = $token =~ tr/\n//;

	return $token if $token =~ m{^//};
	return '""' . "\n" x $lines if $token =~ /^"/;
	return "' '" if $token =~ /^'/;
	return ' ' . "\n" x $lines;
}

for my $file (@ARGV) {
	open(my $in, '<', $file) or die "strip.pl: $file: $!\n";
	local $/;
	my $text = <$in>;
	my $line = 0;

	# An include line keeps its "name": it is no string.
	$text =~ s{(^[ \t]*\#[ \t]*include[^\n]*)
		|(//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')}
		{defined $1 ? $1 : blank($2)}gsemx;
	printf "%s:%d:%s\n", $file, ++$line, $_ for split(/\n/, $text);
}
