# SPDX-License-Identifier: Apache-2.0
"""Puts the shim in the place of torch.distributed.rpc and torch.futures.

install() comes before anything imports what builds on them; torch itself has
imported its own by then, which are not used any more.
"""
import enum
import functools
import sys
import types

import torch
import torch.distributed
import torch.futures

import future
import rpc_api
import rpc_init
import wire

NAME = "torch.distributed.rpc"


class RPCExecMode(enum.Enum):
    SYNC = "sync"
    ASYNC = "async"
    ASYNC_JIT = "async_jit"
    REMOTE = "remote"


class PythonUDF(tuple):
    """A call, as torch's pickler has it."""

    def __new__(cls, func, args, kwargs):
        return super().__new__(cls, (func, args, kwargs))

    func = property(lambda self: self[0])
    args = property(lambda self: self[1])
    kwargs = property(lambda self: self[2])

    def __reduce__(self):
        return PythonUDF, tuple(self)


def _build_rpc_profiling_key(exec_type, func_name, current_worker_name,
                             dst_worker_name):
    return (f"rpc_{exec_type.value}#{func_name}({current_worker_name} -> "
            f"{dst_worker_name})")


def async_execution(fn):
    """Its future's value is the answer."""
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)
    wrapper._wrapped_async_rpc_function = fn
    return wrapper


def _module(name, **names):
    module = types.ModuleType(name)
    vars(module).update(names)
    return module


def _public(module, *names):
    return {name: getattr(module, name) for name in names}


def _parts():
    """The modules below torch.distributed.rpc, by their names."""
    return {
        "api": rpc_api,
        "backend_registry": rpc_init,
        "functions": _module(NAME + ".functions",
                             async_execution=async_execution),
        "constants": _module(NAME + ".constants", **_public(
            rpc_api, "DEFAULT_RPC_TIMEOUT_SEC", "DEFAULT_INIT_METHOD",
            "DEFAULT_SHUTDOWN_TIMEOUT", "DEFAULT_NUM_WORKER_THREADS",
            "UNSET_RPC_TIMEOUT")),
        "options": _module(NAME + ".options", **_public(
            rpc_init, "TensorPipeRpcBackendOptions")),
        "internal": _module(
            NAME + ".internal", RPCExecMode=RPCExecMode, PythonUDF=PythonUDF,
            _build_rpc_profiling_key=_build_rpc_profiling_key,
            _InternalRPCPickler=wire.Serialiser,
            _internal_rpc_pickler=wire.serialiser,
            serialize=wire.serialiser.serialize,
            deserialize=wire.serialiser.deserialize),
        "_testing": _Testing(NAME + "._testing"),
    }


class _Testing(types.ModuleType):
    """The backend that fails on purpose is there once this was asked for."""

    def __getattribute__(self, name):
        rpc_init.add_faulty()
        return super().__getattribute__(name)


def _package(parts):
    package = _module(NAME, is_available=lambda: True, **parts, **_public(
        rpc_api, "RRef", "PyRRef", "WorkerInfo", "TensorPipeAgent",
        "get_worker_info", "remote", "rpc_sync", "rpc_async", "shutdown",
        "get_rpc_timeout", "_set_rpc_timeout", "_get_current_rpc_agent",
        "_is_current_rpc_agent_set", "_reset_current_rpc_agent",
        "_rref_context_get_debug_info", "_set_and_start_rpc_agent"),
        **_public(rpc_init, "BackendType", "RpcBackendOptions",
                  "TensorPipeRpcBackendOptions", "init_rpc",
                  "_init_rpc_backend", "_get_debug_info",
                  "_TensorPipeRpcBackendOptionsBase"))
    package.__path__ = []
    package._UNSET_RPC_TIMEOUT = rpc_api.UNSET_RPC_TIMEOUT
    return package


def install():
    for name in [n for n in sys.modules if n.startswith(NAME + ".")]:
        del sys.modules[name]
    parts = _parts()
    package = _package(parts)
    sys.modules[NAME] = torch.distributed.rpc = package
    for name, module in parts.items():
        sys.modules[f"{NAME}.{name}"] = module
    torch.futures.Future = torch._C.Future = future.Future
    torch.futures.collect_all = future.collect_all
    torch.futures.wait_all = future.wait_all
    return package
