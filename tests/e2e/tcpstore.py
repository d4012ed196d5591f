# SPDX-License-Identifier: Apache-2.0
"""A client of PyTorch's TCPStore at MASTER_PORT, without PyTorch.

tcpstore.py ACTION... - each of: set=KEY:VALUE get=KEY add=KEY:N queue=NAME:VALUE
pop=NAME bad uid=N (change the user first) leave (ends the process)
Rank 0 does the actions before "--", the others those behind it."""
import os
import socket
import struct
import sys

SET, GET, ADD, WAIT, PING, PUSH, POP = 1, 3, 4, 6, 13, 14, 15


class Client:
    def __init__(self):
        self.socket = socket.create_connection(
            (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), 10)
        self.socket.sendall(struct.pack("<BI", 0, 0x3c85f7ce))
        # As PyTorch's client: a server cannot know the user of a connection that is
        # closed before it is accepted, and refuses it.
        self.socket.sendall(struct.pack("<BI", PING, os.getpid()))
        self.receive(4)

    def receive(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def number(self):
        return struct.unpack("<q", self.receive(8))[0]

    def ask(self, request, *texts, more=b""):
        data = bytes([request])
        for text in texts:
            data += struct.pack("<q", len(text)) + text.encode()
        self.socket.sendall(data + more)

    def wait(self, key):
        self.socket.sendall(bytes([WAIT]) + struct.pack("<q", 1))
        self.socket.sendall(struct.pack("<q", len(key)) + key.encode())
        return self.receive(1) == b"\0"

    def do(self, action, value):
        key, _, value = value.partition(":")
        if action == "set":
            self.ask(SET, key, value)
        elif action == "get":
            self.wait(key)
            self.ask(GET, key)
            print(key, self.receive(self.number()).decode(), flush=True)
        elif action == "add":
            self.ask(ADD, key, more=struct.pack("<q", int(value)))
            print(key, self.number(), flush=True)
        elif action == "queue":
            self.ask(PUSH, key, value)
        elif action == "pop":
            self.wait(key)
            self.ask(POP, key)
            self.number()
            print(key, self.receive(self.number()).decode(), flush=True)
        elif action == "bad":
            self.ask(99)
            try:
                self.receive(1)
            except (EOFError, ConnectionError):
                print("closed", flush=True)


def main():
    words = sys.argv[1:]
    cut = words.index("--")
    words = words[:cut] if os.environ["RANK"] == "0" else words[cut + 1:]
    if words and words[0].startswith("uid="):
        os.setuid(int(words.pop(0)[4:]))
    try:
        client = Client() if words else None
        for word in words:
            action, _, value = word.partition("=")
            client.do(action, value)
    except (EOFError, ConnectionError):
        print("refused", flush=True)


main()
