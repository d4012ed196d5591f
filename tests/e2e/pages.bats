#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# pages.bats - the examples of the manual's pages about libxrun do what the pages
# say: each is cut out of its page, compiled, and run as it is run there.

bats_require_minimum_version 1.5.0

load helper

setup()
{
	private_place
	need cc
	unsanitized 'a program that is not would have to load their runtime'
	[ -e "$BUILD/worker/libxrun.so" ] || skip 'libxrun.so is not built'
}

# blocks PAGE N - the N-th block of code below EXAMPLE.
blocks()
{
	awk -v want="$2" '
		/^# / { there = $2 == "EXAMPLE" }
		there && /^```/ { n++; next }
		there && n == 2 * want - 1' "$root/man/$1.3.scd"
}

# example PAGE - the program of its first block, run by the line behind "$ " of the
# second, prints the other lines of that.
example()
{
	local command

	blocks "$1" 1 >"$1.c"
	[ -s "$1.c" ]
	cc -std=c11 -Wall -Wextra -Wno-unused-parameter -Werror -I"$root/src/include" \
		-o "$1" "$1.c" -pthread -L"$BUILD/worker" -lxrun \
		-Wl,-rpath,"$BUILD/worker"
	command=$(blocks "$1" 2 | sed -n '1s/^\$ //p')
	[ -n "$command" ]
	xrun()
	{
		"$XRUN" "$@"
	}
	export -f xrun
	try timeout 60 bash -o pipefail -c "$command"
	# shellcheck disable=SC2154 # of try
	assert_eq "$status: $stderr" '0: '
	assert_eq "$output" "$(blocks "$1" 2 | sed 1d)"
}

@test "every page of section 3 with an example is run below" {
	local page

	for page in "$root"/man/*.3.scd; do
		grep -q '^# EXAMPLE' "$page" || continue
		page=$(basename "$page" .3.scd)
		grep -qx "	example $page" "$root/tests/e2e/pages.bats" ||
			{ echo "$page is not" >&2 && return 1; }
	done
}

@test "xr_call(3): bytes are sent, and come back" {
	example xr_call
}

@test "xr_future(3): what follows a future" {
	example xr_future
}

@test "xr_pool(3): squares by all processors" {
	example xr_pool
}

@test "xr_queue(3): a parent adds up what its children put" {
	example xr_queue
}

@test "xr_rpc(3): a function of another rank adds" {
	example xr_rpc
}

@test "xr_prof(3): a call leaves its events" {
	example xr_prof
}

@test "xr_world(3): ranks have names" {
	example xr_world
}

@test "xr_coll(3): all ranks sum what they have" {
	example xr_coll
}

@test "xr_group(3): a service counts where it is" {
	example xr_group
}

@test "xr_rref(3): a reference is passed on" {
	example xr_rref
}

@test "xr_value(3): a dict is written and read" {
	example xr_value
}

@test "xr_job(3): ranks tell how far they are" {
	example xr_job
}

@test "xr_store(3): a key that one rank sets, all get" {
	example xr_store
}

@test "xr_transport(3): a carrier over datagrams takes a call" {
	example xr_transport
}

@test "xr_proc(3): a process reports what it failed of" {
	example xr_proc
}

@test "xr_event(3): a thread sets what another waits for" {
	example xr_event
}

@test "xr_spawn(3): ranks of a program meet" {
	example xr_spawn
}

@test "every example runs alone or prints the command to type" {
	local program

	for program in "$BUILD"/examples/*; do
		[ -f "$program" ] && [ -x "$program" ] || continue
		try timeout 60 env -u RANK -u XRUN_RANK "$program"
		[ "$status" -ne 0 ] || continue
		assert_eq "$status" 2
		assert_has "$stderr" "$program needs several ranks; run: xrun -n "
	done
}
