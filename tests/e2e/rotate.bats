#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# rotate.bats - --log-rotate: files of output that are begun anew; --log-full
# and --merge-stderr: what else becomes of what ranks write.

load helper

# pieces FOLDER - the stream, from its pieces in the order of their names.
pieces()
{
	local old=("$1"/stdout.*[0-9])

	[ -e "${old[0]}" ] || old=()
	# A kill between two names leaves none.
	[ ! -e "$1/stdout" ] || old+=("$1/stdout")
	cat "${old[@]}"
}

@test "--log-rotate: pieces end with a line, and are the whole stream" {
	local r piece
	job --log-dir logs --log-rotate 64k -n 2 "$PROG/spew" --lines 20000 \
		--copy "$PWD/copy"
	assert_eq "$status" 0
	assert_eq "$(wc -l <<<"$output")" 40000
	for r in 0 1; do
		pieces "logs/0/rank-000$r" | cmp - "copy.$r.out"
		[ "$(compgen -G "logs/0/rank-000$r/stdout.*[0-9]" | wc -l)" -ge 20 ]
		for piece in "logs/0/rank-000$r"/stdout.*[0-9]; do
			assert_eq "$(tail -c 1 "$piece" | od -An -tx1)" ' 0a'
			[ "$(stat -c %s "$piece")" -lt 131072 ]
		done
	done
}

@test "--log-rotate: a line of 200 KB is cut, 64 KiB behind the size" {
	job --log-dir logs --log-rotate 64k python3 -c 'print("x" * 200000)'
	assert_eq "$status" 0
	assert_eq "${#output}" 200000
	assert_eq "$(stat -c %s logs/0/rank-0000/stdout.000000000000000)" 131072
	assert_eq "$(pieces logs/0/rank-0000)" "$output"
}

