#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make a page: in TEMPLATE, a line @TOPIC@ is replaced by what
# `XRUN help TOPIC --man` prints; scdoc makes the rest.
# usage: page.sh TEMPLATE XRUN SCDOC OUTPUT
set -eu

fill() {
	while IFS= read -r line; do
		case $line in
		@*@)
			topic=${line#@}
			"$2" help "${topic%@}" --man
			;;
		*)
			printf '%s\n' "$line"
			;;
		esac
	done <"$1"
}

fill "$1" "$2" >"$4.scd"
"$3" <"$4.scd" >"$4"
