# SPDX-License-Identifier: Apache-2.0
# bats.pl FILE... - prints the commands of bats tests that cannot fail, with file and line:
#
#   jq -e, which returns 0 for empty input (jq 1.6), and judges the last result only
#
#   "! COMMAND" whose status is ignored: bats tests by the shell's -e, which does not count
#   an inverted status. It is of use as the last command of a function, as a condition, and
#   before "||".
#
# It does not parse the shell's language. It joins continued lines, and removes comments, here
# documents and quoted text.
use strict;
use warnings;

# The file as commands: [number of the first line, text in which each quoted part is a "Q"].
sub commands
{
	my ($file) = @_;
	my ($text, $start, $end, $tabs) = ('', 0);
	my @inside; # what the text is in: quotes, and "(" of a command in double quotes
	my @commands;

	open my $in, '<', $file or die "$file: $!\n";
	while (my $line = <$in>) {
		chomp $line;
		if (defined $end) {
			$line =~ s/^\t+// if $tabs;
			undef $end if $line eq $end;
			next;
		}
		if (@inside && $line =~ /^\@test /) {
			print "$file:$start: bats.pl does not find the end of a quoted text\n";
			@inside = ();
			$text = '';
		}
		$start = $. if $text eq '';
		my $continued = 0;
		while ($line ne '') {
			my $quote = @inside ? $inside[-1] : '';

			if ($quote eq "'") {
				$line =~ s/^[^']+// or $line =~ s/^'// && pop @inside;
			} elsif ($quote eq "\$'") {
				$line =~ s/^(?:[^\\']|\\.|\\$)+// or $line =~ s/^'// && pop @inside;
			} elsif ($quote eq '"' && $line =~ s/^\$\(//) {
				push @inside, '(';
			} elsif ($quote eq '"') {
				$line =~ s/^(?:[^\\"\$]|\\.|\\$|\$(?!\())+// or
					$line =~ s/^"// && pop @inside;
			} elsif ($line =~ s/^(\$?'|")//) {
				push @inside, $1;
				$text .= 'Q' if $quote eq '';
			} elsif ($line =~ s/^\\$//) {
				$continued = 1;
			} elsif ($line =~ s/^\\.//) {
				$text .= 'Q' if $quote eq '';
			} elsif ($quote eq '(') {
				pop @inside if $line =~ /^\)/;
				push @inside, '(' if $line =~ /^\(/;
				$line =~ s/^.//;
			} elsif ($text !~ /\(\([^)]*$/ && $text !~ /<$/ &&
				$line =~ s/^<<(-?)(["']?)(\w+)\2//) {
				($tabs, $end) = ($1, $3);
			} elsif ($text =~ /(?:^|\s)$/ && $line =~ s/^#.*//) {
			} else {
				$line =~ s/^(.)//;
				$text .= $1;
			}
		}
		my $more = @inside || $continued || $text =~ /(?:\||&&)\s*$/;
		if ($more) {
			$text .= ' ';
			next;
		}
		push @commands, [$start, $text] if $text =~ /\S/;
		$text = '';
	}
	close $in;
	return @commands;
}

# True if the text has a "!" whose status is ignored; @next is the text that follows.
sub ignored
{
	my ($text, $next) = @_;

	$text =~ s/\[\[.*?\]\]/T/g;
	my @lists = grep { /\S/ } split /;|\b(?:do|then|else)\b/, $text;
	for my $i (0 .. $#lists) {
		my $list = $lists[$i];

		next if $list =~ /^\s*(?:if|elif|while|until)\s/;
		next unless $list =~ /(?:^\s*|[{)&|]\s*)!\s(.*)/;
		next if $1 =~ /\|\|/;
		my $follows = $i < $#lists ? $lists[$i + 1] : $next;
		return 1 unless $follows =~ /^}/ || $follows =~ /^\s*}/ && $text =~ /^\w+\(\)/;
	}
	return 0;
}

for my $file (@ARGV) {
	my @commands = commands($file);

	for my $i (0 .. $#commands) {
		my ($line, $text) = @{$commands[$i]};
		my $next = $i < $#commands ? $commands[$i + 1][1] : '';

		print "$file:$line: the status of \"!\" is ignored here: write " .
			"assert_fails COMMAND, or refute_has TEXT PATTERN\n"
			if ignored($text, $next);
	}
	# In quoted text, too: it is another shell's.
	open my $in, '<', $file or die "$file: $!\n";
	while (<$in>) {
		print "$file:$.: jq -e is true for empty input: write json_holds FILTER\n"
			if !/^\s*#/ &&
			/\bjq\s(?:[^|;]*\s)?(?:-[a-zA-Z]*e[a-zA-Z]*|--exit-status)(?:\s|$)/;
	}
	close $in;
}
