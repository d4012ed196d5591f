#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""store_attack.py PORT KIND [COUNT] - a hostile client of a tcp:// store.

Kinds: silent (COUNT connections that send nothing), hello (COUNT connections that
ask for a challenge and send no proof), keys (requests without a proof, and after a
wrong one), bind (the same, bound to the device "lo"), close and reset (a request that
sets /attack, and the end of the connection before it is accepted), key (prints
whether /attack is set; auth=none), junk (COUNT connections with random bytes). Prints "held N" after the
connections were made, then keeps them until the end of stdin; "read N" is the
number of replies to requests, which must be 0.
"""
import os
import random
import select
import socket
import struct
import sys

SET, CHECK, HELLO, PROOF, VERSION = 1, 6, 64, 65, 2
MAGIC = b"xrun store"
ONE_KEY = 2, 6, 3, 7, 5  # requests that need no more than a key


def frame(kind, ident, number, parts):
    body = struct.pack("<BBHqqi", kind, 0, len(parts), ident, number, 0)
    body += b"".join(struct.pack("<I", len(p)) for p in parts) + b"".join(parts)
    return struct.pack("<I", len(body)) + body


def connect(port, bind=False):
    s = socket.socket()
    s.settimeout(5)
    if bind:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
    s.connect(("127.0.0.1", port))
    return s


def replies(s, data):
    """The number of replies to requests among what the server sends until it
    closes the connection, or is silent for a second."""
    count, got = 0, b""
    try:
        s.sendall(data)
        while select.select([s], [], [], 1)[0]:
            more = s.recv(65536)
            if not more:
                break
            got += more
    except OSError:
        pass
    while len(got) >= 5:
        count += got[4] == 128
        got = got[4 + struct.unpack("<I", got[:4])[0]:]
    return count


def keys(port, bind):
    hellos = [b"", frame(HELLO, 0, VERSION, [MAGIC]),
              frame(HELLO, 0, 1, [MAGIC]),
              frame(HELLO, 0, VERSION, [MAGIC, os.urandom(32)])]
    hellos += [hellos[3] + frame(PROOF, 0, 0, [os.urandom(32)]),
               hellos[3] + frame(PROOF, 0, 0, [b""]),
               hellos[3] + frame(PROOF, 0, 0, [])]
    count = 0
    for hello in hellos:
        for key in b"/rpc/dynamic/secret", b"/rpc/kind", b"/k":
            asks = b"".join(frame(op, op, 0, [key]) for op in ONE_KEY)
            try:
                with connect(port, bind) as s:
                    count += replies(s, hello + asks)
            except OSError:
                pass
    print("read", count, flush=True)


def leave(port, reset):
    """The server is stopped, so it accepts the connection later."""
    s = connect(port)
    s.sendall(frame(HELLO, 0, VERSION, [MAGIC]) + frame(SET, 1, 0, [b"/attack", b"x"]))
    if reset:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
    print("left", flush=True)


def key(port):
    with connect(port) as s:
        s.sendall(frame(HELLO, 0, VERSION, [MAGIC]))
        s.recv(4096)
        s.sendall(frame(CHECK, 2, 0, [b"/attack"]))
        reply = s.recv(4096)
    print("key", struct.unpack("<q", reply[16:24])[0], flush=True)


def hold(port, kind, count):
    held = []
    for _ in range(count):
        try:
            s = connect(port)
            if kind == "hello":
                s.sendall(frame(HELLO, 0, VERSION, [MAGIC, os.urandom(32)]))
            elif kind == "junk":
                s.sendall(random.randbytes(random.randrange(1, 300)))
            held.append(s)
        except OSError:
            pass
    print("held", len(held), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    number, what = int(sys.argv[1]), sys.argv[2]
    if what in ("keys", "bind"):
        keys(number, what == "bind")
    elif what in ("close", "reset"):
        leave(number, what == "reset")
    elif what == "key":
        key(number)
    else:
        hold(number, what, int(sys.argv[3]))
