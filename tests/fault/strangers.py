#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""strangers.py XRUN BUILD PLACE ROUNDS SEED - hostile clients of a running job.

The scene is a group of two members outside xrun, with a store at tcp://, one with
auth=none, and a job of xrun with --http. Each round attacks a store, the RPC port of a
member, the control socket, the HTTP port or the TCPStore at MASTER_PORT: as this user
without a secret, or as another user if this one is root. That one binds some sockets to
"lo", and ends some connections before they are accepted. After each round the
descriptors are counted; every tenth round a client with the secret uses the store, and
the job is asked for its state. No function may run, no reply may reach a client without
a proof or another user, no key may be set, no process may use more than DESCRIPTORS
descriptors, and the job ends with all its output.
"""
import encodings.idna  # another user may not be able to load it later
import hashlib
import hmac
import json
import multiprocessing
import os
import random
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
import traceback

SET, GET, CHECK, HELLO, PROOF, REPLY, VERSION = 1, 2, 6, 64, 65, 128, 2
MAGIC = b"xrun store"
ONE_KEY = 2, 6, 3, 7, 5  # requests that need no more than a key
DESCRIPTORS = 200
LINES = 200
OTHER = 1001

xrun, build, place, rounds, seed = sys.argv[1:6]
rounds = int(rounds)
target = os.path.join(build, "tests/prog/rpc_target")
violations = 0
kinds = {}


def violation(text):
    global violations
    violations += 1
    print("VIOLATION strangers:", text, flush=True)


def await_that(what, true, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = true()
        if got:
            return got
        time.sleep(0.02)
    raise SystemExit(f"VIOLATION strangers: {what}: not within {seconds} s")


# --- the scene ---------------------------------------------------------------

def listeners(pid):
    """The ports on which a process listens."""
    inodes, ports = set(), []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue
        if found:
            inodes.add(found[1])
    with open("/proc/net/tcp", encoding="ascii") as f:
        for line in f.readlines()[1:]:
            word = line.split()
            if word[3] == "0A" and word[9] in inodes:
                ports.append(int(word[1].split(":")[1], 16))
    return ports


def free_port():
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def content(name):
    with open(os.path.join(place, name), encoding="utf-8", errors="replace") as f:
        return f.read()


class Scene:
    """All processes that are attacked."""

    def __init__(self):
        self.store, self.open_store = free_port(), free_port()
        self.members = []
        self.start_group("member", f"tcp://127.0.0.1:{self.store}")
        self.start_group("open", f"tcp://127.0.0.1:{self.open_store}?auth=none")
        self.rpc = [p for m in self.members for p in listeners(m.pid)
                    if p not in (self.store, self.open_store)]
        self.start_job()

    def start_group(self, name, address):
        for rank in "0", "1":
            with open(f"{place}/{name}{rank}", "wb") as out:
                self.members.append(subprocess.Popen(
                    [target, address, rank, "2"], stdin=subprocess.PIPE, stdout=out,
                    stderr=out, env={**os.environ, "XRUN_RPC_UNAUTHENTICATED": "1"}))
        for rank in "0", "1":
            await_that(f"{name} {rank}", lambda r=rank: "ready" in content(name + r))

    def start_job(self):
        self.job_out = open(f"{place}/job.out", "wb")
        # Each line that the driver writes to the FIFO, rank 0 prints.
        os.mkfifo(f"{place}/lines")
        self.job = subprocess.Popen(
            [xrun, "--job", "strangers", "--port-hold", "serve", "--http", "127.0.0.1:0", "-n", "2", "sh", "-c",
             'if [ "$RANK" = 1 ]; then echo "$MASTER_PORT" >"$1"; else exec cat <"$0"; fi',
             f"{place}/lines", f"{place}/port"],
            stdin=subprocess.DEVNULL, stdout=self.job_out,
            stderr=open(f"{place}/job.err", "wb"))
        self.lines = open(f"{place}/lines", "w", encoding="ascii", buffering=1)
        self.written = 0
        facts = await_that("the job's HTTP port", self.facts)
        await_that("MASTER_PORT", lambda: os.path.exists(f"{place}/port") and content("port"))
        self.tcpstore = int(content("port"))
        self.http = int(facts["http"].rsplit(":", 1)[1])
        self.control = await_that("the control socket", self.find_control)
        self.supervisor = self.children(self.job.pid)[0]
        self.aides = self.children(self.supervisor)

    @staticmethod
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(p) for p in f.read().split()]

    def facts(self):
        got = subprocess.run([xrun, "ps", "--json", "strangers"], capture_output=True,
                             timeout=30, check=False)
        try:
            facts = json.loads(got.stdout)
        except ValueError:
            return None
        return facts if "http" in facts else None

    @staticmethod
    def find_control():
        path = os.path.join(os.environ["XDG_RUNTIME_DIR"], "xrun/strangers/control")
        return path if os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode) else None

    def line(self):
        self.written += 1
        self.lines.write(f"line {self.written}\n")

    def check(self, index):
        for pid in [m.pid for m in self.members] + [self.job.pid, self.supervisor] + self.aides:
            try:
                if descriptors(pid) > DESCRIPTORS:
                    violation(f"round {index}: process {pid} has {descriptors(pid)} descriptors")
            except OSError:
                violation(f"round {index}: process {pid} has ended")
        for name in "member0", "member1", "open0", "open1":
            if "called by" in content(name):
                violation(f"round {index}: a function of {name} was called")

    def ask(self, index):
        """The job and the store answer those who may ask."""
        if self.facts() is None:
            violation(f"round {index}: the job does not answer")
        value = b"value %d" % index
        try:
            got = use_store(self.store, value)
        except (OSError, struct.error) as e:
            got = e
        if got != value:
            violation(f"round {index}: a client with the secret read {got!r}")
        for what, known in ("auth=none", open_key), ("TCPStore", tcpstore_key):
            try:
                got = known(self)
            except (OSError, struct.error) as e:
                got = e
            if got != 0:
                violation(f"round {index}: the key of another user at {what}: {got!r}")

    def end(self):
        """The job ends with all lines, and the members well."""
        self.lines.close()
        status = self.job.wait(60)
        if status != 0:
            violation(f"the job ended with {status}: {content('job.err')}")
        lines = [f"[0] line {i + 1}" for i in range(self.written)]
        if content("job.out").split("\n")[:-1] != lines:
            violation(f"{self.written} lines were printed, and {content('job.out').count(chr(10))} came")
        for member in self.members:
            member.stdin.close()
            if member.wait(60) != 0:
                violation("a member failed")


# --- attackers ---------------------------------------------------------------

def frame(kind, ident, number, parts):
    body = struct.pack("<BBHqqi", kind, 0, len(parts), ident, number, 0)
    body += b"".join(struct.pack("<I", len(p)) for p in parts) + b"".join(parts)
    return struct.pack("<I", len(body)) + body


def receive_frame(s):
    head = s.recv(4, socket.MSG_WAITALL)
    body = s.recv(struct.unpack("<I", head)[0], socket.MSG_WAITALL)
    count = struct.unpack("<H", body[2:4])[0]
    lengths = struct.unpack(f"<{count}I", body[24:24 + 4 * count])
    parts, at = [], 24 + 4 * count
    for n in lengths:
        parts.append(body[at:at + n])
        at += n
    return body[0], parts


def prove(s):
    """True after a greeting with the secret."""
    with open(os.environ["XRUN_STORE_SECRET_FILE"], "rb") as f:
        text = f.read().rstrip()
    key = hmac.new(b"xrun store secret".ljust(32, b"\0"), text, hashlib.sha256).digest()
    mine = os.urandom(32)
    s.sendall(frame(HELLO, 0, VERSION, [MAGIC, mine]))
    kind, parts = receive_frame(s)
    if kind != HELLO or len(parts) != 3:
        return False
    data = b"store client".ljust(16, b"\0") + mine + parts[1]
    s.sendall(frame(PROOF, 0, 0, [hmac.new(key, data, hashlib.sha256).digest()]))
    return receive_frame(s)[0] == PROOF


def use_store(port, value):
    """What a client with the secret reads after it has set a value."""
    with to_port(port)() as s:
        s.settimeout(20)
        if not prove(s):
            return "no PROOF"
        s.sendall(frame(SET, 1, 0, [b"/strangers/k", value]))
        receive_frame(s)
        s.sendall(frame(GET, 2, 0, [b"/strangers/k"]))
        return receive_frame(s)[1][0]


def open_key(scene):
    """1 if another user has set a key of the store with auth=none."""
    with to_port(scene.open_store)() as s:
        s.settimeout(20)
        s.sendall(frame(HELLO, 0, VERSION, [MAGIC]))
        receive_frame(s)
        s.sendall(frame(CHECK, 2, 0, [b"/attack"]))
        head = s.recv(4, socket.MSG_WAITALL)
        body = s.recv(struct.unpack("<I", head)[0], socket.MSG_WAITALL)
        return struct.unpack("<q", body[12:20])[0]


def words(*texts):
    return b"".join(struct.pack("<Q", len(t)) + t for t in texts)


TCPSTORE_HELLO = b"\0" + struct.pack("<I", 0x3C85F7CE)
TCPSTORE_SET = TCPSTORE_HELLO + b"\1" + words(b"/attack", b"x")


def tcpstore_key(scene):
    """The same of the TCPStore at MASTER_PORT."""
    with to_port(scene.tcpstore)() as s:
        s.settimeout(20)
        s.sendall(TCPSTORE_HELLO + b"\5" + struct.pack("<Q", 1) + words(b"/attack"))
        return 1 - s.recv(1)[0]


def spoilt(rng, data):
    """The bytes with some changed, cut off, or repeated."""
    data = bytearray(data)
    for _ in range(rng.randrange(4)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.3:
        data = data[:rng.randrange(len(data) + 1)]
    return bytes(data) * rng.choice([1, 1, 1, 3])


def talk(connect, pieces, wait=0.05):
    """What comes back to the pieces, each sent after a moment."""
    got = b""
    try:
        with connect() as s:
            s.settimeout(wait)
            for piece in pieces:
                s.sendall(piece)
                try:
                    got += s.recv(65536)
                except socket.timeout:
                    pass
            try:
                got += s.recv(65536)
            except socket.timeout:
                pass
    except OSError:
        pass
    return got


def to_port(port, bound=False):
    def connect():
        s = socket.socket()
        s.settimeout(2)
        if bound:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
        s.connect(("127.0.0.1", port))
        return s
    return connect


def to_path(path):
    def connect():
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(2)
        s.connect(path)
        return s
    return connect


def attack_store(rng, scene):
    nonce = rng.randbytes(32)
    hello = frame(HELLO, 0, VERSION, [MAGIC, nonce])
    wrong = [hello, frame(PROOF, 0, 0, [rng.randbytes(32)])]
    greeting = rng.choice([
        wrong, wrong, [], [frame(HELLO, 0, VERSION, [MAGIC])], [frame(HELLO, 0, 1, [MAGIC])], [hello],
        [hello, frame(PROOF, 0, 0, [b""])],
        [hello, hello], [frame(HELLO, 1, VERSION, [MAGIC, nonce, nonce])],
        [spoilt(rng, hello)], [struct.pack("<I", rng.randrange(1 << 32)) + b"x" * 50]])
    key = rng.choice([b"/rpc/dynamic/secret", b"/rpc/0/secret", b"/rpc/kind", b"/k", b""])
    asks = b"".join(frame(op, op, 0, [key]) for op in ONE_KEY)
    if rng.random() < 0.3:
        asks = spoilt(rng, asks)
    got = talk(to_port(scene.store), greeting + [asks])
    # The server's own nonce and proof are sent back to it.
    if len(got) > 60 and rng.random() < 0.5:
        talk(to_port(scene.store), [hello, frame(PROOF, 0, 0, [got[-32:]]), asks])
    while len(got) >= 5:
        if got[4] == REPLY:
            return "the store answered a client without a proof"
        got = got[4 + struct.unpack("<I", got[:4])[0]:]
    return None


def attack_open(rng, scene):
    """The store that asks for no secret, by another user."""
    ask = b"".join(frame(op, op, 0, [rng.choice([b"/rpc/dynamic/secret", b"/rpc/kind"])])
                   for op in ONE_KEY)
    got = talk(to_port(scene.open_store, rng.random() < 0.7),
               [frame(HELLO, 0, VERSION, [MAGIC]), ask + frame(SET, 1, 0, [b"/attack", b"x"])])
    return f"another user read {got[:60]!r} of the store with auth=none" if got else None


def attack_tcpstore(rng, scene):
    got = talk(to_port(scene.tcpstore, rng.random() < 0.7),
               [TCPSTORE_SET, b"\3" + words(b"/attack")])
    return f"another user read {got[:60]!r} of the TCPStore" if got else None


def attack_leave(rng, scene):
    """The server is stopped now; it accepts the connections later."""
    for _ in range(rng.randrange(1, 20)):
        s = to_port(scene.open_store, rng.random() < 0.5)()
        s.sendall(frame(HELLO, 0, VERSION, [MAGIC]) + frame(SET, 1, 0, [b"/attack", b"x"]))
        if rng.random() < 0.5:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
        s = to_port(scene.tcpstore, rng.random() < 0.5)()
        s.sendall(TCPSTORE_SET)
        s.close()


def attack_excess(rng, scene):
    """More connections with a proof than the group has use for."""
    held = []
    for _ in range(rng.randrange(100, 250)):
        try:
            s = to_port(scene.store)()
            held.append(s)
            if not prove(s):
                break
        except (OSError, struct.error):
            break
    counts = [descriptors(m.pid) for m in scene.members]
    for s in held:
        s.close()
    if max(counts) > DESCRIPTORS:
        return f"{max(counts)} descriptors with {len(held)} connections that know the secret"
    return None


def attack_rpc(rng, scene):
    bound = rng.random() < 0.3
    junk = rng.choice([b"", b"GET / HTTP/1.0\r\n\r\n", rng.randbytes(rng.randrange(1, 600)),
                       b"\0" * 512, b"\xff" * 80, b"XRUN" + rng.randbytes(76)])
    talk(to_port(rng.choice(scene.rpc), bound), [junk, rng.randbytes(rng.randrange(100))])


def attack_flood(rng, scene):
    """Many connections at once, which are kept for a moment."""
    port = rng.choice([scene.store, scene.http] + scene.rpc)
    held = []
    for _ in range(rng.randrange(250, 600)):
        try:
            s = to_port(port)()
            s.setblocking(False)
            s.send(rng.choice([b"x", rng.randbytes(40), frame(HELLO, 0, VERSION, [MAGIC])]))
            held.append(s)
        except OSError:
            pass
    time.sleep(rng.random() * 0.05)
    counts = [descriptors(m.pid) for m in scene.members]
    for s in held:
        s.close()
    if max(counts) > DESCRIPTORS:
        return f"{max(counts)} descriptors while {len(held)} connections to port {port} are open"
    return None


def attack_control(rng, scene, foreign):
    lines = rng.choice([
        b'{"type":"hello","v":1,"role":"client"}\n{"type":"kill"}\n', b"{\n" * 50,
        b"x" * rng.randrange(1, 100000), rng.randbytes(rng.randrange(1, 2000)),
        b'{"type":"store.get","key":"/k"}\n', b"[" * 500 + b"\n", b"\n" * 1000])
    got = talk(to_path(scene.control), [lines])
    if foreign and got:
        return f"the control socket answered another user: {got[:80]!r}"
    return None


def attack_http(rng, scene):
    path = rng.choice(["/", "/metrics", "/api/v1/job", "/api/v1/ranks", "/../x", "/%00"])
    method = rng.choice(["GET", "HEAD", "POST", "PUT", "OPTIONS", "X"])
    token = rng.choice(["", f"Authorization: Bearer {rng.randbytes(16).hex()}\r\n",
                        "Authorization: Bearer \r\n", "Cookie: token=1\r\n"])
    host = rng.choice([f"Host: 127.0.0.1:{scene.http}\r\n", "", "Host: evil.example\r\n"])
    text = f"{method} {path} HTTP/1.1\r\n{host}{token}\r\n".encode()
    if rng.random() < 0.4:
        text = spoilt(rng, text)
    got = talk(to_port(scene.http), [text])
    if b" 200 " in got.split(b"\r\n")[0] or b"strangers" in got:
        return f"HTTP answered {text!r} with {got[:80]!r}"
    return None


def kind_of(rng, foreign):
    if foreign:  # /proc of the members cannot be read
        return rng.choice(["store", "rpc", "control", "http", "open", "open", "tcpstore",
                           "tcpstore", "leave", "leave"])
    return rng.choice(["store", "store", "rpc", "control", "http", "flood", "excess"])


def attack(scene, index, foreign, answers):
    """One round, in a process of its own."""
    try:
        answers.put(attack_as(scene, index, foreign))
    except Exception:  # pylint: disable=broad-except
        answers.put(traceback.format_exc())


def attack_as(scene, index, foreign):
    rng = random.Random(f"{seed} {index}")
    kind = kind_of(rng, foreign)
    if foreign:
        os.setgroups([])
        os.setresgid(OTHER, OTHER, OTHER)
        os.setresuid(OTHER, OTHER, OTHER)
    if kind == "control":
        said = attack_control(rng, scene, foreign)
    else:
        said = globals()["attack_" + kind](rng, scene)
    return f"{kind}: {said}" if said else ""


def attack_round(scene, index):
    answers = multiprocessing.SimpleQueue()
    foreign = os.geteuid() == 0 and index % 2 == 1
    kind = kind_of(random.Random(f"{seed} {index}"), foreign)
    kinds[kind] = kinds.get(kind, 0) + 1
    stopped = scene.members[2].pid if kind == "leave" else 0
    process = multiprocessing.get_context("fork").Process(
        target=attack, args=(scene, index, foreign, answers))
    if stopped:
        os.kill(stopped, signal.SIGSTOP)
    process.start()
    process.join(60)
    if stopped:
        os.kill(stopped, signal.SIGCONT)
        open_key(scene)  # it has accepted all by now
    if process.exitcode != 0:
        process.kill()
        violation(f"round {index}: the attack did not end: {process.exitcode}")
    elif (said := answers.get()):
        violation(f"round {index}: {said}")


def main():
    signal.alarm(120 + rounds)
    scene = Scene()
    started = time.monotonic()
    for index in range(rounds):
        attack_round(scene, index)
        scene.check(index)
        if index % max(1, rounds // LINES) == 0:
            scene.line()
        if index % 10 == 9:
            scene.ask(index)
    scene.end()
    print(f"# {rounds} rounds in {time.monotonic() - started:.0f} s, seed {seed}, "
          f"{violations} violations; "
          + ", ".join(f"{k} {n}" for k, n in sorted(kinds.items())))
    return violations != 0


if __name__ == "__main__":
    sys.exit(main())
