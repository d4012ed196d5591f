#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hear.bats - what ranks tell, in a shell and in Python (plugins/python/xrun.py).

load helper

setup()
{
	private_place
	export PYTHONDONTWRITEBYTECODE=1
}

# up ARG... - a job in the background that can be asked; its id is in $id.
up()
{
	spawn one "$XRUN" --job hears "$@"
	id=hears
	wait_for 5 [ -e "$XDG_RUNTIME_DIR/xrun/$id/control" ]
}

# rank_has RANK JQ - true if the filter holds for the rank in `ps --json`.
rank_has()
{
	"$XRUN" ps --json "$id" | json_holds ".rank[$1] | $2"
}

down()
{
	"$XRUN" stop "$id"
	status=0
	wait "$pid" || status=$?
}

@test "a shell tells with echo, or with socat" {
	need jq socat
	up -n 2 bash -c '
		if [ "$RANK" = 0 ]; then
			echo "{\"type\":\"progress\",\"step\":7,\"total\":9}" >&97
		else
			echo "{\"type\":\"ready\",\"rank\":$RANK}" | socat -u - FD:97
		fi
		exec sleep 60'
	wait_for 5 rank_has 0 '.progress.step == 7 and .progress.total == 9 and (.ready | not)'
	wait_for 5 rank_has 1 '.ready and .progress.step == null'
	try "$XRUN" ps "$id"
	assert_has "$output" ' STEP$'
	assert_has "$output" '^ +0 .* cpu +7/9$'
	assert_has "$output" '^ +1 .* cpu +ready$'
	down
}

@test "who is told of is who told, or says so in a session of its own" {
	need jq
	up -n 3 bash -c '
		case $RANK in
		0) echo "{\"type\":\"progress\",\"step\":5,\"rank\":2}" >&97 ;;
		1) setsid bash -c "echo \"{\\\"type\\\":\\\"progress\\\",\\\"step\\\":6,\\\"rank\\\":1}\" >&97" ;;
		esac
		exec sleep 60'
	wait_for 5 rank_has 0 '.progress.step == 5'
	wait_for 5 rank_has 1 '.progress.step == 6'
	rank_has 2 '.progress.step == null'
	down
}

@test "what is no message is said once, with -v, and harms nobody" {
	need jq
	up -n 1 -v bash -c '
		for i in 1 2 3; do
			echo rubbish >&97
			echo "{\"type\":\"stop\"}" >&97
			head -c 70000 /dev/zero >&97
		done
		echo "{\"type\":\"progress\",\"step\":1,\"metrics\":7}" >&97
		exec sleep 60'
	wait_for 5 rank_has 0 '.progress.step == 1 and .progress.metrics == null'
	down
	assert_eq "$status" 143
	assert_eq "$(grep -c 'that is no message' "$BATS_TEST_TMPDIR/one.err")" 1
}

@test "python: progress, metrics and readiness arrive" {
	need python3 jq
	cat >train.py <<-'EOS'
		import time
		import xrun

		class Tensor:  # as those of numpy and torch
		    def item(self):
		        return 0.125

		xrun.ready()
		for step in range(1, 1001):
		    xrun.progress(step, total=1000, loss=Tensor(), bad=float("nan"),
		                  name="x", rate=3)
		print(xrun.rank(), xrun.size(), xrun.device(), xrun.in_job(), flush=True)
		time.sleep(60)
	EOS
	up -n 2 python3 train.py
	wait_for 10 rank_has 1 '.progress.step == 1000 and .progress.total == 1000 and .ready and
		.progress.metrics == {"loss": 0.125, "rate": 3}'
	await_line one.out '^\[0\] 0 2 cpu True$' 5
	assert_has "$("$XRUN" ps "$id")" '^ +0 .* 1000/1000  loss 0.125, rate 3$'
	down
}

@test "python: a metric that is no single number, or a huge one, costs no report" {
	need python3 jq
	cat >train.py <<-'EOS'
		import time
		import xrun

		class Many:
		    def item(self):
		        raise RuntimeError("a Tensor with 2 elements cannot be converted")

		xrun.progress(2**70, total=2**70, many=Many(), huge=2**60, vast=10**400, rate=3)
		print("on", flush=True)
		time.sleep(60)
	EOS
	up -n 1 --no-prefix python3 train.py
	await_line one.out '^on$' 10
	wait_for 10 rank_has 0 '.progress.step > 9007199254740000 and
		.progress.total == .progress.step and
		(.progress.metrics | .huge + 0 == 1152921504606846976 + 0 and
			del(.huge) == {"rate": 3})' # sums are doubles in each jq
	down
}

