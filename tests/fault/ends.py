# SPDX-License-Identifier: Apache-2.0
"""Both ends of a connection, and the bad line (proxy.c) between them.

For tests: PYTHONPATH=tests/fault, BUILD, "from ends import *". Whatever waits
for more than PATIENCE fails; nothing here sleeps.
"""
import os
import select
import socket
import struct
import subprocess

PATIENCE = 20
PROXY = os.environ["BUILD"] + "/tests/fault/fault_proxy"


class Line:
    """A running proxy before a target of our own; with unix, both are paths."""

    def __init__(self, *faults, unix=False):
        self.family = socket.AF_UNIX if unix else socket.AF_INET
        self.target = socket.socket(self.family)
        self.target.bind("./target" if unix else ("127.0.0.1", 0))
        self.target.listen()
        self.target.settimeout(PATIENCE)
        options = ["--unix", "./line"] if unix else []
        to = "./target" if unix else "%s:%d" % self.target.getsockname()
        self.proxy = subprocess.Popen([PROXY, *options, to, *faults],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.at = self.event("listening ").split()[1]

    def event(self, begin):
        """The next line of the proxy that begins so."""
        for line in self.proxy.stdout:
            if line.startswith(begin):
                return line.rstrip("\n")
        raise AssertionError(f"the proxy ended before '{begin}'")

    def say(self, *faults):
        """New faults, which have acted when this returns."""
        self.proxy.stdin.write("".join(f + "\n" for f in faults))
        self.proxy.stdin.flush()
        for fault in faults:
            self.event("set " + fault)

    def call(self):
        """Who connects, and nobody yet at the other end."""
        near = socket.socket(self.family)
        near.settimeout(PATIENCE)
        unix = self.family == socket.AF_UNIX
        near.connect(self.at if unix else ("127.0.0.1", int(self.at)))
        return near

    def connect(self):
        """Both ends of a new connection: who connects, who accepts."""
        near = self.call()
        far = self.target.accept()[0]
        far.settimeout(PATIENCE)
        self.event("connection")
        return near, far

    def hang_up(self):
        """The end of stdin; the status."""
        self.proxy.stdin.close()
        return self.proxy.wait(PATIENCE)


def receive(end, count):
    """So many bytes, fewer before an end."""
    got = b""
    while len(got) < count:
        data = end.recv(count - len(got))
        if not data:
            break
        got += data
    return got


def is_quiet(end):
    """Nothing has come, and no end."""
    return not select.select([end], [], [], 0)[0]


def is_reset(end):
    try:
        return end.recv(1) is None
    except ConnectionResetError:
        return True


def passes(a, b, data=b"some bytes"):
    """From end to end, whole."""
    a.sendall(data)
    return receive(b, len(data)) == data


def fill(end, most=64 << 20):
    """Send until nothing goes any more; how much went."""
    end.setblocking(False)
    sent = 0
    while sent < most:
        try:
            sent += end.send(b"x" * 65536)
        except BlockingIOError:
            # As long as the proxy reads, there is room again at once.
            if not select.select([], [end], [], 0.5)[1]:
                break
    end.settimeout(PATIENCE)
    return sent


def segments(end):
    """With data, received so far: tcpi_data_segs_in of struct tcp_info
    (linux/tcp.h), which Linux has from 4.6 on."""
    info = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return struct.unpack_from("I", info, 152)[0]
