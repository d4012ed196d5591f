#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# coll.bats - what ranks do together, by the acceptance checks.
#
# Takes long, so it begins early.

load helper

setup()
{
	private_place
	COLL=$BUILD/tests/prog/coll
}

teardown()
{
	no_machines
	nothing_left
}

# runs CASE RANKS - by shared memory, and by TCP.
runs()
{
	both_ways "$COLL" "$1" "$2"
}

# both PATTERN COUNT - so many lines of each say that.
both()
{
	[ "$(grep -cE "$1" <<<"$by_shm")" -eq "$2" ]
	[ "$(grep -cE "$1" <<<"$output")" -eq "$2" ]
}

@test "AC-C1 a message of one rank, and the receiver knows whose" {
	runs send 3
}

@test "AC-C2 the same without waiting" {
	runs isend 3
}

# bats test_tags=sanitize
@test "AC-C3 two messages are received in the other order, by their tags" {
	runs tags 2
}

@test "a message of another length is refused to both" {
	runs other-length 2
	both 'rank 0 sends 4 i32, and rank 1 awaits 5 i32' 2
}

@test "a message that does not come is late, and nothing else is" {
	runs nothing 2
	both 'no message with tag 3 of rank . came in time' 2
}

# bats test_tags=sanitize
@test "AC-C4 what each rank broadcasts all have" {
	runs bcast 3
	# Many more than processors have another way.
	job -n $((4 * $(nproc))) "$COLL" bcast
	assert_eq "$status: $stderr" '0: '
}

@test "AC-C5 sums of ranks, and the same bits on 2 to 9 ranks" {
	runs sum 3
	local sizes='2 3 4 5 6 7 8 9'

	[ -z "${SANITIZED:-}" ] || sizes='2 5'
	for n in $sizes; do
		job -n "$n" "$COLL" floats
		[ "$status" -eq 0 ]
		[ "$(grep -c "of $n: every float" <<<"$output")" -eq "$n" ]
	done
}

@test "AC-C6 each operation of each type, and what there is not is refused" {
	runs types 3
	both 'every type' 3
}

# reduce_all() of tests/prog/coll.c looks at what the others have.
# bats test_tags=sanitize
@test "AC-C7 a reduction for one rank leaves the others' as it was" {
	runs types 2
}

@test "AC-C8 what all have gathered is in the order of ranks" {
	runs allgather 3
}

@test "AC-C9 a list is the gatherer's, and nobody else's" {
	runs gather 3
	both 'gather: there is no list' 1
	both 'gather: rank . has a list' 2
}

@test "AC-C10 and the scatterer's" {
	runs scatter 3
	runs gather 3
	both 'scatter: there is no list' 1
	both 'scatter: rank . has a list' 2
}

# bats test_tags=sanitize
@test "what is scattered is the same where no memory of others can be read" {
	try "$PROG/deny" process_vm_readv=EPERM -- "$XRUN" --report report -n 3 \
		"$COLL" scatter
	assert_eq "$status: $stderr" '0: '
	ranks_exited_0 3
}

# bats test_tags=sanitize
@test "what is scattered among more than 64 is each one's own" {
	job --report report -n 66 "$COLL" scatter-wide
	[ "$status" -eq 0 ]
	ranks_exited_0 66
}

@test "AC-C11 nobody leaves a barrier before the last has entered" {
	runs barriers 4
}

@test "AC-C12 a group of some has the world's ranks" {
	runs some 3
	both 'rank 1 is no member of the group' 2
}

@test "AC-C13 who is no member can do nothing, at once" {
	runs some 4
}

# bats test_tags=sanitize
@test "AC-C14 what does not wait is waited for once, twice, and for a while" {
	runs handles 3
}

@test "AC-C15 another count is refused to all, who hear of whom" {
	runs other-count 3
	both 'do not call the same: rank . calls all_reduce of [45] i32, sum; rank . calls all_reduce of [45] i32, sum$' 3
	runs other-operation 3
	both 'ranks . and . do not call the same: rank . calls (barrier|broadcast of 8 i32, rank .), with a future; rank . calls (barrier|broadcast of 8 i32, rank .), with a future$' 3
}

# bats test_tags=sanitize
@test "a conflict states both calls, also of long data and of forms that differ" {
	local sum='all_reduce of 30000[01] i32, sum'

	runs other-long-count 3
	both "ranks . and . do not call the same: rank . calls $sum; rank . calls $sum\$" 3
	runs other-form 3
	sum='all_reduce of 4 i32, sum'
	both "ranks (1 and [02]|[02] and 1) do not call the same: rank . calls $sum(; rank 1 calls $sum, with a future|, with a future; rank [02] calls $sum)\$" 3
}

