# SPDX-License-Identifier: Apache-2.0
# common.bash - what every lint starts with; sourced, never run.
#
# A lint prints problems and nothing else, and ends 1 if it printed any. One
# that cannot be run here prints a line that says why and ends 77.
# shellcheck shell=bash

set -u
export LC_ALL=C.UTF-8
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root" || exit 1
problems=0

# problem TEXT... - one line to a person; the lint has failed.
problem()
{
	printf '%s\n' "$*"
	problems=$((problems + 1))
}

# problems_from - the same for every line of stdin.
problems_from()
{
	local line

	while IFS= read -r line; do
		problem "$line"
	done
}

# finish - ends the lint with the status that its problems earned.
finish()
{
	exit $((problems > 0))
}

# cannot WHY - ends a lint for which a tool is missing.
cannot()
{
	printf '%s\n' "$*"
	exit 77
}

# tracked [PATTERN...] - the files of the project, one a line, from git where
# there is a checkout, else from the disk (an unpacked archive).
tracked()
{
	if command -v git >/dev/null &&
		git -c safe.directory="$root" rev-parse >/dev/null 2>&1; then
		git -c safe.directory="$root" ls-files -- "$@" | while IFS= read -r file; do
			[ -f "$file" ] && printf '%s\n' "$file"
		done
		return 0
	fi
	find . -name .git -prune -o -path './build*' -prune -o -type f -print |
		sed 's,^\./,,' | sort | matching "$@"
}

# matching [PATTERN...] - the lines of stdin that one of the patterns fits.
matching()
{
	local file pattern

	while IFS= read -r file; do
		[ $# -eq 0 ] && printf '%s\n' "$file"
		for pattern in "$@"; do
			# shellcheck disable=SC2254 # the pattern is to match
			case $file in $pattern) printf '%s\n' "$file" && break ;; esac
		done
	done
}
