# SPDX-License-Identifier: Apache-2.0
"""guard.py - runs programs that may hang, print without end or leave processes behind.

A program runs in a session of its own. It has limits of time, output, file size, memory
and disk. This process is a subreaper: whatever the program started remains a descendant,
and is killed when the program ends or is ended. Programs that may kill any process, as
those with a mutant may, run in a PID namespace of their own, which takes root rights.
"""
import contextlib
import ctypes
import functools
import os
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass

OUTPUT_MAX = 16 << 20     # bytes that one program may print
OUTPUT_KEPT = 256 << 10   # bytes of them that the log has, from the beginning
FILE_MAX = 8 << 30        # bytes of one file
MEMORY_MIN = 1 << 30      # available bytes of the machine
DISK_MIN = 4 << 30        # free bytes below the temporary folder
POLL_MS = 100             # how long a process that has lost its parent stays a zombie
INTERRUPT_S = 20          # for cleaning up after SIGINT
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

NAMESPACE = ["unshare", "--fork", "--pid", "--mount-proc", "--kill-child"]

libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Ended:
    """How a program ended."""
    status: int
    limit: str  # "": by itself; "line": after a line that was awaited
    output: str
    line: str = ""


def become_subreaper():
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def limit_child():
    """Soft limits only: tests set limits of their own."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for what, size in ((resource.RLIMIT_FSIZE, FILE_MAX), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(what)
        if hard != resource.RLIM_INFINITY:
            size = min(size, hard)
        resource.setrlimit(what, (size, hard))


@functools.cache
def has_namespaces():
    """Returns True if this process can make PID namespaces."""
    return subprocess.run([*NAMESPACE, "true"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def confined(command):
    """@command for run(): kill(-1, SIGKILL) there reaches no process of another one."""
    if not has_namespaces():
        return command
    return [*NAMESPACE, "bash", "-c", '"$@"; exit $?', "bash", *command]


def descendants():
    """Ids of all processes below this one, zombies too."""
    below = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat", "rb") as f:
                parent = int(f.read().rsplit(b")", 1)[1].split()[1])
            below.setdefault(parent, []).append(int(name))
    found, todo = [], [os.getpid()]
    while todo:
        children = below.get(todo.pop(), [])
        found += children
        todo += children
    return found


def reap():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def reap_orphans(but):
    """Children that others have left to this process, as init(1) does; @but is its own."""
    with contextlib.suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid == but:
                return
            os.waitpid(ended.si_pid, 0)


def end_all(patience_s=30):
    """Kills all descendants. Returns how many there were. RuntimeError if one stays."""
    until, killed = time.monotonic() + patience_s, set()
    while True:
        reap()
        pids = descendants()
        if not pids:
            return len(killed)
        if time.monotonic() > until:
            raise RuntimeError(f"processes that cannot be killed: {pids}")
        ends = select.poll()
        fds = []
        for pid in pids:
            killed.add(pid)
            with contextlib.suppress(ProcessLookupError):
                fds.append(os.pidfd_open(pid))
                ends.register(fds[-1], select.POLLIN)
                os.kill(pid, signal.SIGKILL)
        ends.poll(1000)
        for fd in fds:
            os.close(fd)


def available_memory():
    with open("/proc/meminfo") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return MEMORY_MIN


class Watch:
    """What ends a program before its time."""

    def __init__(self, limit_s, awaited):
        self.until = time.monotonic() + limit_s
        self.awaited = awaited
        self.printed, self.kept, self.part, self.line = 0, b"", b"", ""

    def take(self, data):
        self.printed += len(data)
        self.kept += data[:max(0, OUTPUT_KEPT - len(self.kept))]
        *lines, self.part = (self.part + data).split(b"\n")
        self.part = self.part[-4096:]
        for line in lines:
            text = line.decode(errors="replace")
            if self.awaited and not self.line and self.awaited.match(text):
                self.line = text

    def limit(self):
        if self.line:
            return "line"
        if time.monotonic() > self.until:
            return "time"
        if self.printed > OUTPUT_MAX:
            return "output"
        if available_memory() < MEMORY_MIN:
            return "memory"
        if shutil.disk_usage(tempfile.gettempdir()).free < DISK_MIN:
            return "disk"
        return ""


def follow(proc, watch):
    """Until the program has ended or a limit is reached, which is returned."""
    out, ended = proc.stdout.fileno(), os.pidfd_open(proc.pid)
    events = select.poll()
    events.register(out, select.POLLIN)
    events.register(ended, select.POLLIN)
    try:
        while True:
            ready = {fd for fd, _ in events.poll(POLL_MS)}
            reap_orphans(proc.pid)
            if out in ready:
                data = os.read(out, 1 << 16)
                if data:
                    watch.take(data)
                else:
                    events.unregister(out)
            limit = watch.limit()
            if limit or (ended in ready and out not in ready):
                return limit
    finally:
        os.close(ended)


def interrupt(proc):
    """As Ctrl-C does: bats runs the teardown of the test that it is at."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(proc.pid, signal.SIGINT)
    until = time.monotonic() + INTERRUPT_S
    while proc.poll() is None and time.monotonic() < until:
        if select.select([proc.stdout], [], [], 0.2)[0] and \
                not os.read(proc.stdout.fileno(), 1 << 16):
            with contextlib.suppress(subprocess.TimeoutExpired):
                proc.wait(max(0, until - time.monotonic()))


def run(command, limit_s, awaited=None, **more):
    """Runs @command with the limits. A line that matches @awaited interrupts it."""
    watch = Watch(limit_s, awaited)
    with tempfile.TemporaryDirectory(prefix="xs.", ignore_cleanup_errors=True) as place:
        os.chmod(place, 0o1777)  # for tests that become another user
        env = {**more.pop("env", os.environ), "TMPDIR": place}
        proc = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                start_new_session=True, preexec_fn=limit_child,
                                env=env, **more)
        try:
            limit = follow(proc, watch)
            if limit in ("line", "time"):
                interrupt(proc)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(proc.pid, signal.SIGKILL)
            proc.wait()
            proc.stdout.close()
            end_all()
    return Ended(proc.returncode, limit, watch.kept.decode(errors="replace"), watch.line)