# bats test_tags=sanitize
@test "a root that broadcasts waits for nobody, and is told by what it calls next" {
	COLL=$BUILD/tests/prog/coll_root
	job -n 3 "$COLL" other-broadcast
	[ "$(grep -cE 'ranks [0-2] and [0-2] do not call the same: rank . calls broadcast of [45] i32, rank 0; rank . calls broadcast of [45] i32, rank 0$' <<<"$output")" -eq 3 ]
	job -n 2 "$COLL" two-roots
	[ "$(grep -cE 'ranks [01] and [01] do not call the same: rank . calls broadcast of 4 i32, rank .; rank . calls broadcast of 4 i32, rank .$' <<<"$output")" -eq 2 ]
	job -n 3 "$COLL" root-ends
	assert_eq "$status: $stderr" '0: '
	[ "$(grep -c 'rank [12]: lost rank0 (0)' <<<"$output")" -eq 2 ]
}

@test "what is done one after the other, with any root and of any length, does not mix" {
	local n

	for n in 2 3 5 8; do
		job --report report -n "$n" "$BUILD/tests/prog/coll_root" mixed "$RANDOM"
		assert_eq "$status: $stderr" '0: '
		ranks_exited_0 "$n"
	done
}

@test "one that is late is named to all" {
	runs late 3
	both 'these ranks did not come in time: 2' 3
}

# late_ranks CASE [tcp] - three ranks of coll_late, in a folder of their own. That program
# contains the library, so xrun makes shared memory for it only if it watches for hangs.
late_ranks()
{
	local place

	place=$(mktemp -d "$BATS_TEST_TMPDIR/late.XXXXXX")
	job --hang-timeout 10m --on-failure continue -n 3 "$BUILD/tests/prog/coll_late" "$1" "$place" "${@:2}"
}

@test "a rank that came in time is not named, though a slow thread has not read that yet" {
	for how in '' tcp; do
		# shellcheck disable=SC2086 # none, or one word
		late_ranks slow-owner $how
		assert_eq "$status: $stderr" '0: '
		[ "$(grep -cE 'rank 0: barrier: these ranks did not come in time: 2$' <<<"$output")" -eq 1 ]
	done
}

@test "xr_world_close names a dead rank, and no rank that has not called yet" {
	for how in '' tcp; do
		# shellcheck disable=SC2086 # none, or one word
		late_ranks dead-close $how
		[ "$(grep -cE 'rank [02]: lost rank1 \(1\): [^;]+$' <<<"$output")" -eq 2 ]
		refute_has "$output" 'did not come in time'
	done
}

@test "xr_world_close names the rank that did not call in time" {
	for how in '' tcp; do
		# shellcheck disable=SC2086 # none, or one word
		late_ranks late-close $how
		assert_eq "$status: $stderr" '0: '
		[ "$(grep -cE 'rank [02]: these did not come in time: rank1$' <<<"$output")" -eq 2 ]
	done
}

@test "a rank that was stopped while another rank called does not name that rank" {
	for how in '' tcp; do
		# shellcheck disable=SC2086 # none, or one word
		late_ranks stopped $how
		assert_eq "$status: $stderr" '0: '
		[ "$(grep -cE 'rank 0: barrier: these ranks did not come in time: 2$' <<<"$output")" -eq 1 ]
		# shellcheck disable=SC2086 # none, or one word
		late_ranks stopped-close $how
		assert_eq "$status: $stderr" '0: '
		[ "$(grep -cE 'rank [01]: these did not come in time: rank2$' <<<"$output")" -eq 2 ]
	done
}

# bats test_tags=sanitize
@test "the error of the form with a future states the call of a root that has returned" {
	late_ranks form
	assert_eq "$status: $stderr" '0: '
	[ "$(grep -cE 'rank [12]: ranks .* do not call the same: .*, with a future' <<<"$output")" -eq 4 ]
}

# tests/fault/run late does so ten thousand times on a loaded machine.
# bats test_tags=sanitize
@test "of many groups with one late rank, each error names that rank only" {
	for how in '' tcp; do
		# shellcheck disable=SC2086 # none, or one word
		job -n 4 "$BUILD/tests/fault/fault_late" 32 "$BATS_TEST_TMPDIR/page" $how
		assert_eq "$status: $stderr" '0: '
		[ "$(grep -c '32 operations, 0 violations' <<<"$output")" -eq 4 ]
	done
}

