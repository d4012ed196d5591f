#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# pool.bats - pools, by the acceptance checks, and what the originals got wrong.
#
# Takes long, so it begins early.

load helper

PROCESSES='base pool p2p ctx'
THREADS='thread ctx-thread'

setup()
{
	private_place
	POOL=$BUILD/tests/prog/pool
	export POOL_PAGE=$BATS_TEST_TMPDIR/page
}

teardown()
{
	nothing_left
}

# runs CASE FLAVOUR... - each ends with 0, and says nothing.
runs()
{
	local name=$1 flavour

	shift
	for flavour in "$@"; do
		rm -f "$POOL_PAGE"
		try timeout 60 "$POOL" "$name" "$flavour"
		# shellcheck disable=SC2154 # of try
		assert_eq "$name $flavour: $status: $output$stderr" \
			"$name $flavour: 0: "
	done
}

# everywhere CASE... - of pools of all kinds.
everywhere()
{
	local name

	for name in "$@"; do
		# shellcheck disable=SC2086 # words
		runs "$name" $PROCESSES $THREADS
	done
}

# processes CASE... - of those of processes.
processes()
{
	local name

	for name in "$@"; do
		# shellcheck disable=SC2086 # words
		runs "$name" $PROCESSES
	done
}

@test "AC-X1 AC-X15 D-X6 all calls give what they should, of all kinds of pools" {
	everywhere all-calls many
}

# bats test_tags=sanitize
@test "pools of processes that are executed anew give the same" {
	export POOL_METHOD=spawn
	processes all-calls killed
}

@test "pools of processes that are forks of this one give the same" {
	export POOL_METHOD=fork
	processes all-calls killed max-tasks max-tasks-killed cycles-short
	unset POOL_METHOD
	runs forks base p2p
}

@test "AC-X2 a chunk has a fourth of a worker's share, or what was said" {
	everywhere chunks
}

@test "AC-X30 AC-X33 each of the eight operations can be replaced alone" {
	everywhere each-op no-room
}

# bats test_tags=sanitize
@test "AC-X31 AC-X33 D-X14 results are out of time, or over, and nobody spins" {
	everywhere op-closed
}

@test "AC-X32 AC-X33 the end of a worker is that of the pool, or is made up for" {
	everywhere on-worker-error
}

@test "AC-X3 D-X8 a chunk of none, and other tasks that are none, are refused" {
	everywhere refused-tasks
}

@test "AC-X4 D-X5 callbacks are called once, and before the result is ready" {
	everywhere callbacks
}

@test "AC-X4 D-X14 a callback that fails, or ends its thread, harms nobody" {
	everywhere bad-callbacks
}

# bats test_tags=sanitize,keep
@test "a pool is freed while a callback of its is at work, and others go on" {
	everywhere freed-meanwhile freed-and-ended freed-beside
}

# bats test_tags=sanitize,keep
@test "a callback frees its pool while others wait for the result" {
	everywhere freed-by-callback
}

@test "AC-X2 AC-X12 D-X7 what has no items is done at once" {
	everywhere empty
}

@test "AC-X5 D-X4 an error is the function's own, with where it was" {
	everywhere errors map-errors
}

# bats test_tags=sanitize
@test "AC-X6 D-X10 whether it went well is known when it has ended" {
	everywhere successful
}

@test "AC-X7 a wait that is late is late in time, and the result comes" {
	everywhere late
}

# bats test_tags=sanitize,keep
@test "AC-X8 D-X1 D-X22 one that is killed loses its task, and no other" {
	processes killed killed-idle
}

@test "when the zygote is killed others are made of another one" {
	processes killed-zygote
}

@test "D-X9 what waits for one that is killed is its follower's" {
	runs killed-with-tasks base pool p2p
}

@test "AC-X9 D-X2 a result that cannot travel is an error, and the worker stays" {
	runs no-way-back base pool p2p
	everywhere large-results
}

