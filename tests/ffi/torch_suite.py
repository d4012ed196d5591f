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
import importlib
import os
import signal
import subprocess
import sys
import traceback
import types
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import suite  # noqa: E402
from suite import LIMIT_S, Cannot, said_last  # noqa: E402

LIST = os.path.join(HERE, "torch_suite.list")
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
    # Imported here once; each rank would import it and its 200 dependencies.
    importlib.import_module("torch.testing._internal.common_device_type")
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

class Torch(suite.Suite):
    def begin(self):
        prepare()
        self.found = classes()
        return names_of(self.found)

    def is_one(self, name):
        return not name.endswith(".*")

    def passing(self, options, everything):
        return super().passing(options, everything)[::options.sample]

    def run(self, options, names, folder):
        if options.xrun:
            return run_job(options, names, folder)
        tests = []
        for name in names:
            kind, _, method = name.partition(".")
            tests.append((name, self.found[kind](method)))
        return suite.run_all(tests, options.jobs, folder)


def main():
    parser = suite.parser_of(__doc__)
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--xrun")
    parser.add_argument("--rank-in", help=argparse.SUPPRESS)
    options = parser.parse_args()
    del sys.argv[1:]    # torch's tests would read it, too
    torch = Torch("torch's RPC tests", LIST)
    if options.rank_in:
        torch.begin()
        be_rank(torch.found, options.patterns, options.rank_in)
        return 0
    return suite.main(torch, options)


if __name__ == "__main__":
    sys.exit(main())
