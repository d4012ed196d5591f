#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# store.bats - the rendezvous store of a job, as ranks and clients speak to it.

load helper

setup()
{
	private_place
	export PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1
	control=$XDG_RUNTIME_DIR/xrun/keys/control
}

# up ARG... - a job in the background that can be asked.
up()
{
	spawn one "$XRUN" --job keys "$@"
	wait_for 5 [ -e "$control" ]
}

down()
{
	"$XRUN" stop keys
	status=0
	wait "$pid" || status=$?
}

# client - python with a client's connection in s, its program from stdin.
client()
{
	timeout 60 python3 -c "
import base64, json, os, socket, sys, time
import store
control = '$control'
s = store.client(control)
exec(sys.stdin.read())"
}

@test "AC-S1 a get waits until another rank sets the key, or names it after its time" {
	need python3
	cat >meet.py <<-'EOS'
		import os, store
		s = store.rank()
		if os.environ["RANK"] == "0":
		    print(s.get("/addr/1"), flush=True)
		    print(s.set("/addr/0", "here"), flush=True)
		else:
		    print(s.set("/addr/1", "there"), flush=True)
		    print(s.get("/addr/0", seconds=20), flush=True)
		    print(s.get("/nobody", seconds=0.05)["text"], flush=True)
		    print(s.get("/nobody", seconds=0)["code"], flush=True)
	EOS
	job -n 2 python3 meet.py
	assert_eq "$status: $stderr" '0: '
	assert_eq "$(sort <<<"$output")" "[0] done
[0] there
[1] XR_E_NOTFOUND
[1] done
[1] here
[1] store: nobody has set the key '/nobody' within 50 ms"
}

@test "a client of the same user shares the store with the ranks" {
	need python3 jq socat
	up -n 1 python3 -c 'if True:
		import store, time
		s = store.rank()
		print(s.get("/from outside"), flush=True)
		time.sleep(60)'
	printf '%s\n' '{"type":"store_set","id":5,"key":"/from outside","value":"Zm9v"}' |
		socat -t 5 - "UNIX-CONNECT:$control" >said
	assert_eq "$(sed 1d said)" '{"type":"done","id":5}'
	await_line one.out '^\[?0?\]? ?foo$' 5
	# Who has closed his end is still answered.
	printf '%s\n' '{"type":"store_get","key":"/late","id":6}' |
		timeout 20 socat -t 20 - "UNIX-CONNECT:$control" >late &
	local late=$!
	client <<-'EOS'
		while s.ask("store_check", keys=["/late"])["count"]: pass
		time.sleep(0.2)
		s.set("/late", "")
	EOS
	wait "$late"
	assert_eq "$(sed 1d late)" '{"type":"store_value","id":6,"value":""}'
	down
}

# bats test_tags=sanitize,keep
@test "each operation answers as the protocol says" {
	need python3
	up -n 1 sleep 60
	client >out <<-'EOS'
		print(s.ask("store_add", key="/n", by=2))
		print(s.ask("store_add", key="/n", by=-5, id=4))
		print(s.ask("store_add", key="/n", by="9007199254740999"))
		print(s.get("/n"))
		print(s.ask("store_add", key="/n", by="1e3")["text"])
		print(s.ask("store_compare_set", key="/c", value="Zm9v"))
		print(s.ask("store_compare_set", key="/c", expected="Zm9v", value="YmFy"))
		print(s.ask("store_compare_set", key="/c", expected="Zm9v", value="Zm9v"))
		print(s.ask("store_compare_set", key="/d", expected="Zm9v", value="Zm9v"))
		print(s.ask("store_check", keys=["/n", "/c", "/d"]))
		print(s.ask("store_wait", keys=["/n", "/c"]))
		print(s.ask("store_wait", keys=["/n", "/d"], seconds=0.01)["text"])
		print(s.ask("store_delete", key="/c"), s.ask("store_delete", key="/c"))
		print(s.ask("store_check", keys=["/c", 3])["code"])
		print(s.ask("store_check", keys=["k"] * 1025)["code"])
		print(s.ask("store_get", key="k" * 4097)["code"])
		print(s.ask("store_set", key="/k", value="Zg=")["text"])
		print(s.ask("store_set", key="/k")["text"])
		print(s.ask("store_set", key="/k", value="A" * 43696)["text"])
	EOS
	assert_eq "$(cat out)" "{'type': 'store_sum', 'sum': 2}
{'type': 'store_sum', 'id': 4, 'sum': -3}
{'type': 'store_sum', 'sum': '9007199254740996'}
9007199254740996
store_add: by is not a whole number of 64 bits
{'type': 'store_value', 'value': 'Zm9v'}
{'type': 'store_value', 'value': 'YmFy'}
{'type': 'store_value', 'value': 'YmFy'}
{'type': 'store_value'}
{'type': 'done', 'count': 2}
{'type': 'done'}
store: nobody has set the key '/d' within 10 ms
{'type': 'done', 'count': 1} {'type': 'done', 'count': 0}
XR_E_PROTO
XR_E_RANGE
XR_E_RANGE
store: a value is no base64
store: there is no value, and no descriptor came along
store: a value beyond 32768 bytes is sent along as a memfd"
	down
}

