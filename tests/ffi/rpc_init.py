# SPDX-License-Identifier: Apache-2.0
"""Backends, their options, and joining, by torch.distributed.rpc's names."""
import atexit
import collections
import ctypes
import logging
import numbers

import torch
import torch.distributed.autograd as dist_autograd

import rpc_api as api
import table as t
from library import Error, begin, check, made, x

logger = logging.getLogger(__name__)

BackendValue = collections.namedtuple(
    "BackendValue", ["construct_rpc_backend_options_handler",
                     "init_backend_handler"])


# --- backends -----------------------------------------------------------------

class _BackendTypes(type):
    """An enum that can grow: identifiers stay good when another joins."""

    def __getattr__(cls, name):
        try:
            return cls.__members__[name]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(cls, name):
        return cls.__members__[name]

    def __iter__(cls):
        return iter(list(cls.__members__.values()))


class BackendType(metaclass=_BackendTypes):
    __members__ = {}

    def __init__(self, name, value):
        self.name = name
        self.value = value
        self.__members__[name] = self

    def __repr__(self):
        return "BackendType." + self.name


def backend_registered(backend_name):
    return backend_name in BackendType.__members__


def register_backend(backend_name, construct_rpc_backend_options_handler,
                     init_backend_handler):
    """libxrun knows it too, and judges whether it is new."""
    backend = t.xr_backend(size=ctypes.sizeof(t.xr_backend),
                           name=backend_name.encode())
    try:
        check("xr_backend_register", ctypes.byref(backend), None)
    except Error as e:
        raise RuntimeError(
            f"RPC backend {backend_name}: already registered"
            if e.status == t.XR_E_EXISTS else str(e)) from None
    return _add(backend_name, construct_rpc_backend_options_handler,
                init_backend_handler)


def _add(name, construct, begin_agent):
    return BackendType(name, BackendValue(construct, begin_agent))


def construct_rpc_backend_options(backend,
                                  rpc_timeout=api.DEFAULT_RPC_TIMEOUT_SEC,
                                  init_method=api.DEFAULT_INIT_METHOD,
                                  **kwargs):
    return backend.value.construct_rpc_backend_options_handler(
        rpc_timeout=rpc_timeout, init_method=init_method, **kwargs)


def init_backend(backend, *args, **kwargs):
    return backend.value.init_backend_handler(*args, **kwargs)


# --- options --------------------------------------------------------------------

def _seconds(timeout):
    if not isinstance(timeout, numbers.Real):
        raise TypeError("incompatible constructor arguments: a timeout is a "
                        f"number of seconds, and not {timeout!r}")
    return float(timeout)


class RpcBackendOptions:
    def __init__(self, rpc_timeout=api.DEFAULT_RPC_TIMEOUT_SEC,
                 init_method=api.DEFAULT_INIT_METHOD):
        self.rpc_timeout = _seconds(rpc_timeout)
        self.init_method = init_method


