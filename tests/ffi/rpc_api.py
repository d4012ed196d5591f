# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.rpc over libxrun, by torch's names.

It is torch.distributed.rpc.api once modules.py has put it there, so that what
looks names up in it, or replaces them, has what it expects.
"""
import contextlib
import ctypes
import functools
import logging
import re
import threading

import torch

import table as t
import wire
from future import Future, wait_all
from library import (Error, Value, check, give_back, kept, made, settle, x)

logger = logging.getLogger(__name__)

UNSET_RPC_TIMEOUT = -1.0
DEFAULT_SHUTDOWN_TIMEOUT = 0.0
DEFAULT_RPC_TIMEOUT_SEC = t.XR_RPC_TIMEOUT_DEFAULT / 1e9
DEFAULT_INIT_METHOD = t.XR_INIT_METHOD_DEFAULT.decode()
DEFAULT_NUM_WORKER_THREADS = t.XR_RPC_THREADS_DEFAULT

NOT_YET = ("RPC has not been initialized. Call "
           "torch.distributed.rpc.init_rpc first.")
NO_AGENT = ("Current RPC agent is not set! Did you initialize the RPC "
            "framework (e.g. by calling `rpc.init_rpc`)?")

_ignore_rref_leak = True
_default_pickler = wire.serialiser
_thread_local_var = threading.local()
_agent = None


@contextlib.contextmanager
def _use_rpc_pickler(pickler):
    global _default_pickler
    before, _default_pickler = _default_pickler, pickler
    try:
        yield
    finally:
        _default_pickler = before


def _require_initialized(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if _agent is None:
            raise RuntimeError(NOT_YET)
        return function(*args, **kwargs)
    return wrapper


def _ns(seconds):
    """Converts a timeout of torch, where -1 is the default and 0 is no limit."""
    if seconds < 0:
        return t.XR_TIMEOUT_DEFAULT
    if seconds == 0:
        return t.XR_TIMEOUT_NEVER
    return max(1, min(int(seconds * 1e9), t.XR_TIMEOUT_NEVER))


# --- who ----------------------------------------------------------------------

class WorkerInfo:
    def __init__(self, name, id):
        if not name:
            raise RuntimeError("Worker name must be non-empty")
        if len(name) > t.XR_WORKER_NAME_MAX:
            raise RuntimeError("Worker name must be shorter than 128")
        if not re.fullmatch("[A-Za-z0-9_:-]+", name):
            raise RuntimeError(
                f"Worker name must match ^[A-Za-z0-9-_:]*$, not {name!r}")
        self.name = name
        self.id = id

    @classmethod
    def of(cls, worker):
        return cls(worker.name.decode(), worker.id)

    def __eq__(self, other):
        return isinstance(other, WorkerInfo) and \
            (self.name, self.id) == (other.name, other.id)

    def __hash__(self):
        return hash((self.name, self.id))

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, name={self.name})"


def _worker():
    return t.xr_worker(size=ctypes.sizeof(t.xr_worker))


class TensorPipeAgent:
    """What torch's programs ask their agent."""

    def __init__(self, options, is_static_group=True):
        self._options = options
        self.is_static_group = is_static_group

    def get_worker_info(self, which=None):
        worker = _worker()
        try:
            if which is None:
                check("xr_worker_self", ctypes.byref(worker))
            elif isinstance(which, str):
                check("xr_worker_find", which.encode(), ctypes.byref(worker))
            else:
                check("xr_worker_find_id", which, ctypes.byref(worker))
        except Error as e:
            if e.status != t.XR_E_NOTFOUND:
                raise
            raise RuntimeError(f"could not find destination: {e}") from None
        return WorkerInfo.of(worker)

    def get_worker_infos(self):
        count = ctypes.c_size_t()
        check("xr_worker_list", None, 0, ctypes.byref(count))
        workers = (t.xr_worker * count.value)()
        for worker in workers:
            worker.size = ctypes.sizeof(t.xr_worker)
        check("xr_worker_list", workers, len(workers), ctypes.byref(count))
        return [WorkerInfo.of(w) for w in workers[:count.value]]

    def get_debug_info(self):
        return {name: value for name, value in _metrics().items()
                if name.startswith("agent.")}

    def _get_backend_options(self):
        return self._options

    def _get_device_map(self, worker_info):
        return self._options.device_maps.get(worker_info.name, {})


def _metrics():
    found = {}

    def one(name, value, _):
        found[name.decode()] = str(value)

    status = x.xr_metrics_each(t.xr_metrics_fn(one), None)
    if status != t.XR_OK:
        raise Error(status, x.xr_status_text(status).decode())
    return found