@test "a large value travels as sealed memory, and anything else is refused" {
	need python3 jq
	up -n 1 sleep 60
	client >out <<-'EOS'
		data = os.urandom(1 << 20)
		print(s.ask("store_set", key="/big", fds=[store.memory(data)]))
		for i in range(3):
		    s.send("store_get", key="/big", id=i)
		for i in range(3):
		    print(s.answer())
		    print(os.pread(s.fds.pop(0), 2 << 20, 0) == data)
		print(s.ask("store_add", key="/big", by=1)["code"])
		print(s.ask("store_compare_set", key="/big", expected="", value="Zm9v"))
		print(len(s.fds))
		# Small ones are as those in a line.
		print(s.ask("store_set", key="/small", fds=[store.memory(b"41")]))
		print(s.ask("store_add", key="/small", by=1))
		for fd in (store.memory(b"x", 0), os.open("/dev/null", os.O_RDONLY),
		           os.pipe()[0]):
		    print(s.ask("store_set", key="/bad", fds=[fd])["code"])
		huge = store.memory(b"", 0)
		os.ftruncate(huge, (64 << 20) + 1)
		store.fcntl.fcntl(huge, store.fcntl.F_ADD_SEALS, store.SEALS)
		print(s.ask("store_set", key="/bad", fds=[huge])["code"])
		print(s.ask("store_check", keys=["/bad"])["count"])
	EOS
	assert_eq "$(cat out)" "{'type': 'done'}
{'type': 'store_value', 'id': 0, 'size': 1048576}
True
{'type': 'store_value', 'id': 1, 'size': 1048576}
True
{'type': 'store_value', 'id': 2, 'size': 1048576}
True
XR_E_INVAL
{'type': 'store_value', 'size': 1048576}
1
{'type': 'done'}
{'type': 'store_sum', 'sum': 42}
XR_E_INVAL
XR_E_INVAL
XR_E_INVAL
XR_E_RANGE
0"
	down
}

# descriptors - how many the supervisor has.
descriptors()
{
	find "/proc/$(supervisor)/fd" -mindepth 1 | wc -l
}

# bats test_tags=sanitize
@test "what nobody asked for, or nobody waits for any more, is not kept" {
	need python3
	up -n 1 sleep 60
	client <<<'s.set("/k", "v")'
	local before
	before=$(descriptors)
	client >out <<-'EOS'
		for i in range(100):  # belongs to a line that has no use for it
		    s.ask("store_get", key="/k", fds=[store.memory(b"x")] * 3)
		s.socket.sendmsg([b'{"type":"sto'], store.along(store.memory(b"x")))
		for i in range(64):
		    s.send("store_get", key="/never", id=i)
		print(s.ask("store_get", key="/never", id=64))
		big = store.memory(bytes(1 << 20))
		for i in range(100):
		    s.ask("store_set", key="/big", fds=[big])
		s.ask("store_delete", key="/big")
	EOS
	assert_has "$(cat out)" "'XR_E_PROTO'|'XR_E_DECODE'"
	wait_for 5 eval '[ "$(descriptors)" -le "$before" ]'
	# The 64 of the one that went are not counted for the next.
	client >out <<-'EOS'
		for i in range(64):
		    s.send("store_get", key="/never", id=i)
		print(s.ask("store_get", key="/never", id=64)["code"])
		s.send("store_set", key="/never", value="", id=65)
		print(sorted(s.answer()["id"] for i in range(65)) == [*range(64), 65])
	EOS
	assert_eq "$(cat out)" 'XR_E_AGAIN
True'
	down
}

