#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests of its queues and pools, with libxrun's in their place: TAP.

    pool_suite.py                     what pool_suite.list says passes
    pool_suite.py PATTERN...          what fits, whatever the list says of it
    pool_suite.py --repeat N PATTERN  each N times, for what fails now and then
    pool_suite.py --names             the names of all there are
    pool_suite.py --check             does the list have each of them once?

A name is the way in which the tests start processes, the class, and the test. The
tests are those of test.test_multiprocessing_fork and its like, which Debian 12 has in
libpython3.11-testsuite; of another version of Python those run that the list has, too,
and --check cannot look. A process imports them and forks: a process a test. --jobs is
how many run at a time, --log FOLDER has what each wrote. Workers of pools are forked
where the tests say "fork", are this program, executed anew, where they say "spawn", and
children of one that was, where they say "forkserver".

With MACHIN_SOURCE, a folder with the sources of machin (0.4.2), there are its tests of
its pools, too, whose names begin with "machin"; they need torch and dill.
"""
import importlib
import os
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import suite  # noqa: E402

LIST = os.path.join(HERE, "pool_suite.list")
LISTED = (3, 11)    # the version of Python that the list is of
METHODS = ("fork", "spawn", "forkserver")
PARTS = (".test_misc", ".test_processes", ".test_threads")
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


def module_of(method):
    """Classes by name. Since Python 3.12 it is a package, and they are in its modules."""
    name = f"test.test_multiprocessing_{method}"
    found = {}
    try:
        for part in ("", *PARTS):
            module = importlib.import_module(name + part)
            found.update(vars(module))
            if not hasattr(module, "__path__") and part == "":
                break
    except ImportError as e:
        raise suite.Cannot(f"no {name}: {e}") from None
    return found


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
        module = module_of(method)
        for kind in CLASSES:
            if kind in ONCE and method != METHODS[0]:
                continue
            found[f"{method}.{kind}"] = module[kind]
    every = unittest.defaultTestLoader.getTestCaseNames
    all_of_it = {f"{name}.{test}": lambda k=kind, n=test: k(n)
             for name, kind in found.items()
             for test in CLASSES[name.split(".")[1]] or every(kind)}
    if "MACHIN_SOURCE" in os.environ:
        import machin_pool
        all_of_it.update(machin_pool.tests(os.environ["MACHIN_SOURCE"]))
    mp_pool.serve()
    return all_of_it


class Used(unittest.TestCase):
    """Did the test before it have libxrun?"""

    def runTest(self):
        import library
        self.assertTrue(library.x.is_loaded())


class Pools(suite.Suite):
    def begin(self):
        self.found = cases()
        return list(self.found)

    def is_one(self, name):
        return not name.startswith("machin.") or "MACHIN_SOURCE" in os.environ

    def check_list(self, everything):
        if sys.version_info[:2] != LISTED:
            raise suite.Cannot("the list is of Python %d.%d" % LISTED)
        return super().check_list(everything)

    def passing(self, options, everything):
        return [name for name in super().passing(options, everything)
                if name in everything]

    def run(self, options, names, folder):
        """With its class's fixture, and its module's."""
        tests = [(name, unittest.TestSuite([self.found[name](), Used()]))
                 for name in names]
        return suite.run_all(tests, options.jobs, folder)


def main():
    return suite.main(Pools("CPython's tests of its queues", LIST),
                      suite.parser_of(__doc__).parse_args())


if __name__ == "__main__":
    sys.exit(main())