@test "python: a report in the middle of a report, and in a fork of one, arrives" {
	need python3
	cat >midst.py <<-'EOS'
		import os, signal, socket, threading

		ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		os.environ["XRUN_CONTROL_FD"] = "%d:%d" % (theirs.fileno(), os.fstat(theirs.fileno()).st_ino)
		import xrun

		os.environ["XRUN_RANK"] = "5"
		signal.alarm(20)
		rank = xrun.rank

		@xrun.on_stop
		def save():
		    xrun.grace(5)

		def interrupted():  # _tell() asks for the rank while it is at it
		    xrun.rank = rank
		    os.kill(os.getpid(), signal.SIGTERM)
		    return 5

		xrun.rank = interrupted
		xrun.progress(1)
		print(ours.recv(999), ours.recv(999), xrun.stopping())

		begun, ended = threading.Event(), threading.Event()

		def slow():
		    xrun.rank = rank
		    begun.set()
		    ended.wait()
		    return 5

		xrun.rank = slow
		thread = threading.Thread(target=xrun.ready)
		thread.start()
		begun.wait()
		child = os.fork()
		if child == 0:
		    signal.alarm(5)
		    xrun.grace(6)
		    os._exit(0)
		print(os.waitpid(child, 0)[1], ours.recv(999))
		ended.set()
		thread.join()
		print(ours.recv(999))
	EOS
	PYTHONPATH=$root/plugins/python try python3 -W ignore::DeprecationWarning midst.py
	assert_eq "$status: $stderr" '0: '
	assert_eq "$output" "b'{\"type\": \"grace\", \"seconds\": 5.0, \"rank\": 5}' b'{\"type\": \"progress\", \"step\": 1, \"rank\": 5}' True
0 b'{\"type\": \"grace\", \"seconds\": 6.0, \"rank\": 5}'
b'{\"type\": \"ready\", \"rank\": 5}'"
}

@test "python: the flags of the socket, which all ranks share, stay as they are" {
	need python3 jq
	up -n 1 --no-prefix python3 -c 'if True:
		import fcntl, os, socket, time
		fd = int(os.environ["XRUN_CONTROL_FD"].split(":")[0])
		before = fcntl.fcntl(fd, fcntl.F_GETFL)
		socket.setdefaulttimeout(5)
		import xrun
		xrun.ready()
		xrun.progress(1, total=1)
		print(fcntl.fcntl(fd, fcntl.F_GETFL) == before, flush=True)
		time.sleep(60)'
	await_line one.out '^(True|False)$' 10
	assert_eq "$line" True
	wait_for 10 rank_has 0 '.ready and .progress.step == 1'
	down
}

@test "python: where others fill the queue, what is told once waits for room" {
	need python3
	cat >full.py <<-'EOS'
		import os, socket, threading, time

		ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		os.environ["XRUN_CONTROL_FD"] = "%d:%d" % (theirs.fileno(), os.fstat(theirs.fileno()).st_ino)
		import xrun

		def fill():
		    try:
		        while True:
		            theirs.send(b"x" * 999, socket.MSG_DONTWAIT)
		    except BlockingIOError:
		        pass

		def drained():
		    told = []
		    try:
		        while True:
		            told.append(ours.recv(9999, socket.MSG_DONTWAIT))
		    except BlockingIOError:
		        return [message for message in told if message[:1] != b"x"]

		def later():
		    time.sleep(0.03)  # into the wait, of which nothing tells
		    told.extend(drained())

		for tell in xrun.ready, lambda: xrun.grace(3), lambda: xrun.progress(4, total=4):
		    fill()
		    told = []
		    thread = threading.Thread(target=later)
		    thread.start()
		    tell()
		    thread.join()
		    print(len(told + drained()))
		fill()
		begun = time.monotonic()
		xrun.ready()
		waited = time.monotonic() - begun
		xrun._told = 0.0
		begun = time.monotonic()
		xrun.progress(1, total=4)
		print(0.1 <= waited < 5, time.monotonic() - begun < 0.1, len(drained()))
	EOS
	PYTHONPATH=$root/plugins/python try timeout 30 python3 full.py
	assert_eq "$status: $stderr" '0: '
	assert_eq "$output" '1
1
1
True True 0'
}

@test "python: outside of a job it is rank 0 of 1 and tells nobody" {
	need python3
	export PYTHONPATH=$root/plugins/python
	try python3 -c 'if True:
		import xrun
		xrun.ready()
		xrun.progress(1, total=2, loss=3)
		print(xrun.rank(), xrun.size(), xrun.job(), xrun.device(),
			xrun.attempt(), xrun.in_job(), xrun.stopping())'
	assert_eq "$status: $output$stderr" '0: 0 1  cpu 0 False False'
}

