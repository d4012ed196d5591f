# SPDX-License-Identifier: Apache-2.0
"""Pools as machin.parallel.pool has them, which are xr_pool; and its tests of them.

Functions are pickled by dill, as machin's are, so that lambdas travel. Tensors are
copied.
"""
import importlib.util
import logging
import os
import sys
import types
import unittest

import dill
import mp_pool
import table as t
from library import Value, x


def function_pickled(function, recurse=False):
    data = dill.dumps(function, recurse=recurse)
    return Value(x.xr_value_new_bytes(data, len(data)))


class Pool(mp_pool.Pool):
    def __init__(self, processes=None, initializer=None, initargs=(),
                 maxtasksperchild=None, is_recursive=False, is_daemon=True,
                 is_copy_tensor=True, share_method=None):
        self.is_recursive = is_recursive
        if not is_copy_tensor and share_method not in ("cpu", "cuda"):
            raise RuntimeError('share_method must be "cpu" or "cuda"')
        super().__init__(processes, initializer, initargs, maxtasksperchild)

    def method(self, context):
        return b"zygote"

    def wrap_function(self, function):
        return function_pickled(function, self.is_recursive)

    def size(self):
        return x.xr_pool_size(self._pointer)


class P2PPool(Pool):
    routing = t.XR_POOL_P2P


class Contexts:
    """What pools with contexts add."""

    flags = t.XR_POOL_CONTEXT

    def set_contexts(self, opts, contexts):
        if contexts is None:
            return
        if len(contexts) != opts.workers:
            raise ValueError("Context count is not equal to the number of "
                             "workers")
        self.contexts = mp_pool.listed(self.wrap(c) for c in contexts)
        opts.contexts = self.contexts.pointer


class CtxPool(Contexts, Pool):
    def __init__(self, processes=None, initializer=None, initargs=(),
                 maxtasksperchild=None, worker_contexts=None, **more):
        self.worker_contexts = worker_contexts
        super().__init__(processes, initializer, initargs, maxtasksperchild,
                         **more)

    def prepare(self, opts):
        self.set_contexts(opts, self.worker_contexts)


class ThreadPool(mp_pool.ThreadPool):
    size = Pool.size


class CtxThreadPool(Contexts, ThreadPool):
    def __init__(self, processes=None, initializer=None, initargs=(),
                 worker_contexts=None):
        self.worker_contexts = worker_contexts
        super().__init__(processes, initializer, initargs)

    prepare = CtxPool.prepare


# --- its tests -------------------------------------------------------------------

def stand_in(name, **members):
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module


def case_of(kind, name):
    def run():
        getattr(kind(), name)()
    return unittest.FunctionTestCase(run)


def tests(source):
    """Name: a function that makes the case, of machin's sources."""
    path = os.path.join(source, "test", "parallel", "test_pool.py")
    me = sys.modules[__name__]
    stand_in("machin")
    stand_in("machin.parallel")
    stand_in("machin.parallel.pool", **{name: getattr(me, name) for name in (
        "Pool", "P2PPool", "CtxPool", "ThreadPool", "CtxThreadPool")})
    stand_in("machin.utils")
    stand_in("machin.utils.logging",
             default_logger=logging.getLogger("machin"))
    stand_in("test.util_fixtures")
    stand_in("test.util_platforms", linux_only=lambda function: function)
    spec = importlib.util.spec_from_file_location("machin_test_pool", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module     # workers find its functions by that
    spec.loader.exec_module(module)
    return {f"machin.{kind}.{name}": (lambda k=found, n=name: case_of(k, n))
            for kind, found in vars(module).items() if kind.startswith("Test")
            for name in sorted(dir(found)) if name.startswith("test")}

