#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs.sh - every option has its line of help and its paragraph for the manual,
# and is used by at least one end-to-end test.
. "$(dirname "$0")/common.bash"
. "$here/options.bash"

# incomplete - rows without a help or a text, or with one that breaks the form.
incomplete()
{
	awk '
	function judge() {
		if (name == "")
			return
		if (help == "")
			print "--" name ": no help line"
		else if (help ~ /\.$/)
			print "--" name ": the help line ends in a full stop"
		if (text == "")
			print "--" name ": no text for the manual"
		else if (text !~ /\.$/)
			print "--" name ": the text ends without a full stop"
		name = help = text = ""
	}
	# A string may go on in the next lines.
	function string(line) {
		sub(/^[^"]*"/, "", line)
		sub(/"[^"]*$/, "", line)
		return line
	}
	/\.name = "/ { judge(); name = $0; sub(/.*\.name = "/, "", name); sub(/".*/, "", name) }
	/\.help = "/ { help = string($0); field = "help"; next }
	/\.text = "/ { text = string($0); field = "text"; next }
	/^[ \t]*"/ && field == "text" { text = text string($0); next }
	{ field = "" }
	/{ 0 }/ { judge() }
	END { judge() }' "$table"
}

# tests - the lines of all end-to-end tests, without comments.
tests()
{
	tracked 'tests/e2e/*.bats' 'tests/real/run' |
		xargs -r sed '/^[[:space:]]*#/d'
}

problems_from < <(incomplete)
lines=$(tests)
for name in $(option_names); do
	variable=$(option_variable "$name")
	grep -qE -e "(^|[^a-z-])--(no-)?$name([^a-z-]|$)|(^|[^A-Z_])$variable=" \
		<<<"$lines" || problem "--$name: no end-to-end test uses it"
done
finish
