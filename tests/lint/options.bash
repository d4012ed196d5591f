# SPDX-License-Identifier: Apache-2.0
# options.bash - the option table, read by lints; sourced after common.bash.
# shellcheck shell=bash

# The file with the rows of run_options[] and run_options_later[].
table=launcher/job/options_table.c

[ -f "$table" ] || {
	echo "$table is not there: what the lint reads"
	exit 1
}

# option_names - of the rows.
option_names()
{
	sed -nE 's/.*\.name = "([a-z0-9-]+)".*/\1/p' "$table"
}

# option_names_later - of what is decided and not built.
option_names_later()
{
	sed -n '/run_options_later\[\]/,/^};/s/.*{ "\([a-z0-9-]*\)".*/\1/p' "$table"
}

# option_variable NAME - "XRUN_STOP_SIGNAL" of "stop-signal".
option_variable()
{
	local name=${1^^}

	printf 'XRUN_%s\n' "${name//-/_}"
}

# option_names_without_variable - of the rows that say so.
option_names_without_variable()
{
	awk -F'"' '/\.name = "/ { name = $2 } /\.no_variable = true/ { print name }' \
		"$table"
}
