#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# names.sh - public names, typedefs, banned functions, comments, atomics and
# the licence line: what xrun-hacking(7) asks of C that no compiler checks.
. "$(dirname "$0")/common.bash"

banned='alloca|strtok|strtok_r|atoi|atol|atoll|atof|sprintf|vsprintf|strcpy'
banned+='|strcat|stpcpy|signal|system|popen|gets|strdupa|strndupa'

mapfile -t sources < <(tracked '*.c' '*.h')
mapfile -t public < <(tracked 'src/include/xrun/*.h')
[ ${#sources[@]} -gt 0 ] || finish

code=$(mktemp) || exit 1
trap 'rm -f "$code"' EXIT
perl "$here/strip.pl" "${sources[@]}" >"$code"

# say PATTERN WHAT - every line of code that fits the pattern is a problem.
# The pattern meets FILE:LINE:TEXT.
say()
{
	local pattern=$1 what=$2 file line text

	while IFS=: read -r file line text; do
		text=${text#"${text%%[![:space:]]*}"}
		problem "$file:$line: $what: $text"
	done < <(grep -E "$pattern" "$code")
}

# public_names - the headers that users include hold xr_ and XR_ names only.
# Guards are XRUN_NAME_H; enumerators stand one a line; a helper macro that its
# own file takes back with #undef never reaches a user.
public_names()
{
	[ ${#public[@]} -gt 0 ] || return 0
	perl "$here/strip.pl" "${public[@]}" | awk -F: '
	{ text = substr($0, length($1) + length($2) + 3); at = $1 ":" $2 ": " }
	text ~ /^[ \t]*#[ \t]*define[ \t]/ {
		name = text
		sub(/^[ \t]*#[ \t]*define[ \t]+/, "", name)
		sub(/[^A-Za-z0-9_].*/, "", name)
		if (name !~ /^(XR_|xr_)/ && name !~ /^XRUN_[A-Z0-9_]*_H$/)
			macro[$1 " " name] = at "macro " name " has no XR_ prefix"
	}
	text ~ /^[ \t]*#[ \t]*undef[ \t]/ {
		sub(/^[ \t]*#[ \t]*undef[ \t]+/, "", text)
		delete macro[$1 " " text]
	}
	match(text, /^(struct|enum|union)[ \t]+[A-Za-z0-9_]+/) {
		name = substr(text, RSTART, RLENGTH)
		sub(/^[a-z]+[ \t]+/, "", name)
		if (name !~ /^xr_/)
			print at "tag " name " has no xr_ prefix"
	}
	text ~ /^[a-z]/ && match(text, /[A-Za-z_][A-Za-z0-9_]*\(/) {
		name = substr(text, RSTART, RLENGTH - 1)
		if (name !~ /^(xr_|XR_|__attribute__|_Static_assert)/ &&
			text !~ /^(typedef|return)/)
			print at "function " name " has no xr_ prefix"
	}
	text ~ /^enum/ { inside = 1 }
	inside && match(text, /^\t[A-Z][A-Z0-9_]*[ \t]*[=,]/) {
		name = substr(text, RSTART + 1, RLENGTH - 1)
		sub(/[^A-Z0-9_].*/, "", name)
		if (name !~ /^XR_/)
			print at "constant " name " has no XR_ prefix"
	}
	text ~ /}/ { inside = 0 }
	END { for (name in macro) print macro[name] }'
}

licence()
{
	local file first

	for file in "${sources[@]}"; do
		IFS= read -r first <"$file"
		[ "$first" = '/* SPDX-License-Identifier: Apache-2.0 */' ] ||
			problem "$file:1: the first line is not the SPDX line"
	done
	while IFS= read -r file; do
		head -2 "$file" | grep -q '^# SPDX-License-Identifier: Apache-2.0$' ||
			problem "$file:1: no SPDX line in the first two lines"
	done < <(tracked '*.sh' '*.bash' '*.bats' '*.pl' tests/run .ci/run)
}

say '//' 'a // comment'
say '[^A-Za-z0-9_]('"$banned"')[[:space:]]*\(' 'banned function'
say ':[[:space:]]*typedef[[:space:]]+(struct|enum|union)([^(]|$)*$' \
	'a typedef of a struct or enum'
say ':[[:space:]]*typedef[^(]*\([[:space:]]*\*' 'a typedef of a pointer'
say '^((src/(base|proc|event|place|store|include)|launcher|plugins|examples)/|src/wire/[^/:]*:).*([^A-Za-z0-9_]_Atomic[^A-Za-z0-9_]|<stdatomic\.h>)' \
	'_Atomic belongs in worker/, src/segment/ and src/wire/value/'
problems_from < <(public_names)
licence
finish
