#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# proxy.bats - the bad line of tests/fault/proxy.c, with both its ends in a few
# lines of Python (tests/fault/ends.py): each fault is seen, and is over.

load helper

# ends - what stdin says, in Python; every line of it holds.
ends()
{
	need python3
	{ echo 'from ends import *'; cat; } >ends.script
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tests/fault \
		timeout 50 python3 ends.script
}

# --- without a fault ---------------------------------------------------------

@test "proxy: bytes and ends go through in both directions, many at a time" {
	ends <<-'END'
		line = Line()
		pairs = [line.connect() for _ in range(20)]
		for i, (near, far) in enumerate(pairs):
		    assert passes(near, far, bytes([i]) * 50000)
		    assert passes(far, near, bytes([99 - i]) * 50000)
		near, far = pairs[7]
		near.shutdown(socket.SHUT_WR)
		assert far.recv(1) == b""
		assert passes(far, near)
		far.close()
		assert near.recv(1) == b""
		line.event("connection 8 over: ended")
		near, far = pairs[8]
		near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		near.close()
		assert is_reset(far)
		line.event("connection 9 over: reset")
		assert line.hang_up() == 0
		assert pairs[0][0].recv(1) == b""
	END
}

@test "proxy: unix sockets, too" {
	ends <<-'END'
		line = Line(unix=True)
		assert line.at == "./line"
		near, far = line.connect()
		assert passes(near, far) and passes(far, near)
		line.say("bytes 1")
		assert passes(near, far) and passes(far, near)
		assert line.hang_up() == 0
	END
}

@test "proxy: more connections than it holds wait until there is room" {
	ends <<-'END'
		line = Line()
		pairs = [line.connect() for _ in range(64)]
		late = line.call()
		late.sendall(b"late")
		line.say("ok")
		assert is_quiet(line.target)
		pairs[5][0].close()
		assert pairs[5][1].recv(1) == b""
		pairs[5][1].close()
		line.event("connection 6 over: ended")
		assert receive(line.target.accept()[0], 4) == b"late"
	END
}

@test "proxy: a target that is not there is told, and resets" {
	ends <<-'END'
		line = Line()
		line.target.close()
		try:
		    near = line.call()
		except ConnectionResetError:  # as soon as that
		    near = None
		line.event("connection 1 over: Connection refused")
		assert near is None or is_reset(near)
	END
}

@test "proxy: a slip ends it with 2" {
	local slip

	for slip in delay 'delay 5' 'delay 5m' 'bytes 0' 'drop 3' half-open sideways \
		up 'up refuse' 'refuse 1' 'rate x' 'up down drop' 'up delay 1s 2'; do
		try "$BUILD/tests/fault/fault_proxy" 1 "$slip"
		assert_eq "$slip $status" "$slip 2"
		assert_has "$stderr" '^fault_proxy: .'
		try bash -c '"$0" 1 <<<"$1"' "$BUILD/tests/fault/fault_proxy" "$slip"
		assert_eq "$slip $status" "$slip 2"
	done
	try "$BUILD/tests/fault/fault_proxy" nowhere/
	assert_eq "$status" 0
	try "$BUILD/tests/fault/fault_proxy" nowhere:1
	assert_eq "$status" 2
	try "$BUILD/tests/fault/fault_proxy"
	assert_eq "$status" 2
}

# --- faults ------------------------------------------------------------------

@test "proxy: delay holds back one direction, and the end with it" {
	ends <<-'END'
		line = Line("up delay 1000s")
		near, far = line.connect()
		near.sendall(b"late")
		near.shutdown(socket.SHUT_WR)
		assert passes(far, near)
		assert is_quiet(far)
		line.say("up ok")
		assert receive(far, 5) == b"late"
	END
}

@test "proxy: delay takes as long as it says" {
	ends <<-'END'
		import time
		line = Line("delay 150ms")
		near, far = line.connect()
		begun = time.monotonic()
		assert passes(near, far) and passes(far, near)
		assert time.monotonic() - begun >= 0.3
	END
}