def _device(device):
    """Its index, or the CPU's number."""
    device = torch.device(device)
    if device.type == "cpu":
        return t.XR_DEVICE_MAP_CPU
    return device.index or 0


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    backend = b"TENSORPIPE"

    def __init__(self, *, num_worker_threads=api.DEFAULT_NUM_WORKER_THREADS,
                 rpc_timeout=api.DEFAULT_RPC_TIMEOUT_SEC,
                 init_method=api.DEFAULT_INIT_METHOD, device_maps=None,
                 devices=None, _transports=None, _channels=None):
        super().__init__(rpc_timeout, init_method)
        self.num_worker_threads = num_worker_threads
        self.device_maps = {}
        self.devices = []
        for to, pairs in (device_maps or {}).items():
            self.set_device_map(to, pairs)
        if devices:
            self.set_devices(devices)

    def set_device_map(self, to, device_map):
        """One to one, and no device gets another partner later."""
        table = dict(self.device_maps.get(to, {}))
        partners = {}
        for mine, theirs in device_map.items():
            mine, theirs = torch.device(mine), torch.device(theirs)
            if table.get(mine, theirs) != theirs or \
                    partners.setdefault(theirs, mine) != mine:
                raise ValueError(
                    "`set_device_map` only supports 1-to-1 mapping, trying "
                    f"to map {mine} to {theirs}")
            table[mine] = theirs
        self.device_maps[to] = table

    def set_devices(self, devices):
        self.devices = [torch.device(d) for d in devices]
        for device in self.devices:
            if device.type != "cuda":
                raise ValueError("`set_devices` expect a list of CUDA devices, "
                                 f"but got device type {device.type}.")

    def own(self):
        """Options of the backend's own, as texts."""
        return []

    def to_struct(self):
        """An xr_rpc_opts; what it refers to is kept beside it."""
        backend = x.xr_backend_find(self.backend)
        opts = t.xr_rpc_opts(size=ctypes.sizeof(t.xr_rpc_opts))
        check("xr_rpc_opts_init", backend, ctypes.byref(opts))
        opts.timeout = api._ns(self.rpc_timeout)
        opts.init_method = _address(self.init_method).encode()
        opts.threads = self.num_worker_threads
        # As torch has it: remote()'s timeout covers the function.
        opts.rref_flags = t.XR_RREF_ACK_ON_DONE
        pairs = [(to.encode(), _device(mine), _device(theirs))
                 for to, table in self.device_maps.items()
                 for mine, theirs in table.items()]
        maps = (t.xr_device_pair * len(pairs))(*pairs)
        devices = (ctypes.c_int32 * len(self.devices))(
            *[_device(d) for d in self.devices])
        opts.maps, opts.map_count = maps, len(pairs)
        opts.devices, opts.device_count = devices, len(self.devices)
        own = [text.encode() for text in self.own()]
        extra = (ctypes.c_char_p * len(own))(*own)
        opts.extra, opts.extra_count = extra, len(own)
        return opts, (maps, devices, extra)


_TensorPipeRpcBackendOptionsBase = TensorPipeRpcBackendOptions


class FaultyTensorPipeRpcBackendOptions(TensorPipeRpcBackendOptions):
    backend = b"FAULTY_TENSORPIPE"

    def __init__(self, *, messages_to_fail=(), messages_to_delay=None,
                 num_fail_sends=0, **others):
        super().__init__(**others)
        self.messages_to_fail = list(messages_to_fail)
        self.messages_to_delay = dict(messages_to_delay or {})
        self.num_fail_sends = num_fail_sends

    def own(self):
        delays = [f"{kind}:{seconds}s"
                  for kind, seconds in self.messages_to_delay.items()]
        return [f"{key}={value}" for key, value in (
            ("messages_to_fail", ",".join(self.messages_to_fail)),
            ("messages_to_delay", ",".join(delays)),
            ("num_fail_sends", self.num_fail_sends)) if value]


def _address(init_method):
    """A file of torch's own store cannot be one of xrun's too."""
    return init_method + ".xrun" if init_method.startswith("file://") \
        else init_method


def _construct_tensorpipe(rpc_timeout, init_method,
                          num_worker_threads=api.DEFAULT_NUM_WORKER_THREADS,
                          _transports=None, _channels=None, **kwargs):
    return TensorPipeRpcBackendOptions(
        rpc_timeout=rpc_timeout, init_method=init_method,
        num_worker_threads=num_worker_threads)


def _construct_faulty(rpc_timeout, init_method, **kwargs):
    return FaultyTensorPipeRpcBackendOptions(
        rpc_timeout=rpc_timeout, init_method=init_method, **kwargs)


# --- joining ----------------------------------------------------------------

TORCH_SAYS = {
    t.XR_E_STATE: "RPC is already initialized",
    t.XR_E_EXISTS: "the worker name is not unique",
}
MIXED = ("RPC group mixes statically and dynamically initialized members which "
         "is not supported.")