@test "python: a descriptor that is something else by now is left alone" {
	need python3
	job bash -c '
		exec 97>file
		python3 -c "import xrun; xrun.ready(); xrun.progress(3)" && echo done'
	assert_eq "$status: $output" '0: done'
	assert_eq "$(cat file)" ''
	job bash -c '
		exec 97>&-
		python3 -c "import xrun; xrun.ready(); xrun.progress(3)" && echo done'
	assert_eq "$status: $output$stderr" '0: done'
}

@test "python: on_stop saves what there is, and the job ends as told" {
	need python3
	cat >train.py <<-'EOS'
		import time
		import xrun

		@xrun.on_stop
		def save():
		    print("saved", flush=True)

		print("up", flush=True)
		while not xrun.stopping():
		    time.sleep(0.02)
	EOS
	up -n 2 python3 train.py
	await_line one.out '^\[0\] up' 10
	await_line one.out '^\[1\] up' 10
	down
	assert_eq "$status" 143
	assert_eq "$(grep -c saved one.out)" 2
}

@test "python: an exception is told with its words" {
	need python3
	cat >train.py <<-'EOS'
		import xrun

		@xrun.record
		def main():
		    if xrun.rank() == 1:
		        raise ValueError("the loss is nan")

		main()
	EOS
	job -n 2 python3 train.py
	assert_eq "$status" 1
	assert_has "$stderr" '^  error.json: ValueError: the loss is nan$'
	# Not written over.
	job -n 1 bash -c 'echo "{\"message\": {\"message\": \"first\"}}" \
		>"$TORCHELASTIC_ERROR_FILE"
		exec python3 -c "
import xrun
@xrun.record
def main(): raise KeyError(1)
main()"'
	assert_has "$stderr" '^  error.json: first$'
}

# bats test_tags=sanitize
@test "a rank that sends a socket along has a connection with answers" {
	need python3 jq
	cat >talk.py <<-'EOS'
		import array, os, socket, time

		ours, theirs = socket.socketpair()
		told = socket.socket(fileno=int(os.environ["XRUN_CONTROL_FD"].split(":")[0]))
		told.sendmsg([b'{"type":"hello"}'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
		             array.array("i", [theirs.fileno()]))])
		theirs.close()
		lines = ours.makefile("rw")
		print(lines.readline(), end="")
		for text in ('{"type":"progress","step":4,"id":11}', '{"type":"stop"}', '{"type":"ready"}'):
		    lines.write(text + "\n")
		lines.flush()
		print(lines.readline(), lines.readline(), sep="", flush=True)
		time.sleep(60)
	EOS
	up -n 2 --no-prefix python3 talk.py
	wait_for 10 rank_has 1 '.progress.step == 4 and .ready'
	wait_for 10 rank_has 0 '.progress.step == 4 and .ready'
	assert_eq "$(grep -c '"type":"welcome","v":1,"job":"hears"' one.out)" 2
	assert_eq "$(grep -c '^{"type":"done","id":11}' one.out)" 2
	assert_eq "$(grep -c '^{"type":"error","code":"XR_E_NOTFOUND"' one.out)" 2
	down
}

@test "a rank that tells without end keeps nobody from asking" {
	need python3 jq
	up -n 2 python3 -c 'if True:
		import os, socket
		s = socket.socket(fileno=int(os.environ["XRUN_CONTROL_FD"].split(":")[0]))
		step = 0
		while True:
			step += 1
			s.send(b"{\"type\":\"progress\",\"step\":%d}" % step)'
	wait_for 10 rank_has 0 '.progress.step > 1000'
	for i in 1 2 3; do
		try timeout 2 "$XRUN" ps "$id"
		assert_eq "$status" 0
	done
	down
	assert_eq "$status" 143
}

@test "a rank that saves is waited for as long as it asks" {
	need python3
	cat >train.py <<-'EOS'
		import time
		import xrun

		@xrun.on_stop
		def save():
		    xrun.grace(30)
		    time.sleep(0.8)
		    print("saved", flush=True)

		print("up", flush=True)
		while not xrun.stopping():
		    time.sleep(0.02)
	EOS
	up -n 2 --grace 200ms python3 train.py
	await_line one.out '^\[0\] up' 10
	await_line one.out '^\[1\] up' 10
	down
	assert_eq "$status" 143
	assert_eq "$(grep -c saved one.out)" 2
	assert_has "$(cat one.err)" '^xrun: rank [01] asks for 30 s more to end$'
}

