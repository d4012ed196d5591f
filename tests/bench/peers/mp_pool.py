# SPDX-License-Identifier: Apache-2.0
"""mp_pool.py OPERATION WORKERS COUNT NS KIND - pools of Python, see pool.h.

KIND is Pool or ThreadPool of multiprocessing, ProcessPoolExecutor or
ThreadPoolExecutor of concurrent.futures, or a class of machin.parallel.pool, as
machin.Pool: for that pip install --no-deps machin==0.4.2 colorlog, with torch and dill
there, is enough, as of machin only its pools are loaded. Each task answers with its
number.
"""
import concurrent.futures
import importlib
import importlib.util
import json
import multiprocessing
import multiprocessing.pool
import os
import sys
import time
import types

TURNS = 0


def compute(turns):
    x = 1
    for _ in range(turns):
        x ^= 5
    return x


def task(number):
    if TURNS:
        compute(TURNS)
    return number


def calibrate(ns):
    best = 1e18
    for _ in range(20 if ns else 0):
        begun = time.perf_counter_ns()
        compute(10000)
        best = min(best, time.perf_counter_ns() - begun)
    return round(ns * 10000 / best) if ns else 0


def begin(turns):
    global TURNS
    TURNS = turns


class Executor:
    """An executor with the names of a pool."""

    def __init__(self, kind, workers, turns):
        self.of = getattr(concurrent.futures, kind)(
            workers, initializer=begin, initargs=(turns,))
        self.workers = workers

    def map(self, fn, items):
        chunk = max(1, len(items) // (4 * self.workers))
        return list(self.of.map(fn, items, chunksize=chunk))

    def apply_async(self, fn, args):
        return self.of.submit(fn, *args)

    def apply(self, fn, args):
        return self.of.submit(fn, *args).result()

    def close(self):
        self.of.shutdown()


def machin_pool():
    """Its packages without what they load, which needs games and more."""
    spec = importlib.util.find_spec("machin")
    if spec is None:
        sys.exit("no machin here")
    root = spec.submodule_search_locations[0]
    for name in ("machin", "machin.parallel", "machin.utils"):
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(root, *name.split(".")[1:])]
        sys.modules[name] = package


# Workers that are executed anew load it as their parent does.
if sys.argv[5:] and sys.argv[5].startswith("machin."):
    machin_pool()


def pool_of(kind, workers, turns):
    if kind.endswith("Executor"):
        return Executor(kind, workers, turns)
    if kind.startswith("machin."):
        module = importlib.import_module("machin.parallel.pool")
        made = getattr(module, kind[len("machin."):])
        return made(workers, initializer=begin, initargs=(turns,))
    module = multiprocessing if kind == "Pool" else multiprocessing.pool
    return getattr(module, kind)(workers, begin, (turns,))


def result(future):
    return future.get() if hasattr(future, "get") else future.result()


def play(pool, operation, count):
    if operation == "map":
        return pool.map(task, range(count))
    if operation == "post":
        return [result(f) for f in
                [pool.apply_async(task, (i,)) for i in range(count)]]
    if operation == "apply":
        return [pool.apply(task, (i,)) for i in range(count)]
    sys.exit(f"no {operation} here")


def cpu_ns():
    """Of this process, and of those of its pool, each by its clock."""
    clocks = [time.CLOCK_PROCESS_CPUTIME_ID]
    clocks += [(~child.pid << 3) | 2
               for child in multiprocessing.active_children()]
    return sum(time.clock_gettime_ns(clock) for clock in clocks)


def main():
    operation, kind = sys.argv[1], sys.argv[5]
    workers, count = int(sys.argv[2]), int(sys.argv[3])
    turns = calibrate(float(sys.argv[4]))
    pool = pool_of(kind, workers, turns)
    warm = (count + 9) // 10
    if sorted(play(pool, operation, warm)) != list(range(warm)):
        sys.exit(3)
    cpu, begun = cpu_ns(), time.perf_counter_ns()
    got = play(pool, operation, count)
    took = time.perf_counter_ns() - begun
    cpu = cpu_ns() - cpu
    if list(got) != list(range(count)):
        sys.exit(3)
    pool.close()
    if hasattr(pool, "join"):
        pool.join()
    print(json.dumps({"ns": took / count, "cpu_ns": cpu / count}))


if __name__ == "__main__":
    main()
