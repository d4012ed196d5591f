# SPDX-License-Identifier: Apache-2.0
"""Other people's tests with libxrun's things in place of theirs: a process a test, TAP,
and a list of what becomes of each. For torch_suite.py and pool_suite.py.

A line of the list has a name, a state, and why.
"""
import argparse
import fnmatch
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LIMIT_S = 60        # of a test; its ranks have half of that
STUCK_S = 20        # then is written where each of its processes is
STATES = ("passes", "passes<3.12", "out", "defect")


def passes(state):
    """Of a version of Python, too."""
    word, _, version = state.partition("<")
    return word == "passes" and (not version or sys.version_info[:2] <
                                 tuple(map(int, version.split("."))))


class Cannot(Exception):
    """Why nothing can be run here."""


# --- one test ---------------------------------------------------------------

def run_test(test):
    """In a process of its own. The exit status: 0, 1, or 77 skipped."""
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(test)
    if result.skipped:
        return 77
    return 0 if result.wasSuccessful() else 1


def begin_test(test, log):
    pid = os.fork()
    if pid != 0:
        return pid
    status = 1
    try:
        os.setpgid(0, 0)
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(fd, 1)
        os.dup2(fd, 2)
        status = run_test(test)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def group_of(pid):
    """Who is in the process group of @pid."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getpgid(int(entry)) == pid:
                found.append(int(entry))
        except ProcessLookupError:
            pass
    return sorted(found)


def write_stacks(pid, log):
    """What every thread of the ranks waits for."""
    with open(log, "w") as file:
        for rank in group_of(pid)[1:]:
            file.write(f"--- {rank}\n")
            file.flush()
            subprocess.run(
                ["gdb", "-q", "-batch", "-p", str(rank), "-ex", "set width 0",
                 "-ex", "thread apply all bt"], stdin=subprocess.DEVNULL,
                stdout=file, stderr=subprocess.STDOUT, check=False)


class Running:
    def __init__(self, number, name, test, folder):
        self.number, self.name = number, name
        self.log = os.path.join(folder, f"{name}.{number}.log")
        self.began = time.monotonic()
        self.stacks = None      # where they are written
        self.pid = begin_test(test, self.log)

    def look(self):
        """The status once it ended; one that takes too long is killed, with
        its ranks, which are in its group."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0 and self.seconds() >= STUCK_S and self.stacks is None:
            self.stacks = self.log + ".stacks"
            if shutil.which("gdb"):
                write_stacks(self.pid, self.stacks)
        if pid == 0 and time.monotonic() - self.began < LIMIT_S:
            return None
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if pid == 0:
            os.waitpid(self.pid, 0)
            return 124
        return os.waitstatus_to_exitcode(status)

    def seconds(self):
        return time.monotonic() - self.began


def said_last(log):
    """What a person should read of it: the error, and the end."""
    with open(log, errors="replace") as file:
        lines = file.read().splitlines()
    errors = [line for line in lines
              if line.startswith(("AssertionError", "RuntimeError", "library"))]
    return errors[-3:] + lines[-12:]


def stacks_of(running):
    """Of libxrun's functions, what stood in the way."""
    if running.stacks is None or not os.path.exists(running.stacks):
        return []
    with open(running.stacks, errors="replace") as file:
        return [line.rstrip() for line in file
                if line.startswith(("---", "Thread")) or
                "/worker/" in line or "/src/" in line]


def report(running, status):
    kind = {0: "ok", 77: "ok"}.get(status, "not ok")
    line = f"{kind} {running.number} - {running.name}"
    if status == 77:
        line += " # SKIP as the test says"
    print(f"{line} in {1000 * running.seconds():.0f}ms"
          if status == 0 else line, flush=True)
    if kind == "not ok":
        print(f"# status {status}" if status != 124 else
              f"# not done in {LIMIT_S} s")
        for said in said_last(running.log) + stacks_of(running):
            print("#  ", said[:300])
    return kind == "ok"


def run_all(tests, jobs, folder):
    """@tests: names and cases. How many failed."""
    waiting = list(enumerate(tests, 1))[::-1]
    gc.freeze()  # a collection in a child would copy all pages
    now, failed = [], 0
    while waiting or now:
        while waiting and len(now) < jobs:
            number, (name, test) = waiting.pop()
            now.append(Running(number, name, test, folder))
        time.sleep(0.02)
        for running in list(now):
            status = running.look()
            if status is None:
                continue
            now.remove(running)
            failed += not report(running, status)
    return failed


# --- which ------------------------------------------------------------------

class Suite:
    """What a program runs. Its own: begin(), the names of all there are, or Cannot;
    run(), which gives how many failed; and what differs of the rest."""

    def __init__(self, title, path):
        self.title, self.path = title, path     # of all; of the list

    def rows(self):
        """Names and states, in the list's order."""
        with open(self.path, encoding="utf-8") as file:
            return [line.split(None, 2)[:2] for line in file
                    if line.strip() and not line.startswith("#")]

    def is_one(self, name):
        """Is that of the list one test, which is there?"""
        return True

    def check_list(self, everything):
        """Does it say of each test once what becomes of it?"""
        names = [name for name, _ in self.rows() if self.is_one(name)]
        wrong = sorted(set(names) ^ set(everything))
        wrong += sorted({name for name in names if names.count(name) > 1})
        wrong += [name for name, state in self.rows() if state not in STATES]
        return [f"{os.path.basename(self.path)}: {name}" for name in wrong]

    def passing(self, options, everything):
        return [name for name, state in self.rows() if passes(state)]

    def chosen(self, options, everything):
        if not options.patterns:
            return self.passing(options, everything) * options.repeat
        return [name for name in everything
                if any(fnmatch.fnmatch(name, p) for p in options.patterns)
                ] * options.repeat


def parser_of(doc):
    """With the options of all."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    parser.add_argument("--names", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--log")
    return parser


def check(suite, everything):
    """The exit status: 0, 1, or 77 where it cannot look."""
    try:
        wrong = suite.check_list(everything)
    except Cannot as e:
        print(e)
        return 77
    print("\n".join(wrong))
    return 1 if wrong else 0


def main(suite, options):
    try:
        everything = suite.begin()
    except Cannot as e:
        print(f"1..1\nok 1 - {suite.title} # SKIP {e}")
        return 0
    if options.names:
        print("\n".join(everything))
        return 0
    if options.check:
        return check(suite, everything)
    names = suite.chosen(options, everything)
    print(f"1..{len(names)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if options.log:
            os.makedirs(options.log, exist_ok=True)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        return 1 if suite.run(options, names, options.log or folder) else 0
