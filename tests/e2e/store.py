# SPDX-License-Identifier: Apache-2.0
"""A connection to a job's rendezvous store, for tests: the protocol and nothing
else, so that what a C program is told has a second reader.

    s = store.rank()            # of a rank's own, by descriptor 97
    s = store.client(path)      # of anybody of the same user
    s.ask("store_get", key="/k", seconds=1)
"""
import array
import base64
import fcntl
import json
import os
import socket

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def rank():
    ours, theirs = socket.socketpair()
    fd = os.dup(int(os.environ["XRUN_CONTROL_FD"].split(":")[0]))
    with socket.socket(fileno=fd) as told:
        told.sendmsg([b'{"type":"hello"}'], along(theirs.fileno()))
    theirs.close()
    return Store(ours)


def client(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return Store(s)


def along(*fds):
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]


def memory(data, seals=SEALS):
    fd = os.memfd_create("value", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    with open(os.dup(fd), "wb") as file:
        file.write(data)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


class Store:
    def __init__(self, s):
        self.socket = s
        self.text = b""
        self.fds = []
        self.welcome = self.answer()

    def send(self, type, fds=(), **fields):
        line = json.dumps({"type": type, **fields}).encode() + b"\n"
        self.socket.sendmsg([line], along(*fds) if fds else [])

    def answer(self):
        while b"\n" not in self.text:
            data, fds, _, _ = socket.recv_fds(self.socket, 65536, 4)
            if not data:
                raise EOFError
            self.text += data
            self.fds += fds
        line, self.text = self.text.split(b"\n", 1)
        return json.loads(line)

    def ask(self, type, **fields):
        self.send(type, **fields)
        return self.answer()

    def set(self, key, text):
        value = base64.b64encode(text.encode()).decode()
        return self.ask("store_set", key=key, value=value)["type"]

    def get(self, key, **more):
        a = self.ask("store_get", key=key, **more)
        return base64.b64decode(a["value"]).decode() if "value" in a else a