# bats test_tags=sanitize,keep
@test "AC-C16 one that dies is named to all" {
	for how in '' tcp; do
		# shellcheck disable=SC2086 # none, or one word
		job --on-failure continue -n 3 "$COLL" dead $how
		[ "$(grep -c 'rank [02]: lost rank1 (1)' <<<"$output")" -eq 2 ]
		# shellcheck disable=SC2086
		job --on-failure continue -n 3 "$COLL" dead-barrier $how
		[ "$(grep -c 'rank [02]: lost rank1 (1)' <<<"$output")" -eq 2 ]
	done
}

@test "AC-C18 two groups at once do not mix" {
	runs two 3
}

# some_of_all() closes its group twice.
@test "AC-C19 a group is closed twice, and then it is closed" {
	runs some 3
}

@test "AC-C20 nothing is gathered, reduced and sent as well" {
	COLL=$BUILD/tests/prog/coll_empty
	for what in messages collectives; do
		runs "$what" 3
		both "^.0. rank 0 of 3: $what of every type\$" 1
		both "^.2. rank 2 of 3: $what of every type\$" 1
	done
	runs other-length 2
	both 'rank 0 sends 0 i32, and rank 1 awaits 1 i32' 2
}

@test "AC-C21 more than 2 GiB at once" {
	[ "$(awk '/MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 12 ] ||
		skip "less than 12 GiB of memory"
	job --report report -n 2 "$COLL" huge
	[ "$status" -eq 0 ]
	ranks_exited_0 2
}

@test "two machines do together what there is, over TCP" {
	two_machines
	for what in send isend tags bcast allgather gather scatter types sum barriers handles two; do
		on_machines "$COLL" "$what"
	done
	on_machines "$COLL" other-count
	assert_eq "$(cat out.0 out.1 | grep -c 'do not call the same: rank . calls all_reduce')" 2
}

# bats test_tags=sanitize
@test "what a member sends ahead of who asks for it has a limit and comes in order" {
	COLL=$BUILD/tests/prog/coll_bound
	runs flood 2
	both ' MiB more' 1
	runs in-turn 2
}

@test "a member is 4096 operations ahead of others, and then waits for them" {
	COLL=$BUILD/tests/prog/coll_bound
	runs ahead 2
	both 'barrier: 4096 operations of the group, with 0 bytes, have not ended in time' 1
}

# bats test_tags=sanitize
@test "a thread waits for its turn no longer than it may" {
	job -n 2 "$BUILD/tests/prog/coll_bound" turn
	[ "$status" -eq 0 ]
	assert_has "$output" 'another thread of rank 0 has been in an operation of the group'
}

@test "the example of sums: a line a size" {
	[ -x "$BUILD/examples/allreduce_bench" ] || skip 'examples are not built'
	for type in f32 bf16; do
		job -n 3 "$BUILD/examples/allreduce_bench" --type "$type" --most 300000
		assert_eq "$status: $stderr" '0: '
		assert_eq "$(awk 'NR > 1 { print $2 }' <<<"$output" | xargs)" '8 64 512 4096 32768 262144'
	done
}

# loss COMMAND... - what it prints of the last epoch.
loss()
{
	"$@" --exact 2>/dev/null | sed -n '$s/.*epoch [0-9]*  loss \([0-9.]*\) .*/\1/p'
}

# near A B - within 1e-5.
near()
{
	[ -n "$1" ] && [ -n "$2" ] || return 1
	awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(d < 1e-5 && d > -1e-5) }'
}

@test "a training ends as that of a single process, and twice with the same bits" {
	unsanitized 'it takes long, and does nothing that other tests do not do'
	[ -x "$BUILD/examples/train" ] || skip 'examples are not built'
	alone=$(loss "$BUILD/examples/train" --epochs 1)
	near "$alone" 1.961092353
	near "$(loss "$XRUN" --no-logs -n 1 "$BUILD/examples/train" --epochs 1)" "$alone"
	for n in 2 4 8; do
		once=$(loss "$XRUN" --no-logs -n "$n" "$BUILD/examples/train" --epochs 1)
		near "$once" "$alone"
		assert_eq "$(loss "$XRUN" --no-logs -n "$n" "$BUILD/examples/train" --epochs 1)" "$once"
	done
}