def _rref_context_get_debug_info():
    return {name.removeprefix("rref."): value
            for name, value in _metrics().items()
            if not name.startswith("agent.")}


def _is_current_rpc_agent_set():
    return _agent is not None


def _get_current_rpc_agent():
    if _agent is None:
        raise RuntimeError(NO_AGENT)
    return _agent


def _set_and_start_rpc_agent(agent):
    global _agent
    _agent = agent


def _reset_current_rpc_agent():
    global _agent
    _agent = None


def _init_rpc_states(agent):
    if not _is_current_rpc_agent_set():
        _set_and_start_rpc_agent(agent)


@_require_initialized
def get_worker_info(worker_name=None):
    return _get_current_rpc_agent().get_worker_info(worker_name)


def _to_worker_info(to):
    if isinstance(to, WorkerInfo):
        return to
    if isinstance(to, (str, int)):
        return get_worker_info(to)
    raise ValueError(f"Cannot get WorkerInfo from name {to}")


def get_rpc_timeout():
    ns = made("xr_rpc_get_timeout", kind=ctypes.c_int64).value
    return 0.0 if ns == t.XR_TIMEOUT_NEVER else ns / 1e9


def _set_rpc_timeout(seconds):
    check("xr_rpc_set_timeout", _ns(seconds))


# --- functions that others call ---------------------------------------------

def _answer(call, thing, stays):
    """@stays: behind a reference."""
    value = wire.box(thing) if stays else wire.to_value(thing)
    x.xr_reply(call, value.give())


def _answer_later(call, future, stays):
    """With what @future will have, as it is to be sent."""
    answer = Future()

    def ended(future):
        error = future.error()
        try:
            if error is not None:
                answer.set_error(error)
            else:
                thing = future.value()
                answer.set_value(wire.box(thing) if stays else
                                 wire.to_value(thing))
        except BaseException as e:
            answer.set_error(wire.told(e, get_worker_info()))

    future.add_done_callback(ended)
    x.xr_reply_future(call, answer.give())


def _is_async(function):
    return hasattr(function, "_wrapped_async_rpc_function")


def _run(call, result, how):
    """@how: an ASYNC function's result is a future."""
    if not how.is_async:
        _answer(call, result, how.stays)
    elif isinstance(result, Future):
        _answer_later(call, result, how.stays)
    else:
        raise RuntimeError(
            "Functions decorated with @rpc.async_function must return a "
            f"torch.futures.Future object, but got {type(result)}")


def _guarded(call, body):
    """No exception leaves a callback: the caller has it."""
    try:
        body()
    except BaseException as e:
        error = wire.told(e, get_worker_info())
        x.xr_reply_error(call, error.give())
    return t.XR_OK


def _call_of(args):
    try:
        return wire.of_list(args)
    except AttributeError as e:
        raise RuntimeError(f"{e}. Default RPC pickler does not serialize "
                           "function code. Ensure that UDFs are defined on "
                           "both caller and callee modules.") from e


class How:
    """Of a function of the library's that runs Python's: by its name, it is
    one whose results stay behind a reference, or are futures."""

    def __init__(self, name):
        self.name = name
        self.stays = b"make" in name
        self.is_async = b"async" in name
        self.flags = t.XR_FN_ASYNC if self.is_async else 0


def _served(how):
    def body(call, args):
        function, positional, named = _call_of(args)
        _run(call, function(*positional, **named), how)
    return t.xr_func_fn(lambda call, args, _:
                        _guarded(call, lambda: body(call, args)))


METHOD_FN = dict(t.xr_method._fields_)["fn"]


def _method(how):
    """A method of the object behind a reference, by its name in Python."""
    def body(call, number, args):
        name, positional, named = _call_of(args)
        method = getattr(kept(number).thing, name)
        _run(call, method(*positional, **named), how)
    return METHOD_FN(lambda call, number, args, _:
                     _guarded(call, lambda: body(call, number, args)))


def _asked(what):
    return METHOD_FN(lambda call, number, args, _: _guarded(
        call, lambda: _answer(call, what(kept(number).thing), False)))


def _named(kind, stays, is_async):
    """What to call of what follows."""
    return kind + (b"make" if stays else b"call") + \
        (b"_async" if is_async else b"")


FUNCTIONS = [How(_named(b"python.", stays, is_async))
             for stays in (False, True) for is_async in (False, True)]
METHODS = [How(_named(b"", stays, is_async))
           for stays in (False, True) for is_async in (False, True)]
