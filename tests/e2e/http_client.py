#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client that need not be well-behaved: http_client.py ADDRESS WHAT [TOKEN]

ADDRESS is unix:PATH or http://HOST:PORT. Prints what came of it, a line each.
"""
import socket
import sys
import time


def dial(address):
    if address.startswith("unix:"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(address[5:])  # waits while nobody is let in
        s.settimeout(20)
        return s
    host, port = address[7:].rsplit(":", 1)
    return socket.create_connection((host.strip("[]"), int(port)), 20)


def hear(s):
    """All that is said, up to the end of it."""
    said = b""
    try:
        while piece := s.recv(65536):
            said += piece
    except ConnectionResetError:
        said += b" reset"
    return said


def status(said):
    return said.split(b" ", 2)[1].decode() if said.startswith(b"HTTP/") else repr(said[:40])


def ask(address, data):
    s = dial(address)
    try:
        s.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass
    said = hear(s)
    s.close()
    return said


HOST = b"Host: localhost\r\n"
GET = b"GET /metrics HTTP/1.1\r\n"


def odd(address):
    """Requests that are none, each answered by its status."""
    for name, data in {
        "huge header": GET + HOST + b"X: " + b"x" * 100000 + b"\r\n\r\n",
        "many headers": GET + HOST + b"X: y\r\n" * 1000 + b"\r\n",
        "huge line": b"GET /" + b"x" * 100000,
        "post": b"POST /metrics HTTP/1.1\r\n" + HOST + b"\r\n",
        "body": GET + HOST + b"Content-Length: 5\r\n\r\nhello",
        "chunks": GET + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "dots": b"GET /../../etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n",
        "nul": b"GET /%00 HTTP/1.1\r\n" + HOST + b"\r\n",
        "bare nul": b"GET /\0 HTTP/1.1\r\n" + HOST + b"\r\n",
        "two hosts": GET + HOST + HOST + b"\r\n",
        "control": b'{"type":"status"}\n',
        "noise": bytes(range(256)) * 64,
    }.items():
        print(f"{name}: {status(ask(address, data))}")


def pipelined(address):
    """A thousand requests in one connection: one is answered."""
    said = ask(address, (GET + HOST + b"\r\n") * 1000)
    print(status(said), said.count(b"HTTP/1.1"))


def head(address):
    said = ask(address, b"HEAD /metrics HTTP/1.1\r\n" + HOST + b"\r\n")
    print(status(said), said.endswith(b"\r\n\r\n"), b"Content-Length: 0" in said)


def crowd(address):
    """300 that connect and say half of something; then one who asks."""
    all = []
    for i in range(300):
        s = dial(address)
        try:
            s.sendall(b"GET /met" if i % 2 else b"\r")
        except OSError:
            pass
        all.append(s)
    print(status(ask(address, GET + HOST + b"\r\n")))
    for s in all:
        s.close()


def deaf(address):
    """60 that ask and take no byte, and some who leave; then one who asks."""
    all = []
    for i in range(60):
        s = dial(address)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        s.sendall(GET + HOST + b"\r\n")
        all.append(s)
    for s in all[::2]:
        s.close()
    print(status(ask(address, GET + HOST + b"\r\n")))


def slow(address):
    """A byte now and then: it is told that that was too slow."""
    s = dial(address)
    begun = time.monotonic()
    s.settimeout(0.5)
    said = b""
    for c in (GET + HOST + b"X: " + b"y" * 1000).decode():
        try:
            s.sendall(c.encode())
            said = s.recv(1000)
            break
        except TimeoutError:
            continue
        except OSError:
            break
    print(status(said), 9 < time.monotonic() - begun < 30)


def flood(address, seconds="3"):
    """As many as go, one after the other; prints how many were answered."""
    until = time.monotonic() + float(seconds)
    answered = 0
    while time.monotonic() < until:
        answered += status(ask(address, GET + HOST + b"\r\n")) == "200"
    print(answered > 10)


globals()[sys.argv[2]](sys.argv[1], *sys.argv[3:])