@test "who waits for many short tasks is not woken for each, and keeps its time" {
	processes naps in-time
}

# bats test_tags=sanitize
@test "a worker whose function ends its thread ends, and is replaced" {
	# What the thread had is nobody's when the process ends with it.
	export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
	processes ends-threads
}

@test "what several futures, or one, lead to is told to who waits for it" {
	everywhere followed
}

# bats test_tags=sanitize
@test "AC-X10 D-X3 an initializer that fails is the end of the pool" {
	everywhere bad-initializer
}

@test "each worker calls the initializer" {
	runs initializer base pool p2p thread
}

# bats test_tags=sanitize
@test "AC-X11 an exit in a task, or a crash, is told by its code or signal" {
	processes exits answered
	runs lent base p2p
}

@test "a task that may run twice does, when its worker is killed" {
	processes idempotent
}

@test "AC-X13 D-X9 who has done its tasks is replaced, though others are killed" {
	processes max-tasks max-tasks-killed
}

@test "AC-X14 each place has its context, whoever is there" {
	runs contexts ctx ctx-thread
	runs places ctx ctx-thread
}

@test "AC-X14 wrong numbers, and what else is no pool, are refused" {
	everywhere refusals sizes
}

@test "AC-X16 a pool that is closed does all it was given" {
	everywhere drain
}

@test "AC-X17 D-X15 D-X16 terminate ends in time, and all results" {
	processes terminate
}

@test "AC-X18 threads are told that they are not wanted, and what waits is dropped" {
	runs terminate thread ctx-thread
	runs deaf-thread thread ctx-thread
}

@test "what is canceled does not run, or is told" {
	everywhere cancel
}

@test "AC-X19 what was closed takes nothing, and what was not is not joined" {
	everywhere states
}

@test "AC-X20 D-X23 workers end with who has made them" {
	processes orphans
}

# bats test_tags=sanitize
@test "D-X21 a normal exit ends a pool, or waits until all is done" {
	everywhere leaves
}

@test "AC-X21 an item that fails is an error at its place, and others follow" {
	everywhere iterators-with-errors
}

@test "AC-X22 D-X20 two take from one iterator, and have all" {
	everywhere two-take
}

@test "an iterator that is not wanted any more keeps nobody" {
	everywhere half-taken
}

@test "AC-X23 D-X11 what a worker writes is seen where values are shared" {
	everywhere modes
}

# bats test_tags=sanitize
@test "AC-X24 D-X17 many submit, and each has its own results" {
	runs submitters base thread
	runs submitters-some pool p2p ctx ctx-thread
}

@test "AC-X25 a pool does not travel" {
	everywhere no-travel
}

@test "AC-X26 AC-X34 D-X18 what a function is bound to is read once by each worker" {
	everywhere bound-once many-bound
}

@test "AC-X27 D-X19 who submits to a full pool is late, and not for ever" {
	everywhere full
}

# bats test_tags=sanitize
@test "who waits for room hears of it where workers take only what was canceled" {
	processes stale
}

# bats test_tags=sanitize
@test "AC-X28 D-X12 D-X13 a pool that is made says nothing" {
	try timeout 60 "$POOL" states
	assert_eq "$status: $output$stderr" '0: '
}

@test "AC-X29 a thousand pools leave nothing behind" {
	runs cycles base
}

@test "AC-X29 pools of the other kinds leave nothing behind" {
	runs cycles thread
	runs cycles-some pool p2p ctx ctx-thread
}

# bats test_tags=sanitize
@test "a child of fork() has no pool" {
	everywhere forked forked-and-freed
}

@test "the example throws darts" {
	[ -x "$BUILD/examples/pool_map" ] || skip 'examples are not built'
	try timeout 60 "$BUILD/examples/pool_map" 2000000
	assert_eq "$status: $stderr" '0: '
	[[ $output =~ ^'pi is about 3.1' ]]
}
