#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# options.sh - no option bears the name of a variable that xrun tells its
# ranks: XRUN_RANK as a setting would be read back by the next xrun inside.
. "$(dirname "$0")/common.bash"
. "$here/options.bash"

# What ranks are told, by promise; the code may tell more, never less.
promised='JOB ATTEMPT RANK SIZE LOCAL_RANK LOCAL_SIZE NODE NODES HOST PART
PART_RANK PART_SIZE DEVICE STORE CONTROL_FD SEGMENT_FD BELL_FD STDIO'

# told - the names in the tables of src/place, without XRUN_.
told()
{
	tracked 'src/place/*.c' 'src/place/*.h' 'src/place/*.def' |
		xargs -r grep -ohE '"XRUN_[A-Z_]+"' | tr -d '"' | sed 's/^XRUN_//' |
		sort -u
}

told=$(told)
for name in $promised; do
	grep -qx "$name" <<<"$told" ||
		problem "src/place: no table names XRUN_$name, which ranks are promised"
	told+=$'\n'$name
done
names=$(option_names; option_names_later)
for name in $names; do
	variable=$(option_variable "$name")
	if grep -qxF "${variable#XRUN_}" <<<"$told"; then
		# --job names the job, whose id is told as XRUN_JOB.
		option_names_without_variable | grep -qxF "$name" ||
			problem "--$name: $variable is what xrun tells its ranks"
	fi
done
problems_from < <(sort <<<"$names" | uniq -d | sed 's/.*/--&: named twice/')
finish
