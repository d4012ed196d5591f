#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# man.sh [BUILD] - the manual pages are good roff, each has its sources in
# meson.build, they name no page of ours that there is none of, xrun-environ has
# every variable that is read, and section 3 every function of libxrun.
. "$(dirname "$0")/common.bash"

build=${1:-build}
environ=man/xrun-environ.7.scd.in

# pages - "xrun(1)" of man/xrun.1.scd.in, one a line.
pages()
{
	tracked 'man/*.scd' 'man/*.scd.in' |
		sed -E 's,man/(.*)\.([0-9])\.scd(\.in)?$,\1(\2),'
}

all=$(pages)
for page in $all; do
	name=${page%(*}.${page//[!0-9]/}
	[ "${page%(*}" = "${name%.*}" ] || name=${page%(*}.$(grep -o '([0-9])' <<<"$page" | tr -d '()')
	grep -q "'$name'" man/meson.build || problem "man/meson.build: $name is missing"
done

# Our own pages begin with xr.
while IFS=: read -r file page; do
	grep -qxF "$page" <<<"$all" || problem "$file: there is no $page"
done < <(tracked 'man/*.scd' 'man/*.scd.in' 'README.md' |
	xargs grep -oE '\b(xr[a-z_-]*)\*?\([1-8]\)' | tr -d '*' | sort -u)

# What libxrun shows is in a page of section 3.
while read -r name; do
	problem "no page of section 3 has $name()"
done < <(comm -23 <(sed -n 's/^\(xr_[a-z0-9_]*\)@@.*/\1/p' tests/lint/abi.list | sort -u) \
	<(grep -ohE '\bxr_[a-z0-9_]*\b' man/*.3.scd | sort -u))

# What the tables say need not stand in the prose.
while IFS=: read -r file name; do
	grep -q "\"$name\"" src/place/profile.c || grep -qF "*$name*" "$environ" ||
		problem "$file: $name is not in $environ"
done < <(tracked 'src/*.c' 'launcher/*.c' 'worker/*.c' 'plugins/*.c' | xargs -r \
	grep -oE '(getenv\(|environ_get\([^"]*|[^a-z_]env\([^"]*)"[A-Z][A-Z0-9_]*"' |
	sed -E 's/:[^"]*"(.*)"/:\1/' | sort -u)

command -v mandoc >/dev/null || cannot "mandoc is not installed: the pages' roff was not checked"
for page in "$build"/man/*.[0-9]; do
	[ -e "$page" ] || cannot "man.sh: no pages in $build/man; build first"
	problems_from < <(mandoc -T lint -W error "$page" | sed "s,^mandoc: ,,")
	[ -s "$page" ] || problem "$page is empty"
done
finish