@test "--log-rotate SIZE,COUNT: so many files are kept, each with its index" {
	job --log-dir logs --log-rotate 64k,3 -n 1 bash -c '
		exec 9<> <(:)
		for ((i = 0; i < 60; i++)); do
			printf "%09999d\n" "$i"
			read -rt 0.012 _ <&9 || :
		done'
	assert_eq "$status" 0
	cd logs/0/rank-0000
	assert_eq "$(compgen -G 'stdout.*[0-9]' | wc -l)" 2
	ls stdout stdout.idx
	assert_eq "$(compgen -G '*.idx' | wc -l)" 3
	# The name is the place of the first byte; the index counts from 0.
	for old in stdout.*[0-9]; do
		start=$((10#${old#stdout.}))
		assert_eq $((start % 10000)) 0
		assert_eq $((10#$(head -c 9999 "$old"))) $((start / 10000))
		end=$(od -An -tu8 -j "$(($(stat -c %s "$old.idx") - 16))" -N 8 "$old.idx")
		assert_eq $((end)) $((start + $(stat -c %s "$old")))
	done
}

# lines_late COUNT - a job whose reader begins when the ranks have ended.
lines_late()
{
	mkfifo slow
	exec 7<>slow
	"$XRUN" --log-dir logs --log-rotate "$1" -n 1 "$PROG/spew" \
		--lines 30000 --copy "$PWD/copy" >slow 2>err 3>&- 7>&- &
	pid=$!
	# shellcheck disable=SC2016 # for the other shell
	wait_for 20 bash -c '[ "$(pgrep -cP "$(pgrep -P "$0" -x xrun-super)")" = 0 ]' "$pid"
	exec 8<slow 7>&-
	cat <&8 >shown &
	exec 8<&-
	wait "$pid"
	wait "$!"
}

@test "--log-rotate: who reads late reads it all, over every border" {
	lines_late 64k
	cmp shown copy.0.out
	assert_eq "$(cat err)" ''
}

@test "--log-rotate SIZE,COUNT: what was removed before it was shown is said" {
	local said
	lines_late 64k,3
	said=$(sed -nE 's/^xrun: removed by --log-rotate before it was shown: rank 0: ([0-9]+) bytes$/\1/p' err)
	assert_eq "$(jq '.rank[0].unseen_bytes' logs/job.json)" "$said"
	fits job logs/job.json
	[ "$said" -gt 1000000 ]
	assert_eq $((said + $(stat -c %s shown))) "$(stat -c %s copy.0.out)"
	# What is shown is of it, in order; one line was torn at most.
	tail -n 600 copy.0.out | cmp - <(tail -n 600 shown)
	[ "$(sort shown | comm -13 <(sort copy.0.out) - | wc -l)" -le 1 ]
}

@test "--log-rotate: the last lines of a failure reach over a border" {
	job --log-dir logs --log-rotate 64k -n 1 bash -c '
		for ((i = 0; i < 6670; i++)); do echo "line $i"; done; exit 3'
	assert_eq "$status" 3
	[ -e logs/0/rank-0000/stdout.000000000000000 ]
	assert_eq "$(grep -c '^  | line' <<<"$stderr")" 10
	assert_has "$stderr" '^  \| line 6669$'
	assert_has "$stderr" '^  \| line 6660$'
}

@test "--log-rotate: kill -9 of xrun-super at any moment loses and doubles nothing" {
	local i super arrived told
	for ((i = 0; i < 15; i++)); do
		rm -rf logs copy.*
		spawn run "$XRUN" --log-dir logs --log-rotate 64k -n 1 \
			"$PROG/spew" --endless --wild 3000 --copy "$PWD/copy"
		wait_for 10 test -e logs/0/rank-0000/stdout.000000000000000
		super=$(pgrep -P "$pid" -x xrun-super)
		kill -KILL "$super"
		wait "$pid" || status=$?
		assert_eq "$status" 125
		pieces logs/0/rank-0000 >arrived
		arrived=$(stat -c %s arrived)
		told=$(od -An -tu8 -N 8 copy.0.out.count)
		cmp -n "$arrived" arrived copy.0.out
		[ "$arrived" -ge "$((told))" ]
	done
}

@test "--log-rotate: a file that cannot be renamed costs no byte" {
	local nth
	need strace
	unsanitized 'a tracer beside their own'
	for nth in 1 2 3 4 5; do
		rm -rf logs copy.*
		strace -f -qq -o trace -e trace=renameat \
			-e inject="renameat:error=EIO:when=$nth" \
			"$XRUN" --log-dir logs --log-rotate 64k -n 1 "$PROG/spew" \
			--lines 5000 --copy "$PWD/copy" >shown
		pieces logs/0/rank-0000 | cmp - copy.0.out
		cmp shown copy.0.out
		[ ! -e logs/0/rank-0000/stdout.new ]
	done
	grep -q 'EIO.*INJECTED' trace
}

@test "--log-rotate: what is no SIZE[,COUNT] is refused" {
	local bad
	for bad in x 10k "64k," "64k,1" 64kk 1.5M 99999999T ",5"; do
		job --log-rotate "$bad" true
		assert_eq "$status" 125
		assert_has "$stderr" '^xrun: --log-rotate: .*(is not a size|is too small)'
	done
}

@test "--merge-stderr: one file, one prefix, and the order in which it was written" {
	job --merge-stderr --log-dir logs -n 2 sh -c '
		for i in 1 2 3 4 5 6; do echo "out $i"; echo "err $i" >&2; done'
	assert_eq "$status" 0
	assert_eq "$(grep -F '[1]' <<<"$output" | cut -c5-)" \
		"$(for i in 1 2 3 4 5 6; do printf 'out %s\nerr %s\n' $i $i; done)"
	assert_eq "$stderr" ''
	assert_eq "$(ls logs/0/rank-0001)" stdout
	assert_eq "$(wc -l <logs/0/rank-0001/stdout)" 12
}

@test "--merge-stderr: the last lines of a failure, also without files" {
	for more in --logs --no-logs; do
		job "$more" --merge-stderr -n 2 sh -c '
			[ "$RANK" = 1 ] || exec sleep 20
			echo one; echo two >&2; exit 3'
		assert_eq "$status" 3
		assert_has "$(tr '\n' '~' <<<"$stderr")" '  \| one~  \| two~'
	done
}

# A disk of one MiB, full from half a MiB on, in a namespace of its own.
full_disk()
{
	mount -t tmpfs -o size=1m none disk || exit 77
	mkfifo go
	"$XRUN" --log-dir disk/job --log-full drop --report report.json -n 2 \
		bash -c '[ "$RANK" = 0 ] || exec sleep 0
			'"$PROG"'/spew --lines 40000
			: >written; read -r _ <go; echo the end' >out 2>err 3>&- &
	pid=$!
	wait_for 20 grep -q 'is dropped until there is room' err
	# The rank does not wait: it comes to its end.
	wait_for 20 test -e written
	mount -o remount,size=8m disk
	echo >go
	status=0
	wait "$pid" || status=$?
	echo "status $status: $(cat err)" >&2
	[ "$status" = 0 ]
	kept=$(stat -c %s disk/job/0/rank-0000/stdout)
	dropped=$(jq '.rank[0].dropped_bytes' report.json)
	[ "$dropped" -gt 1000000 ]
	[ "$((kept + dropped))" = "$((40000 * 100 + 8))" ]
	grep -q "^xrun: dropped, because the log file system was full: rank 0: $dropped bytes\$" err
	tail -n 1 disk/job/0/rank-0000/stdout | grep -q 'the end$'
	[ "$(jq '.rank[1] | has("dropped_bytes")' report.json)" = false ]
}

@test "--log-full drop: the rank goes on, and its lost bytes are counted" {
	need jq
	[ "$(id -u)" = 0 ] || skip "only root mounts"
	need_mounts -m
	mkdir disk
	export -f full_disk wait_for now_ms
	status=0
	unshare -m --propagation private bash -c 'set -eE; full_disk' || status=$?
	[ "$status" != 77 ] || skip "mount namespaces are refused here"
	[ "$status" = 0 ]
	fits job report.json
}

# Full from the first rank's end on, and with room again before the job's.
full_for_a_while()
{
	local super
	mount -t tmpfs -o size=1m none disk || exit 77
	mkfifo go
	"$XRUN" --log-dir disk/job -n 2 bash -c '
		[ "$RANK" = 0 ] || { read -r _ <go; exit 0; }
		'"$PROG"'/spew --lines 20000' >out 2>err 3>&- &
	pid=$!
	wait_for 20 grep -q 'ranks wait until there is room' err
	echo >go
	super=$(pgrep -P "$pid" -x xrun-super)
	# The other rank ends, and that is to be told.
	# shellcheck disable=SC2016 # for the other shell
	wait_for 20 bash -c '[ "$(pgrep -cP "$0")" = 1 ]' "$super"
	read -rt 0.3 _ <> <(:) || :
	mount -o remount,size=8m disk
	wait "$pid"
	[ "$(grep -c 'not complete' err)" = 0 ]
	[ "$(wc -l <disk/job/0/rank-0000/stdout)" = 20000 ]
	[ "$(jq -r .event disk/job/events.jsonl | sort | uniq -c | tr -s ' \n' ' ')" = \
		' 1 job.end 1 job.start 1 log.full 1 log.room 2 rank.exit 2 rank.start ' ]
	[ "$(jq .seq disk/job/events.jsonl | paste -sd' ')" = '0 1 2 3 4 5 6 7' ]
	[ "$(jq .exit disk/job/job.json)" = 0 ]
}

@test "a disk that is full for a while: events and job.json are complete in the end" {
	need jq
	[ "$(id -u)" = 0 ] || skip "only root mounts"
	need_mounts -m
	mkdir disk
	export -f full_for_a_while wait_for now_ms
	status=0
	unshare -m --propagation private bash -c 'set -eE; full_for_a_while' ||
		status=$?
	[ "$status" != 77 ] || skip "mount namespaces are refused here"
	cat err >&2
	[ "$status" = 0 ]
}
