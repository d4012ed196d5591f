#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does the harness run, verify and tell, on programs that need no launcher: TAP.
# usage: check.sh BUILD-FOLDER
set -u
build=$1
here=$(dirname "$(readlink -f "$0")")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
count=0
unset XRUN

check() # NAME COMMAND...: the command succeeds
{
	count=$((count + 1))
	name=$1
	shift
	if "$@" >"$tmp/said" 2>&1; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		sed 's/^/# /' "$tmp/said" | head -n 20
	fi
}

rows() # FILE COUNT: so many rows, each with a ratio
{
	test "$(grep -c '"median"' "$1")" -ge "$2" && ! grep cannot "$1"
}

echo 1..13
check "launch compares" "$here/launch" --build "$build" --pairs 3 --ranks 2 \
	--programs true,lines,stamp --peers bare-pipes,xargs \
	--json "$tmp/launch"
check "every launch was verified" rows "$tmp/launch" 16
check "logs compares" "$here/logs" --build "$build" --pairs 3 --lines 200 \
	--samples 4 --peers floor-files --json "$tmp/logs"
check "every screen was verified" rows "$tmp/logs" 4
check "steer measures" "$here/steer" --build "$build" --xrun "$build/xrun" \
	--parts ps,restart --pairs 3 --samples 3 --json "$tmp/steer"
check "first measures" "$here/first" --build "$build" --xrun "$build/xrun" \
	--ranks 2 --pairs 3 --json "$tmp/first"
check "start measures" sh -c "'$here/start' --build '$build' --count 3 \
	--rounds 1 | grep -c -e '^| xr_proc ' -e '^| multiproc' | grep -x 6"
check "queue compares" "$here/queue" --build "$build" --pairs 3 --shapes 1:1,4:4 \
	--sizes 8,4096 --items 2000 --peers SimpleQueue --json "$tmp/queue"
check "every item was verified" rows "$tmp/queue" 24
check "pool compares" "$here/pool" --build "$build" --pairs 3 --tasks 300 \
	--tasks-us 0 --workers 2 --peers ThreadPool --json "$tmp/pool"
check "every task was verified" rows "$tmp/pool" 18
check "table shows both" sh -c "'$here/table' '$tmp/launch' '$tmp/logs' |
	grep -c -e '^| true | 2 | bare' -e '^| direct | 4' | grep -x 3"
# A launcher that loses a rank must not get a time.
cat >"$tmp/xrun" <<-END
	#!/bin/sh
	shift 2
	exec "\$@"
END
chmod +x "$tmp/xrun"
check "a launcher that starts too few gets no figure" sh -c "'$here/launch' \
	--build '$build' --xrun '$tmp/xrun' --pairs 3 --ranks 2 \
	--programs lines --peers bare | grep 'cannot run: 1 '"
