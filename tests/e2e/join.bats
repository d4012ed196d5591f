#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# join.bats - ranks that come together: in their segment, or, where one of them has
# none, in the store; and what they hear where they cannot.

load helper

setup()
{
	private_place
	JOIN=$BUILD/tests/prog/join
}

# alone RANK CASE - of three ranks one has lost the segment, as a wrapper closed it.
alone()
{
	local one=(env -u XRUN_SEGMENT_FD "$JOIN" "$2") others=("$JOIN" "$2")

	case $1 in
	0) job -n 1 "${one[@]}" : -n 2 "${others[@]}" ;;
	1) job -n 1 "${others[@]}" : -n 1 "${one[@]}" : -n 1 "${others[@]}" ;;
	2) job -n 2 "${others[@]}" : -n 1 "${one[@]}" ;;
	esac
	assert_eq "$status: $stderr" '0: '
}

# all CASE PATTERN - all three of them say that, by the segment and by the store.
all()
{
	job -n 3 "$JOIN" "$1"
	assert_eq "$status: $stderr" '0: '
	assert_eq "$(grep -cE "$2" <<<"$output")" "$3"
	alone 1 "$1"
	assert_eq "$(grep -cE "$2" <<<"$output")" "$3"
}

@test "ranks of one machine come together in their segment" {
	job -n 5 "$JOIN"
	assert_eq "$status: $stderr" '0: '
	assert_eq "$(grep -c 'by the segment, not written down$' <<<"$output")" 5
	job -n 1 "$JOIN"
	assert_eq "$output" 'rank 0: by the segment, not written down'
}

@test "a rank that has no segment is met in the store, whichever it is" {
	local r

	for r in 0 1 2; do
		alone $r well
		assert_eq "$(grep -c 'by the store, written down$' <<<"$output")" 3
	done
}

@test "they come together once in the segment, and then in the store" {
	job -n 3 "$JOIN" again
	assert_eq "$status: $stderr" '0: '
	assert_eq "$(grep -c ': again$' <<<"$output")" 3
}

@test "two of one name are named to all" {
	all same-name 'ranks 0 and 1 both have the name rank0$' 3
}

@test "one that cannot begin is named to all" {
	all broken 'nowhere0' 3
	assert_eq "$(grep -c 'rank 1 could not join: XR_E_NOTFOUND: rank1: tcp: ' <<<"$output")" 2
}

@test "who does not come in time is named to all" {
	all absent '(these ranks of 3 did not come in time: 2|no word from rank 0)$' 2
}
