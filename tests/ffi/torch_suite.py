#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of its RPC, with libxrun in place of its agent: TAP.

    torch_suite.py                     what torch_suite.list says passes
    torch_suite.py --sample N          of those, every N-th
    torch_suite.py PATTERN...          what fits, whatever the list says of it
    torch_suite.py --repeat N PATTERN  each N times, for what fails now and then
    torch_suite.py --names             the names of all there are
    torch_suite.py --check             does the list have each of them once?

One process imports torch and the tests, and forks: a process a test, which forks
the ranks of it, as torch's own fixture would spawn them. --jobs is how many tests
run at a time, --log FOLDER has what each wrote.

With --xrun PROGRAM the tests run one after another in one job of its, whose ranks
fork a process a test, and reach each other by shared memory.
"""
import argparse
import fnmatch
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import types
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
LIST = os.path.join(HERE, "torch_suite.list")
LIMIT_S = 60        # of a test; its ranks have half of that
STUCK_S = 20        # then is written where each of its processes is
RANKS = 4           # that the tests have, but for some that have less
SUITES = "torch.testing._internal.distributed"

# Which fixture each class is made for, and where it is.
TENSORPIPE = {
    "rpc.rpc_test": ("RpcTest", "TensorPipeAgentRpcTest"),
    "rpc.examples.parameter_server_test": ("ParameterServerTest",),
    "rpc.examples.reinforcement_learning_rpc_test":
        ("ReinforcementLearningRpcTest",),
    "nn.api.remote_module_test":
        ("RemoteModuleTest", "ThreeWorkersRemoteModuleTest"),
}
FAULTY = {
    "rpc.faulty_agent_rpc_test": ("FaultyAgentRpcTest",),
}


class Cannot(Exception):
    """Why nothing can be run here."""


def prepare():
    """torch, with the shim in it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["DISTRIBUTED_TESTS_DEFAULT_TIMEOUT"] = str(LIMIT_S // 2)
    try:
        import torch.distributed
    except ImportError as e:
        raise Cannot(f"no torch for {sys.executable}: {e}") from None
    try:
        importlib.import_module(SUITES + ".rpc")
    except ImportError as e:
        raise Cannot(f"this torch has no tests of its RPC: {e}") from None
    try:
        import expecttest
    except ImportError:
        # Debian has none. No test of RPC uses more of it than the name.
        expecttest = types.ModuleType("expecttest")
        expecttest.TestCase = unittest.TestCase
        expecttest.ACCEPT = False
        sys.modules["expecttest"] = expecttest
    sys.path.insert(0, HERE)
    import modules
    modules.install()


def ranks_base():
    """torch's fixture, whose ranks are forked and not spawned."""
    import torch.multiprocessing
    from torch.testing._internal.common_distributed import MultiProcessTestCase

    class Ranks(MultiProcessTestCase):
        def setUp(self):
            super().setUp()
            self._start_processes(
                torch.multiprocessing.get_context("fork").Process)

    return Ranks


def classes():
    """All of them by name, each with its fixture."""
    base = ranks_base()
    found = {}
    for table, fixture, fixture_class in (
            (TENSORPIPE, "rpc.tensorpipe_rpc_agent_test_fixture",
             "TensorPipeRpcAgentTestFixture"),
            (FAULTY, "rpc.faulty_rpc_agent_test_fixture",
             "FaultyRpcAgentTestFixture")):
        try:
            mixin = getattr(importlib.import_module(f"{SUITES}.{fixture}"),
                            fixture_class)
        except ImportError as e:
            print(f"# {fixture}: {e}")
            continue
        for module, names in table.items():
            where = importlib.import_module(f"{SUITES}.{module}")
            for name in names:
                kind = type("Ranks" + name,
                            (getattr(where, name), mixin, base),
                            {"__module__": __name__})
                found[name] = globals()[kind.__name__] = kind   # for pickle
    return found


def names_of(found):
    return [f"{name}.{test}" for name, kind in found.items()
            for test in unittest.defaultTestLoader.getTestCaseNames(kind)]


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


# --- as ranks of a job ------------------------------------------------------

def run_as_rank(kind, method, shared):
    """One test, as the rank that this process is."""
    test = kind(method)
    test.rank = int(os.environ["RANK"])
    if test.rank >= test.world_size:
        return 0
    test.file_name = shared
    try:
        getattr(test, method)()
    except unittest.SkipTest:
        return 77
    return 0


def be_rank(found, names, folder):
    """All of them, each in a child; how it ended is in a file of its own."""
    rank = os.environ["RANK"]
    for name in names:
        kind, _, method = name.partition(".")
        at = os.path.join(folder, name)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                signal.alarm(LIMIT_S // 2)
                fd = os.open(f"{at}.{rank}.log", os.O_WRONLY | os.O_CREAT)
                os.dup2(fd, 1)
                os.dup2(fd, 2)
                shared = os.path.join(os.environ["TMPDIR"], name)
                status = run_as_rank(found[kind], method, shared)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                sys.exit(status) if status == 0 else os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with open(f"{at}.{rank}", "w") as file:
            file.write(str(status))


def run_job(options, names, folder):
    """How many failed."""
    # Where somebody watches for hangs there is shared memory for programs, too,
    # that are not linked with libxrun.
    job = subprocess.run(
        [options.xrun, "-n", str(RANKS), "--hang-timeout", f"{LIMIT_S}s",
         sys.executable, os.path.realpath(__file__), "--rank-in", folder,
         *names], stdout=sys.stderr)
    failed = 0
    for number, name in enumerate(names, 1):
        at = os.path.join(folder, name)
        ends = []
        for rank in range(RANKS):
            try:
                with open(f"{at}.{rank}") as file:
                    ends.append(int(file.read()))
            except OSError:
                ends.append(None)
        skipped = ends[0] == 77
        good = skipped or not any(end != 0 for end in ends)
        print(("ok" if good else "not ok") + f" {number} - {name}" +
              (" # SKIP as the test says" if skipped else ""))
        if not good:
            failed += 1
            print(f"# ranks ended with {ends}, the job with {job.returncode}")
            for rank in [r for r in range(RANKS) if ends[r] not in (0, None)]:
                for said in said_last(f"{at}.{rank}.log"):
                    print(f"#  {rank}:", said[:300])
    return failed


# --- which ------------------------------------------------------------------

def rows():
    """Names and states, in the list's order."""
    with open(LIST) as file:
        return [line.split(None, 2)[:2] for line in file
                if line.strip() and not line.startswith("#")]


def check_list(everything):
    """Does it say of each test once what becomes of it?"""
    names = [name for name, _ in rows() if not name.endswith(".*")]
    wrong = sorted(set(names) ^ set(everything))
    wrong += sorted({name for name in names if names.count(name) > 1})
    wrong += [name for name, state in rows()
              if state not in ("passes", "out", "defect")]
    return [f"torch_suite.list: {name}" for name in wrong]


def chosen(options, everything):
    if options.patterns:
        return [name for name in everything
                if any(fnmatch.fnmatch(name, p) for p in options.patterns)
                ] * options.repeat
    passing = [name for name, state in rows() if state == "passes"]
    return passing[::options.sample] * options.repeat


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    parser.add_argument("--names", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--log")
    parser.add_argument("--xrun")
    parser.add_argument("--rank-in", help=argparse.SUPPRESS)
    options = parser.parse_args()
    del sys.argv[1:]    # torch's tests would read it, too
    try:
        prepare()
    except Cannot as e:
        print(f"1..1\nok 1 - torch's RPC tests # SKIP {e}")
        return 0
    found = classes()
    everything = names_of(found)
    if options.names:
        print("\n".join(everything))
        return 0
    if options.rank_in:
        be_rank(found, options.patterns, options.rank_in)
        return 0
    if options.check:
        print("\n".join(check_list(everything)))
        return 1 if check_list(everything) else 0
    names = chosen(options, everything)
    print(f"1..{len(names)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if options.log:
            os.makedirs(options.log, exist_ok=True)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        return 1 if run(options, found, names, options.log or folder) else 0


def run(options, found, names, folder):
    if options.xrun:
        return run_job(options, names, folder)
    tests = []
    for name in names:
        kind, _, method = name.partition(".")
        tests.append((name, found[kind](method)))
    return run_all(tests, options.jobs, folder)


if __name__ == "__main__":
    sys.exit(main())