ASKED = {b"fetch": lambda thing: thing, b"type": type}
_kept_for_ever = []


def _register():
    """What others may call: once a process."""
    if _kept_for_ever:
        return
    methods = [t.xr_method(size=ctypes.sizeof(t.xr_method), name=how.name,
                           flags=how.flags, fn=_method(how))
               for how in METHODS]
    methods += [t.xr_method(size=ctypes.sizeof(t.xr_method), name=name,
                            fn=_asked(what)) for name, what in ASKED.items()]
    kind = wire.type_of(methods)
    check("xr_type_register", ctypes.byref(kind))
    _kept_for_ever.append(kind)
    for how in FUNCTIONS:
        function = t.xr_func(size=ctypes.sizeof(t.xr_func), name=how.name,
                             schema=b"o?*", flags=how.flags, fn=_served(how))
        check("xr_fn_register", ctypes.byref(function))
        _kept_for_ever.append(function)


# --- calls ------------------------------------------------------------------

def _profiled(mode, function, to):
    """A mark in torch's own profile, where one is made."""
    if not torch.autograd._profiler_enabled():
        return contextlib.nullcontext()
    name = getattr(function, "__qualname__", None) or str(function)
    return torch.autograd.profiler.record_function(
        f"rpc_{mode}#{name}({get_worker_info().name} -> {to.name})")


def _new_call(to, function, stays, args, timeout):
    return t.xr_rpc_call(size=ctypes.sizeof(t.xr_rpc_call), id=to.id,
                         func=_named(b"python.", stays, _is_async(function)),
                         args=args.pointer, timeout=_ns(timeout))


def _arguments(function, args, kwargs):
    return wire.to_value((function, tuple(args or ()), dict(kwargs or {})),
                         _default_pickler)


def _call(mode, to, function, args, kwargs, timeout):
    if not callable(function):
        raise TypeError("function should be callable.")
    to = _to_worker_info(to)
    with _profiled(mode, function, to):
        value = _arguments(function, args, kwargs)
        call = _new_call(to, function, False, value, timeout)
        return Future.adopt(made("xr_rpc_async", ctypes.byref(call)))


@_require_initialized
def rpc_sync(to, func, args=None, kwargs=None, timeout=UNSET_RPC_TIMEOUT):
    return _call("sync", to, func, args, kwargs, timeout).wait()


@_require_initialized
def rpc_async(to, func, args=None, kwargs=None, timeout=UNSET_RPC_TIMEOUT):
    future = _call("async", to, func, args, kwargs, timeout)
    if hasattr(_thread_local_var, "future_list"):
        _thread_local_var.future_list.append(future)
    return future


@_require_initialized
def remote(to, func, args=None, kwargs=None, timeout=UNSET_RPC_TIMEOUT):
    to = _to_worker_info(to)
    with _profiled("remote", func, to):
        value = _arguments(func, args, kwargs)
        call = _new_call(to, func, True, value, timeout)
        return RRef.adopt(made("xr_rpc_remote", ctypes.byref(call)))


@contextlib.contextmanager
def _wait_all():
    """The library collects the futures, as well as the list that torch's
    programs look at; each block has its own."""
    outer = getattr(_thread_local_var, "future_list", None)
    mine = _thread_local_var.future_list = []
    if _agent is not None:
        check("xr_rpc_wait_begin")
    try:
        yield
    finally:
        if outer is None:
            del _thread_local_var.future_list
        else:
            _thread_local_var.future_list = outer
        err = t.xr_error()
        status = x.xr_rpc_wait_end(t.XR_TIMEOUT_NEVER, ctypes.byref(err)) \
            if _agent is not None else t.XR_OK
        wait_all(mine)
        if status != t.XR_OK:
            raise Error(status, err.text.decode(errors="replace"))


# --- remote references ------------------------------------------------------

def _rref_id(one):
    return f"GloballyUniqueId(created_on={one.worker}, local_id={one.local})"


