#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The rank programs themselves, without a launcher: TAP.
# usage: check.sh FOLDER-OF-THE-PROGRAMS
set -u
bin=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 2
count=0
export RANK

check() # NAME COMMAND...: the command succeeds
{
	count=$((count + 1))
	name=$1
	shift
	if "$@" >out.txt 2>&1; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		sed 's/^/# /' out.txt | head -n 20
	fi
}

refuse() # NAME COMMAND...: the command ends with 1
{
	name=$1
	shift
	check "$name" exits 1 "$@"
}

merged() # three ranks with prefixes, both streams
{
	for RANK in 0 1 2; do
		"$bin/spew" --lines 500 --both 2>err >out
		sed "s/^/[$RANK] /" out
		sed "s/^/[$RANK]!/" err
	done
}

all_alive() # FILE COUNT
{
	test "$(wc -l <"$1")" -eq "$2" && xargs kill -0 <"$1"
}

exits() # CODE COMMAND...
{
	code=$1
	shift
	"$@"
	test $? -eq "$code"
}

ring() # HOW CODE: 9 ranks, 4 is the culprit; all must die as asked
{
	mkdir meet
	pids=
	export WORLD_SIZE=9
	for RANK in 0 1 2 3 4 5 6 7 8; do
		"$bin/die" --rank 4 --exit 3 --ring "$tmp/meet/r" --how "$1" \
			--victim-exit 7 &
		pids="$pids $!"
	done
	good=0
	RANK=0
	for pid in $pids; do
		want=$2
		test $RANK -eq 4 && want=3
		exits "$want" wait "$pid" || good=1
		RANK=$((RANK + 1))
	done
	rm -r meet
	unset WORLD_SIZE
	return $good
}

echo 1..18
RANK=3
"$bin/spew" --lines 2000 --both --batch 7 --copy ref >raw.out 2>raw.err
check "what spew wrote is what it copied" \
	"$bin/verify" raw raw.out ref.3.out raw.err ref.3.err
"$bin/spew" --wild 11 --lines 500 --copy wild | cat >raw.wild
check "wild bytes come through a pipe whole" \
	"$bin/verify" raw raw.wild wild.3.out
check "wild lines can be read back" \
	"$bin/verify" merged --prefix '' --ranks 4 raw.wild
head -c 5000 raw.out >short
refuse "a missing end is seen" "$bin/verify" raw short ref.3.out
sed '5s/e/f/' raw.out >changed
refuse "a changed byte is seen" "$bin/verify" raw changed ref.3.out
timeout -s KILL 0.2 "$bin/spew" --endless --copy killed >raw.killed 2>/dev/null
check "a killed writer's bytes are all there" \
	"$bin/verify" raw --killed raw.killed killed.3.out
head -c 5000 raw.killed >short
refuse "a killed writer's missing bytes are seen" \
	"$bin/verify" raw --killed short killed.3.out
merged >screen
check "a merged screen is whole" \
	"$bin/verify" merged --ranks 3 --lines 500 --streams 3 screen
sed 7d screen >changed
refuse "a missing line is seen" \
	"$bin/verify" merged --ranks 3 --lines 500 --streams 3 changed
sed '7{h;G}' screen >changed
refuse "a doubled line is seen" "$bin/verify" merged --ranks 3 changed
sed '7{N;s/\n//}' screen >changed
refuse "two lines in one are seen" "$bin/verify" merged --ranks 3 changed
sed '7s/^.0. /[1] /' screen >changed
refuse "a foreign prefix is seen" "$bin/verify" merged --ranks 3 changed
check "victims die of a broken pipe" ring pipe 141
check "victims die with a code of their own" ring exit 7
RANK=0
check "fork_away leaves what it says" "$bin/fork_away" --depth 2 --width 2 \
	--setsid --ignore-term --close --pids "$tmp/pids" --last 20000
check "all of it is alive" all_alive "$tmp/pids" 6
xargs kill -9 <"$tmp/pids"
check "sigshow sees a signal" exits 0 sh -c \
	"'$bin/sigshow' --until USR1 >s & p=\$!
	while ! grep -q ready s; do :; done
	kill -USR1 \$p; wait \$p && grep -q 'signal: USR1' s"
check "die gives every exit code" exits 254 "$bin/die" --exit 254