@test "a store that is full says so, and has room when keys go" {
	need python3
	up -n 1 sleep 60
	client >out <<-'EOS'
		fd = store.memory(bytes(64 << 20))
		for i in range(3):
		    print(s.ask("store_set", key="/%d" % i, fds=[fd])["type"])
		print(s.ask("store_set", key="/3", fds=[fd])["text"])
		s.ask("store_delete", key="/0")
		print(s.ask("store_set", key="/3", fds=[fd])["type"])
	EOS
	assert_eq "$(cat out)" "done
done
done
store: no room for the key '/3': 201326598 of 268435456 bytes are taken, 67108866 more are needed	delete keys that nobody needs
done"
	down
}

@test "descriptors of large values are refused before the job lacks them" {
	need python3
	cat >many.py <<-'EOS'
		import os, store
		s = store.rank()
		fd = store.memory(bytes(40000))
		n = 0
		while True:
		    a = s.ask("store_set", key="/%d" % n, fds=[fd])
		    if a["type"] != "done":
		        break
		    n += 1
		print(a["code"], a["text"].split(":")[1], 100 < n < 250, flush=True)
		print(s.ask("store_set", key="/small", value="")["type"], flush=True)
	EOS
	try bash -c 'ulimit -n 300; exec "$@"' _ "$XRUN" -n 1 python3 many.py
	assert_eq "$status: $output" "0: XR_E_NOMEM  no descriptor is left for a value beyond 32768 bytes	delete keys that nobody needs, or ulimit -n True
done"
}

@test "AC-S6 the store goes on when rank 0 is killed" {
	need python3
	cat >go_on.py <<-'EOS'
		import os, signal, store, time
		s = store.rank()
		if os.environ["RANK"] == "0":
		    s.set("/left", "behind")
		    s.set("/zero", str(os.getpid()))
		    time.sleep(60)
		pid = int(s.get("/zero", seconds=20))
		if os.environ["RANK"] == "1":
		    os.kill(pid, signal.SIGKILL)
		while os.path.exists("/proc/%d" % pid):
		    time.sleep(0.01)
		n = s.ask("store_add", key="/met", by=1)["sum"]
		s.set("/after/%s" % os.environ["RANK"], "it")
		s.ask("store_wait", keys=["/after/1", "/after/2"], seconds=20)
		print(s.get("/left", seconds=0), s.get("/after/1", seconds=0),
		      s.get("/after/2", seconds=0), flush=True)
	EOS
	job -n 3 --on-failure continue python3 go_on.py
	assert_eq "$(sort <<<"$output")" "[1] behind it it
[2] behind it it"
	assert_has "$stderr" 'rank 0 failed first: SIGKILL'
}

@test "AC-S7 who failed at first meets the others at his second try" {
	need python3
	cat >again.py <<-'EOS'
		import os, store, subprocess, sys
		if os.environ["RANK"] == "0" and len(sys.argv) == 1:
		    # A first try that dies in the middle of its beginning.
		    subprocess.run([sys.executable, sys.argv[0], "dies"],
		                   pass_fds=[97], check=False)
		s = store.rank()
		me = os.environ["RANK"]
		if len(sys.argv) > 1:
		    os.kill(os.getpid(), 9)
		s.set("names/%s" % me, "rank " + me)
		print(s.get("names/0", seconds=20), s.get("names/1", seconds=20), flush=True)
	EOS
	job -n 2 python3 again.py
	assert_eq "$status: $stderr" '0: '
	assert_eq "$(sort <<<"$output")" "[0] rank 0 rank 1
[1] rank 0 rank 1"
}

