#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# rpcgroup.bats - worlds, and groups of names, by the acceptance checks.

load helper

setup()
{
	private_place
	GROUP=$BUILD/tests/prog/group
}

# runs CASE RANKS - by shared memory, and by TCP.
runs()
{
	both_ways "$GROUP" "$1" "$2"
}

# says PATTERN COUNT - so many lines of each do.
says()
{
	[ "$(grep -cE "$1" <<<"$by_shm")" -eq "$2" ]
	[ "$(grep -cE "$1" <<<"$output")" -eq "$2" ]
}

@test "AC-W1 ranks and names of a world" {
	runs world 3
}

@test "AC-W2 a process is in one world" {
	runs second-world 3
	says 'this process is in a world already' 3
}

@test "AC-W3 a world is closed once, and another can be made" {
	runs closed-twice 3
	says 'group all is of a world that was closed' 3
}

# bats test_tags=sanitize
@test "AC-W4 a late member is waited for, and one that never comes is named" {
	runs late 3
	says 'rank [01]: group absent: these did not come in time: 2$' 2
}

@test "AC-W5 who is no member is refused, and sends nothing" {
	runs outsider 3
	says 'rank 2: 2 is no member of group some$' 1
}

@test "AC-W6 a process has one group of a name" {
	runs refused 3
	says 'rank (.): \1 has a group all already' 3
}

@test "AC-W9 a world without collective groups" {
	runs calls-only 3
}

# bats test_tags=sanitize
@test "AC-W10 names come back sorted" {
	runs sorted 3
	runs closed-twice 3
}

@test "AC-G1 a member is called in three ways" {
	runs call 3
}

@test "AC-G2 who is no member is not called, and nothing is sent" {
	runs call-outsider 3
	says 'rank [01]: 2 is no member of group some, and is not called by it' 2
}

@test "AC-G3 a key is paired once, of all members" {
	runs pair-twice 3
	says "key 'k' of group all is held by 1" 3
}

@test "AC-G4 the holder gives a key up, and nobody else" {
	runs unpair 3
	says "rank ([02]): \\1 does not hold key 'k' of group all" 2
}

@test "AC-G5 a key that nobody has is named, and the group" {
	runs unknown 3
	says "nobody in group all has paired 'nothing'" 3
}

@test "AC-G6 others read what is paired" {
	runs paired 3
}

@test "AC-G7 a service is called in three ways, and counts where it is" {
	runs service 3
}

# bats test_tags=sanitize
@test "a service answers with what a future will end with" {
	runs later 3
}

@test "AC-G8 one key is that of a value, and of a service" {
	runs both 3
}

# bats test_tags=sanitize
@test "AC-G9 who is no member calls a service, and registers none" {
	runs outside-caller 3
	says 'rank 2: 2 is no member of group two, and cannot register' 1
}

# bats test_tags=sanitize
@test "AC-G10 a service that is not where it was is nowhere, or found again" {
	runs stale 3
	says "nobody in group all has registered 'moves'" 3
}

@test "AC-G11 ten thousand barriers with delays" {
	runs many 3
}

@test "AC-G12 two threads of one member make two rounds" {
	runs two-threads 2
}

@test "AC-G13 who is missing at a barrier is named" {
	runs missing 3
	says 'rank [01]: a barrier of group all: these did not come in time: 2$' 2
}

@test "barriers of two groups do not meet" {
	runs two-groups 3
}

@test "groups that are made and freed leave nothing behind" {
	unsanitized "what memory is in use"
	runs made-often 3
}

@test "AC-G14 a group of one name, a hundred times" {
	runs again 3
}

# On one CPU the time of either barrier is the work of its ranks, also beside other load:
# 4 times that of pipes, measured, and the limit is twice as much.
@test "AC-G15 a barrier of eight takes less than 8 times one of pipes" {
	unsanitized "what takes how long"
	need taskset
	try taskset -c "$(a_cpu)" "$XRUN" -n 8 "$GROUP" how-long
	[ "$status" -eq 0 ]
	[[ $output =~ median\ ([0-9]+)\ us,\ by\ pipes\ ([0-9]+)\ us ]]
	[ "${BASH_REMATCH[1]}" -lt $((8 * BASH_REMATCH[2])) ] || {
		echo "$output"
		false
	}
}

# a_cpu - one that this process may use.
a_cpu()
{
	sed -n 's/^Cpus_allowed_list:\t\([0-9]*\).*/\1/p' /proc/$$/status
}

@test "AC-G16 how a service failed arrives as it was" {
	runs fails 3
	says "^.[012]. rank .: 'fails' of group all: .*that is too much" 3
}

@test "AC-G17 of many threads that pair one key one does" {
	runs one-wins 3
}

# bats test_tags=sanitize
@test "AC-G18 the keys of a member that died are free" {
	job --on-failure continue -n 3 "$GROUP" dies
	by_shm=$output
	job --on-failure continue -n 3 "$GROUP" dies tcp
	says 'rank [02]: the keys of 1 are free' 2
}

# bats test_tags=sanitize
@test "AC-G19 a group is sent to another worker, and works there" {
	runs by-value 3
}

@test "AC-G20 a call of a service has a limit of its own" {
	runs timeout 3
	says "'waits' of group all: .*1 \(1\) within 200 ms" 3
}

# bats test_tags=sanitize
@test "after fork the group is the parent's" {
	runs fork 2
}
