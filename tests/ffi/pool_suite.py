#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests of its queues and pools, with libxrun's in their place: TAP.

    pool_suite.py                     what pool_suite.list says passes
    pool_suite.py PATTERN...          what fits, whatever the list says of it
    pool_suite.py --repeat N PATTERN  each N times, for what fails now and then
    pool_suite.py --names             the names of all there are
    pool_suite.py --check             does the list have each of them once?

A name is the way in which the tests start processes, the class, and the test. The
tests are those of test.test_multiprocessing_fork and its like, which Debian has in
libpython3.11-testsuite. A process imports them and forks: a process a test. --jobs is
how many run at a time, --log FOLDER has what each wrote. Workers of pools are forked
where the tests say "fork", are this program, executed anew, where they say "spawn", and
children of one that was, where they say "forkserver".

With MACHIN_SOURCE, a folder with the sources of machin (0.4.2), there are its tests of
its pools, too, whose names begin with "machin"; they need torch and dill.
"""
import argparse
import fnmatch
import importlib
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import torch_suite as suite  # noqa: E402

LIST = os.path.join(HERE, "pool_suite.list")
METHODS = ("fork", "spawn", "forkserver")
# Those of a class that have a queue; None: all.
CLASSES = {
    "WithProcessesTestQueue": None,
    "TestSimpleQueue": None,
    "WithProcessesTestProcess":
        ("test_args_argument", "test_close", "test_lose_target_ref",
         "test_process", "test_process_mainthread_native_id"),
    "WithProcessesTestBarrier": ("test_wait_return",),
    "WithProcessesTestPool": None,
    "WithProcessesTestPoolWorkerErrors": None,
    "WithProcessesTestPoolWorkerLifetime": None,
    "WithThreadsTestPool": None,
    "TestPoolNotLeakOnFailure": None,
}
# Those that start no process: with the first method only.
ONCE = ("WithThreadsTestPool", "TestPoolNotLeakOnFailure")
STATES = ("passes", "out", "defect")


def cases():
    """A function that makes the case, by name, with ours in their place."""
    import mp_pool
    import mp_queue
    mp_queue.install()
    mp_pool.install()
    # Children that are executed anew find them, too.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [HERE] + os.environ.get("PYTHONPATH", "").split(os.pathsep))
    found = {}
    for method in METHODS:
        name = f"test.test_multiprocessing_{method}"
        try:
            module = importlib.import_module(name)
        except ImportError as e:
            raise suite.Cannot(f"no {name}: {e}") from None
        for kind in CLASSES:
            if kind in ONCE and method != METHODS[0]:
                continue
            found[f"{method}.{kind}"] = getattr(module, kind)
    every = unittest.defaultTestLoader.getTestCaseNames
    all_of_it = {f"{name}.{test}": lambda k=kind, n=test: k(n)
             for name, kind in found.items()
             for test in CLASSES[name.split(".")[1]] or every(kind)}
    if "MACHIN_SOURCE" in os.environ:
        import machin_pool
        all_of_it.update(machin_pool.tests(os.environ["MACHIN_SOURCE"]))
    mp_pool.serve()
    return all_of_it


def rows():
    """Names and states, in the list's order."""
    with open(LIST, encoding="utf-8") as file:
        return [line.split(None, 2)[:2] for line in file
                if line.strip() and not line.startswith("#")]


def check_list(everything):
    """Does it say of each test once what becomes of it?"""
    names = [name for name, _ in rows()
             if not name.startswith("machin.") or "MACHIN_SOURCE" in os.environ]
    wrong = sorted(set(names) ^ set(everything))
    wrong += sorted({name for name in names if names.count(name) > 1})
    wrong += [name for name, state in rows() if state not in STATES]
    return [f"pool_suite.list: {name}" for name in wrong]


def chosen(options, everything):
    if options.patterns:
        return [name for name in everything
                if any(fnmatch.fnmatch(name, p) for p in options.patterns)
                ] * options.repeat
    return [name for name, state in rows()
            if state == "passes" and name in everything] * options.repeat


class Used(unittest.TestCase):
    """Did the test before it have libxrun?"""

    def runTest(self):
        import library
        self.assertTrue(library.x.is_loaded())


def run(options, found, names, folder):
    """With its class's fixture, and its module's."""
    tests = [(name, unittest.TestSuite([found[name](), Used()]))
             for name in names]
    return suite.run_all(tests, options.jobs, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    parser.add_argument("--names", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--log")
    options = parser.parse_args()
    try:
        found = cases()
    except suite.Cannot as e:
        print(f"1..1\nok 1 - CPython's tests of its queues # SKIP {e}")
        return 0
    everything = list(found)
    if options.names:
        print("\n".join(everything))
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


if __name__ == "__main__":
    sys.exit(main())