class RRef(wire.Reference):
    def __init__(self, value, type_hint=None):
        if _agent is None:
            raise RuntimeError(NO_AGENT)
        self._begin(made("xr_rref_from_value", wire.box(value).give()))

    def _begin(self, pointer):
        self._pointer = pointer
        self._type = None
        self._lock = threading.Lock()

    @classmethod
    def adopt(cls, pointer):
        rref = cls.__new__(cls)
        rref._begin(pointer)
        return rref

    def __class_getitem__(cls, _):
        return cls

    def __del__(self):
        if getattr(self, "_pointer", None):
            give_back("xr_rref_unref", self._pointer)

    def __reduce__(self):
        raise RuntimeError("Can not pickle rref in python pickler, rref can "
                           "only be pickled when using RPC")

    def __str__(self):
        text = ctypes.create_string_buffer(256)
        x.xr_rref_text(self._pointer, text, len(text))
        return text.value.decode()

    __repr__ = __str__

    def check_alive(self):
        if _agent is None:
            raise RuntimeError("Cannot call fork an UserRRef after deletion.")
        failed = self._get_future().error()
        error = wire.exception_of(failed.pointer) if failed else None
        if isinstance(error, Error):    # and not the function's own
            raise RuntimeError(
                f"RRef creation via rpc.remote() failed: {error}")

    def to_value(self):
        return Value(x.xr_value_new_rref(self._pointer))

    def _serialize(self):
        """What torch's own picklers put in its place: it travels as it is."""
        self.check_alive()
        return self

    @staticmethod
    def _deserialize(rref):
        return rref

    def is_owner(self):
        return x.xr_rref_is_owner(self._pointer)

    def owner(self):
        worker = _worker()
        status = x.xr_rref_owner(self._pointer, ctypes.byref(worker))
        if status != t.XR_OK:
            raise Error(status, x.xr_status_text(status).decode())
        return WorkerInfo.of(worker)

    def owner_name(self):
        return self.owner().name

    def confirmed_by_owner(self):
        return x.xr_rref_confirmed(self._pointer)

    def _ids(self):
        rref, fork = t.xr_rref_id(), t.xr_rref_id()
        x.xr_rref_id(self._pointer, ctypes.byref(rref), ctypes.byref(fork))
        return _rref_id(rref), _rref_id(fork)

    def local_value(self):
        if not self.is_owner():
            rref, fork = self._ids()
            raise RuntimeError(
                f"For UserRRef(rref_id={rref}, fork_id={fork}), can't call "
                f"localValue() on user {get_worker_info()}. Call it on owner "
                f"{self.owner()}")
        return self._local(t.XR_TIMEOUT_NEVER)

    def _local(self, timeout):
        try:
            value = Value(made("xr_rref_local", self._pointer, timeout))
        except Error as e:
            raise self._creation_error(e) from None
        return wire.of_value(value.pointer)

    def _creation_error(self, error):
        """The function's own, of which the library's line is the beginning; who
        waits for the value may hear of it first."""
        if error.status != t.XR_E_REMOTE:
            return error
        try:
            self._get_future().wait()
        except Exception as e:
            return e
        return error

    def to_here(self, timeout=UNSET_RPC_TIMEOUT):
        if _agent is None:
            raise RuntimeError("Cannot call to_here() on it after deletion.")
        try:
            if self.is_owner():
                return self._local(_ns(timeout))
            return self._ask(b"fetch", None, timeout).wait()
        except Error as e:
            created = self._get_future()
            if not created.done() or created.error() is None:
                raise
            raise RuntimeError(f"RRef creation via rpc.remote() failed: {e}") \
                from None

    def _new_call(self, method, args, timeout):
        return t.xr_rref_call(size=ctypes.sizeof(t.xr_rref_call),
                              rref=self._pointer, method=method,
                              args=args.pointer if args else None,
                              timeout=_ns(timeout))

    def _ask(self, method, args, timeout):
        call = self._new_call(method, args, timeout)
        return Future.adopt(made("xr_rref_call_async", ctypes.byref(call)))

    def _get_future(self):
        out = ctypes.c_void_p()
        status = x.xr_rref_created(self._pointer, ctypes.byref(out))
        if status != t.XR_OK:
            raise Error(status, x.xr_status_text(status).decode())
        return Future.adopt(out.value)

    def _get_type(self, timeout=UNSET_RPC_TIMEOUT, blocking=True):
        """The same future each time, but for one that failed."""
        with self._lock:
            future = self._type
            if future is None or future.done() and future.error():
                future = self._type = self._ask_type(timeout)
        return future.wait() if blocking else future

    def _ask_type(self, timeout):
        if not self.is_owner():
            with _profiled("async", _rref_typeof_on_owner, self.owner()):
                return self._ask(b"type", None, timeout)
        future = Future()
        future.set_result(type(self.local_value()))
        return future

    def rpc_sync(self, timeout=UNSET_RPC_TIMEOUT):
        return _Proxy(self, _method_sync, timeout)

    def rpc_async(self, timeout=UNSET_RPC_TIMEOUT):
        return _Proxy(self, _method_async, timeout)

    def remote(self, timeout=UNSET_RPC_TIMEOUT):
        return _Proxy(self, _method_remote, timeout)

    def backward(self, dist_autograd_ctx_id=-1, retain_graph=False):
        raise NotImplementedError("distributed autograd is torch's own")