# bats test_tags=sanitize
@test "a thousand who wait for one key are all answered, and ranks go on" {
	need python3
	up -n 1 sleep 60
	client >out <<-'EOS'
		many = [store.client(control) for i in range(16)]
		for c in many:
		    for i in range(64):
		        c.send("store_get", key="/go", id=i)
		value = base64.b64encode(bytes(32768)).decode()
		s.ask("store_set", key="/go", value=value)
		for c in many:
		    answers = [c.answer() for i in range(64)]
		    assert sorted(a["id"] for a in answers) == [*range(64)]
		    assert all(a["value"] == value for a in answers)
		print("all")
	EOS
	assert_eq "$(cat out)" all
	down
}

@test "a client that waits is not the one that makes room" {
	need python3
	up -n 1 sleep 60
	client >out <<-'EOS'
		s.send("store_get", key="/late", id=1)
		many = [store.client(control) for i in range(80)]
		many[-1].set("/late", "yes")
		print(s.answer()["value"])
	EOS
	assert_eq "$(cat out)" eWVz
	down
}

@test "ranks have up to eight connections each" {
	need python3
	cat >eight.py <<-'EOS'
		import store
		all = [store.rank() for i in range(9)]
		for s in all[1:]:
		    s.set("/k", "v")
		try:
		    print(all[0].get("/k"))
		except (EOFError, OSError):
		    print("closed")
	EOS
	job -n 1 python3 eight.py
	assert_eq "$status: $output" '0: closed'
}

@test "ranks are told where the store is" {
	job -n 1 sh -c 'echo "$XRUN_STORE"'
	assert_eq "$output" control:
	job -n 1 --env-profile none sh -c 'echo "$XRUN_STORE"'
	assert_eq "$output" control:
}

# in_c NAME - the claim of tests/unit/test_worker_store.c, of xrun's store.
in_c()
{
	local tests=$BUILD/tests/unit/test_worker_store

	[ -x "$tests" ] || skip 'criterion is not installed'
	# Its four handles are of as many ranks, of which it is each.
	job -n 1 --env STORE_PLACE=control: env XRUN_SIZE=4 "$tests" --filter "worker_store/$1*"
	assert_eq "$status" 0
	assert_has "$stderr$output" 'Tested: [1-9].*Failing: 0 .*Crashing: 0'
}

@test "AC-S1 in C: a get waits, and names its key when its time is over" {
	in_c AC_S1_
}

@test "AC-S2 a hundred threads that add one end at a hundred" {
	in_c AC_S2_
}

@test "AC-S3 compare_set does what its table says" {
	in_c AC_S3_
}

@test "AC-S4 two prefixes do not see each other" {
	in_c AC_S4_
}

@test "AC-S10 a blocked get ends with CLOSED when its handle is closed" {
	in_c AC_S10_
}

@test "AC-S11 ten thousand keys of 1 KiB and a value of 64 MiB make the round" {
	in_c AC_S11_
}

@test "a program meets the others with env://, on the rank's own connection" {
	job -n 4 "$BUILD/examples/meet"
	assert_eq "$status: $stderr" '0: '
	assert_eq "$(sort <<<"$output")" "[0] rank 0 of 4 reads: rank 1 is here
[1] rank 1 of 4 reads: rank 2 is here
[2] rank 2 of 4 reads: rank 3 is here
[3] rank 3 of 4 reads: rank 0 is here"
}

@test "the same program meets without xrun, at rank 0" {
	export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT
	job --port-hold always -n 1 sh -c 'echo "$MASTER_PORT"'
	MASTER_PORT=$output
	local r pids=()
	for r in 2 1 0; do
		RANK=$r timeout 30 "$BUILD/examples/meet" >"out.$r" 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}"
	assert_eq "$(cat out.0 out.1 out.2)" "rank 0 of 3 reads: rank 1 is here
rank 1 of 3 reads: rank 2 is here
rank 2 of 3 reads: rank 0 is here"
	unset WORLD_SIZE
	try env RANK=0 "$BUILD/examples/meet"
	assert_eq "$status" 17
	assert_has "$stderr" 'not set or empty: WORLD_SIZE'
}