@test "proxy: rate lets no more through" {
	ends <<-'END'
		import time
		line = Line("rate 64k")
		near, far = line.connect()
		begun = time.monotonic()
		assert passes(near, far, b"x" * 20000)
		assert time.monotonic() - begun >= 0.25
		near.sendall(b"y" * 1000000)
		line.say("ok")
		assert receive(far, 1000000) == b"y" * 1000000
	END
}

@test "proxy: bytes 1 makes every byte a segment" {
	ends <<-'END'
		line = Line("up bytes 1")
		near, far = line.connect()
		assert passes(near, far, bytes(range(200)))
		assert segments(far) == 200
		assert passes(far, near, bytes(range(200)))
		assert segments(near) < 10
	END
}

@test "proxy: corrupt turns one bit of every N-th byte" {
	ends <<-'END'
		line = Line()
		near, far = line.connect()
		assert passes(near, far, b"whole")
		line.say("up corrupt 100")
		near.sendall(bytes(1000))
		got = receive(far, 1000)
		assert [i for i in range(1000) if got[i]] == list(range(99, 1000, 100))
		assert passes(far, near, bytes(1000))
		line.say("ok")
		assert passes(near, far, bytes(1000))
	END
}

@test "proxy: stall is back-pressure for one direction, and nothing is lost" {
	ends <<-'END'
		line = Line("up stall")
		near, far = line.connect()
		sent = fill(near)
		assert 0 < sent < 32 << 20
		assert is_quiet(far)
		assert passes(far, near)
		line.say("ok")
		assert receive(far, sent) == b"x" * sent
	END
}

@test "proxy: drop is a black hole, which no end leaves" {
	ends <<-'END'
		line = Line()
		near, far = line.connect()
		line.say("up drop")
		near.sendall(b"lost")
		near.close()
		gone, held = line.connect()
		gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		gone.close()
		near2, far2 = line.connect()
		near2.sendall(b"lost")
		assert passes(far2, near2)
		near3, far3 = line.connect()
		near3.sendall(b"more than buffers hold" * 500000)
		assert is_quiet(far) and is_quiet(held) and is_quiet(far2)
		line.say("ok")
		assert far.recv(1) == b""
		assert is_reset(held)
		assert passes(near2, far2)
	END
}

@test "proxy: half-open closes one side, and the other is never told" {
	ends <<-'END'
		line = Line()
		near, far = line.connect()
		near2, far2 = line.connect()
		line.say("up half-open", "ok", "down half-open", "ok")
		assert far.recv(1) == b""
		far.close()
		near.sendall(b"to nobody" * 100000)
		assert is_quiet(near)
		assert far2.recv(1) == b""
		again, there = line.connect()
		assert passes(again, there) and passes(there, again)
		assert is_quiet(near)
		near.close()
		line.event("connection 1 over: ended")
	END
}

@test "proxy: down half-open is the other side" {
	ends <<-'END'
		line = Line("down half-open 4")
		near, far = line.connect()
		far.sendall(b"four and more")
		assert receive(near, 5) == b"four"
		line.event("connection 1 half-open")
		far.sendall(b"to nobody" * 100000)
		assert is_quiet(far)
	END
}

@test "proxy: reset cuts both sides, now or behind N bytes" {
	ends <<-'END'
		line = Line("up reset 5")
		near, far = line.connect()
		near.sendall(b"first")
		assert is_reset(near)
		line.event("connection 1 over: reset")
		line.say("ok")
		near, far = line.connect()
		assert passes(near, far, b"more than five")
		line.say("reset", "ok")
		assert is_reset(near) and is_reset(far)
		near, far = line.connect()
		line.say("down reset 6")
		far.sendall(b"12")
		assert receive(near, 2) == b"12"
		assert passes(near, far, b"the other direction")
		far.sendall(b"345678")
		assert receive(near, 4) == b"3456" and is_reset(near)
		line.event("connection 3 over: reset")
	END
}

@test "proxy: refuse closes what connects, and leaves what there is" {
	ends <<-'END'
		line = Line()
		near, far = line.connect()
		line.say("refuse")
		late = line.call()
		assert late.recv(1) == b""
		line.event("connection 2 refused")
		assert passes(near, far) and is_quiet(line.target)
		line.say("ok")
		assert passes(*line.connect())
	END
}