def _begin_agent(store, name, rank, world_size, rpc_backend_options):
    if not isinstance(rpc_backend_options, TensorPipeRpcBackendOptions):
        raise TypeError("`rpc_backend_options` must be a "
                        f"`TensorPipeRpcBackendOptions`. {rpc_backend_options}")
    opts, _kept = rpc_backend_options.to_struct()
    api._register()
    begin()
    agent = api.TensorPipeAgent(rpc_backend_options, bool(world_size))
    # Others may call before xr_rpc_init() returns.
    if not api._is_current_rpc_agent_set():
        api._set_and_start_rpc_agent(agent)
    try:
        check("xr_rpc_init", name.encode(), rank, world_size or 0,
              ctypes.byref(opts))
    except Error as e:
        if api._get_current_rpc_agent() is agent:
            api._reset_current_rpc_agent()
        said = MIXED if e.status == t.XR_E_CONFLICT and "dynamic" in str(e) \
            else TORCH_SAYS.get(e.status)
        if e.status == t.XR_E_INVAL:
            raise ValueError(str(e)) from None
        raise RuntimeError(f"{said}: {e}" if said else str(e)) from None
    return agent


_add("TENSORPIPE", _construct_tensorpipe, _begin_agent)


def add_faulty():
    """As importing torch.distributed.rpc._testing does."""
    if not backend_registered("FAULTY_TENSORPIPE"):
        _add("FAULTY_TENSORPIPE", _construct_faulty, _begin_agent)


def _infer_backend(options):
    for candidate in BackendType:
        if isinstance(options, type(construct_rpc_backend_options(candidate))):
            break
    else:
        raise TypeError(f"Could not infer backend for options {options}")
    if candidate is not BackendType.TENSORPIPE:
        logger.warning("RPC was initialized with no explicit backend but with "
                       "options corresponding to %s, hence that backend will "
                       "be used instead of the default %s.", candidate,
                       BackendType.TENSORPIPE)
    return candidate


def init_rpc(name, backend=None, rank=-1, world_size=None,
             rpc_backend_options=None):
    if backend is not None and not isinstance(backend, BackendType):
        raise TypeError("Argument backend must be a member of BackendType")
    if rpc_backend_options is not None and \
            not isinstance(rpc_backend_options, RpcBackendOptions):
        raise TypeError("Argument rpc_backend_options must be an instance of "
                        "RpcBackendOptions")
    if backend is None:
        backend = BackendType.TENSORPIPE if rpc_backend_options is None \
            else _infer_backend(rpc_backend_options)
    if rpc_backend_options is None:
        rpc_backend_options = construct_rpc_backend_options(backend)
    if rank < 0 and not world_size:
        raise ValueError(
            "environment variable RANK expected, but not set"
            if rpc_backend_options.init_method.startswith("env://") else
            "rank parameter missing")
    if rank >= 0:
        dist_autograd._init(rank)
    _init_rpc_backend(backend, None, name, rank, world_size,
                      rpc_backend_options)


def _init_rpc_backend(backend=None, store=None, name=None, rank=-1,
                      world_size=None, rpc_backend_options=None):
    """@store: libxrun has one of its own, at the same address."""
    agent = init_backend(backend or BackendType.TENSORPIPE, store=store,
                         name=name, rank=rank, world_size=world_size,
                         rpc_backend_options=rpc_backend_options)
    api._init_rpc_states(agent)


@api._require_initialized
def _get_debug_info():
    info = api._rref_context_get_debug_info()
    info.update(api._get_current_rpc_agent().get_debug_info())
    info.update(dist_autograd._get_debug_info())
    return info


@atexit.register
def _leave():
    """The interpreter ends: no callback may come any more."""
    if x.is_loaded() and api._is_current_rpc_agent_set():
        x.xr_rpc_shutdown(t.XR_SHUTDOWN_IMMEDIATE, 0, None)