PyRRef = RRef


def _reference_of(pointer):
    return RRef.adopt(x.xr_rref_ref(x.xr_value_rref(pointer)))


wire.reference_of = _reference_of


def _rref_typeof_on_owner(rref, blocking=True):
    return rref._get_type(blocking=blocking)


def _method_name(kind, name, stays):
    """What to call for the method @name of the type; it must have it."""
    return _named(b"", stays, _is_async(getattr(kind, name)))


def _method_sync(rref, name, args, kwargs, timeout):
    method = _method_name(rref._get_type(timeout), name, False)
    return rref._ask(method, wire.to_value((name, args, kwargs)),
                     timeout).wait()


def _method_remote(rref, name, args, kwargs, timeout):
    method = _method_name(rref._get_type(timeout), name, True)
    value = wire.to_value((name, args, kwargs))
    call = rref._new_call(method, value, timeout)
    return RRef.adopt(made("xr_rref_call_remote", ctypes.byref(call)))


def _method_async(rref, name, args, kwargs, timeout):
    """When the type is known, the method is called; when that is done, the
    future that this gave ends."""
    value = wire.to_value((name, args, kwargs))
    result = Future()

    def hand_on(called):
        error = called.error()
        if error is not None:
            result.set_error(error)
        else:
            result.set_result(called.value())

    def typed(future):
        try:
            method = _method_name(future.value(), name, False)
            rref._ask(method, value, timeout).add_done_callback(hand_on)
        except BaseException as e:
            result.set_exception(e)

    rref._get_type(timeout, blocking=False).add_done_callback(typed)
    return result


class _Proxy:
    """Methods of what is behind a reference."""

    def __init__(self, rref, how, timeout):
        self._what = (rref, how, timeout)

    def __getattr__(self, name):
        rref, how, timeout = self._what
        return lambda *args, **kwargs: how(rref, name, args, kwargs, timeout)


# --- of many ----------------------------------------------------------------

def _meeting(names, timeout):
    names = sorted(names or [])
    table = (ctypes.c_char_p * len(names))(*[n.encode() for n in names])
    return t.xr_rpc_meeting(size=ctypes.sizeof(t.xr_rpc_meeting),
                            names=table if names else None,
                            count=len(names), timeout=_ns(timeout))


def _met(error, timeout):
    if error.status != t.XR_E_TIMEOUT:
        return error
    seconds = get_rpc_timeout() if timeout < 0 else timeout
    return RuntimeError(f"timed out in _all_gather after {seconds:.2f} "
                        f"seconds: {error}")


@_require_initialized
def _all_gather(obj, worker_names=None, timeout=UNSET_RPC_TIMEOUT):
    value = wire.to_value(obj)
    try:
        gathered = Value(made("xr_rpc_allgather",
                              ctypes.byref(_meeting(worker_names, timeout)),
                              value.pointer))
    except Error as e:
        raise _met(e, timeout) from None
    return wire.of_value(gathered.pointer)


@_require_initialized
def _barrier(worker_names, timeout=UNSET_RPC_TIMEOUT):
    try:
        check("xr_rpc_barrier", ctypes.byref(_meeting(worker_names, timeout)))
    except Error as e:
        raise _met(e, timeout) from None


@_require_initialized
def _wait_all_workers(timeout=DEFAULT_SHUTDOWN_TIMEOUT):
    _barrier(None, timeout)


def _delete_all_user_and_unforked_owner_rrefs(timeout=None):
    """A step of torch's shutdown. Here it is one of xr_rpc_shutdown(), and
    nothing can be done about it from without."""


@_require_initialized
def shutdown(graceful=True, timeout=DEFAULT_SHUTDOWN_TIMEOUT):
    settle()
    flags = t.XR_SHUTDOWN_GRACEFUL if graceful else t.XR_SHUTDOWN_IMMEDIATE
    # Who leaves gracefully releases what the program still has; with torch that
    # is no leak.
    if not graceful and not _ignore_rref_leak:
        flags |= t.XR_SHUTDOWN_STRICT
    try:
        check("xr_rpc_shutdown", flags, _ns(timeout))
    except Error as e:
        if e.status != t.XR_E_EXISTS:
            raise
        raise RuntimeError(f"Leaking RRefs: {e}") from None
    finally:
        _reset_current_rpc_agent()