@test "nobody is waited for who asks before, or for nothing" {
	need python3
	up -n 1 --grace 200ms python3 -c 'if True:
		import signal, time, xrun
		xrun.grace(600)
		def stop(*args):
			xrun.grace(-1)
			xrun.grace(0)
		signal.signal(signal.SIGTERM, stop)
		print("up", flush=True)
		while True:
			time.sleep(0.02)'
	await_line one.out '^up|^\[0\] up' 10
	local begun
	begun=$(now_ms)
	down
	[ $(($(now_ms) - begun)) -lt 5000 ]
	assert_eq "$(grep -c 'asks for' one.err)" 0
}

# bats test_tags=sanitize
@test "C: the example tells how far it is, and is waited for when it saves" {
	need jq
	up -n 2 --grace 100ms "$BUILD/examples/progress" 100000
	wait_for 10 rank_has 1 '.progress.step > 10 and .progress.total == 100000 and
		.ready and .progress.metrics.loss < 0.5'
	down
	assert_eq "$(grep -c 'of 2: saved at step' one.out)" 2
	job -n 2 "$BUILD/examples/progress" 3
	assert_eq "$status: $stderr" '0: '
	# In a program started by hand, too.
	try "$BUILD/examples/progress" 3
	assert_eq "$status: $output$stderr" '0: '
}

# descriptors - how many the supervisor has.
descriptors()
{
	find "/proc/$(supervisor)/fd" -mindepth 1 | wc -l
}

# send_all - a program of python that tells with descriptors: MESSAGE COUNT KIND.
send_all()
{
	cat >send.py <<-'EOS'
		import array, os, socket, sys, time
		told = socket.socket(fileno=int(os.environ["XRUN_CONTROL_FD"].split(":")[0]))
		keep = []
		for i in range(int(sys.argv[2])):
		    if sys.argv[3] == "pair":
		        fds = [s for s in socket.socketpair()]
		        ends = [[fds[0]], [fds[1]]]
		    elif sys.argv[3] == "many":
		        ends = [[open("/dev/null") for _ in range(16)]]
		    elif sys.argv[3] == "tcp":
		        ends = [[socket.socket()]]
		    else:
		        a, b = socket.socketpair()
		        keep.append(a)
		        a.sendall(b'{"type":"rea')
		        ends = [[b]]
		    for end in ends:
		        told.sendmsg([sys.argv[1].encode()], [(socket.SOL_SOCKET,
		            socket.SCM_RIGHTS, array.array("i", [e.fileno() for e in end]))])
		        for e in end:
		            e.close()
		told.send(b'{"type":"progress","step":1}')
		time.sleep(60)
	EOS
}

@test "descriptors that a rank sends are not collected" {
	need python3 jq
	send_all
	local kind before
	for kind in many tcp half; do
		up -n 1 python3 send.py "$([ $kind = many ] || echo '{"type":"hello"}')" 0 $kind
		wait_for 10 rank_has 0 '.progress.step == 1'
		before=$(descriptors)
		down
		up -n 1 python3 send.py "$([ $kind = many ] || echo '{"type":"hello"}')" 200 $kind
		wait_for 10 rank_has 0 '.progress.step == 1'
		wait_for 5 no_more_than $((before + 10)) # 8 connections a rank
		down
		assert_eq "$status" 143
	done
}

no_more_than()
{
	[ "$(descriptors)" -le "$1" ]
}

@test "a job that is made to talk to itself does not" {
	need python3 jq
	send_all
	up -n 1 python3 send.py '{"type":"hello"}' 3 pair
	wait_for 10 rank_has 0 '.progress.step == 1'
	wait_for 5 calm
	down
}

@test "metrics are numbers by name, or none" {
	need jq
	up -n 1 bash -c '
		echo "{\"type\":\"progress\",\"step\":1,\"metrics\":{\"a\":{\"b\":1}}}" >&97
		echo "{\"type\":\"progress\",\"step\":2,\"metrics\":[1]}" >&97
		echo "{\"type\":\"progress\",\"step\":3,\"metrics\":{\"a\":\"1\"}}" >&97
		exec sleep 60'
	wait_for 5 rank_has 0 '.progress.step == 3 and .progress.metrics == null'
	down
}

@test "time that a rank asked for is its own, and ends with it" {
	cat >ask.bash <<-'EOS'
		ask()
		{
			echo '{"type":"grace","seconds":30}' >&97
			exit 0
		}
		trap '' TERM
		[ "$RANK" = 1 ] || trap ask TERM
		echo up
		while :; do
			sleep 0.02
		done
	EOS
	up -n 2 --grace 300ms bash ask.bash
	await_line one.out '^\[0\] up' 10
	await_line one.out '^\[1\] up' 10
	local begun
	begun=$(now_ms)
	down
	[ $(($(now_ms) - begun)) -lt 5000 ]
	assert_has "$(cat one.err)" '^xrun: rank 0 asks for 30 s more'
}
