# SPDX-License-Identifier: Apache-2.0
"""Pools as multiprocessing has them, which are xr_pool.

There is one function, "python", which is bound to the function that a task is of, and
which takes that one's arguments. What goes to processes, and comes back, is pickled,
as bytes; threads have the objects themselves, each as an OPAQUE. An error travels with
its exception, pickled, as its cause.

A process that makes pools calls begin() first; so does a program that is executed
anew to be a worker, with serve(), which does not return then.
"""
import base64
import ctypes
import multiprocessing
import multiprocessing.pool
import os
import pickle
import sys
import traceback
import warnings

import library
import table as t
from library import Restricted, Value, check, keep, kept, made, take, x

NAME = b"python"
CONTEXT = b"python with a context"   # the same, which comes first
GRACE = 2 * 10**9   # of terminate()
FOR_EVER = t.XR_TIMEOUT_NEVER
RUN, CLOSE, TERMINATE = "RUN", "CLOSE", "TERMINATE"


# --- values ------------------------------------------------------------------

def pickled(thing):
    data = pickle.dumps(thing)
    return Value(x.xr_value_new_bytes(data, len(data)))


def boxed(thing):
    return Value(x.xr_value_new_opaque(NAME, keep(thing)))


def unwrap(pointer):
    """Of a borrowed value: what it stands for."""
    if x.xr_value_kind(pointer) == t.XR_NIL:
        return None
    number = x.xr_value_object(pointer, NAME)
    if number:
        return kept(number)
    if x.xr_value_kind(pointer) == t.XR_LIST:
        return [unwrap(x.xr_value_at(pointer, i))
                for i in range(x.xr_value_count(pointer))]
    length = ctypes.c_size_t()
    data = x.xr_value_data(pointer, ctypes.byref(length))
    return pickle.loads(ctypes.string_at(data, length.value))


def listed(values):
    made_list = Value(x.xr_value_new_list())
    for value in values:
        if x.xr_value_append(made_list.pointer, value.give()) != t.XR_OK:
            raise MemoryError
    return made_list


# --- errors ------------------------------------------------------------------

def failed(error):
    """An ERROR value of the exception @error."""
    text = "".join(traceback.format_exception(error))
    told = multiprocessing.pool.ExceptionWithTraceback(error,
                                                       error.__traceback__)
    try:
        data = base64.b64encode(pickle.dumps(told))
    except Exception as e:
        told = multiprocessing.pool.MaybeEncodingError(e, error)
        data = base64.b64encode(pickle.dumps(told))
    size = ctypes.sizeof(t.xr_failure)
    cause = t.xr_failure(size=size, status=t.XR_E_REMOTE, type=NAME, text=data)
    with_it = Value(x.xr_value_new_error(ctypes.byref(cause)))
    failure = t.xr_failure(size=size, status=t.XR_E_REMOTE,
                           type=type(error).__name__.encode(),
                           text=text.encode(errors="replace"),
                           cause=with_it.pointer)
    return Value(x.xr_value_new_error(ctypes.byref(failure)))


def exception_of(pointer):
    """The exception that a borrowed ERROR stands for."""
    failure = t.xr_failure(size=ctypes.sizeof(t.xr_failure))
    x.xr_value_failure(pointer, ctypes.byref(failure))
    cause = t.xr_failure(size=ctypes.sizeof(t.xr_failure))
    if failure.cause and x.xr_value_failure(
            failure.cause, ctypes.byref(cause)) == t.XR_OK and \
            cause.type == NAME:
        return pickle.loads(base64.b64decode(cause.text))
    return library.Error(failure.status, (failure.text or b"").decode())


# --- the function -------------------------------------------------------------

def _answer(call, result, by_box):
    if by_box:
        x.xr_reply(call, boxed(result).give())
        return
    try:
        value = pickled(result)
    except Exception as e:
        value = failed(multiprocessing.pool.MaybeEncodingError(e, result))
        x.xr_reply_error(call, value.give())
        return
    x.xr_reply(call, value.give())


def _serve(call, args, ctx):
    """What it is bound to comes behind the context."""
    try:
        context = [unwrap(x.xr_value_at(args, 0))] if ctx else []
        by_box = bool(x.xr_value_object(x.xr_value_at(args, len(context)),
                                        NAME))
        function, *arguments = [unwrap(x.xr_value_at(args, i)) for i in
                                range(len(context), x.xr_value_count(args))]
        arguments = context + arguments
        named = x.xr_call_named(call)
        named = unwrap(x.xr_value_find(named, NAME, len(NAME))) \
            if named else {}
        _answer(call, function(*arguments, **named), by_box)
    except SystemExit:
        raise
    except BaseException as e:
        x.xr_reply_error(call, failed(e).give())
    return t.XR_OK


def _encode(number, _):
    """Of what a function is bound to: read by processes, which have no boxes."""
    data = str(number).encode()
    return x.xr_value_new_bytes(data, len(data))


def _free(number, _):
    with Restricted():
        take(number)


_held = []


def register():
    """What processes and threads of pools run; once in a process."""
    if _held:
        return
    members = dict(t.xr_type._fields_)
    kind = t.xr_type(size=ctypes.sizeof(t.xr_type), name=NAME,
                     encode=members["encode"](_encode),
                     free=members["free"](_free))
    fn = t.xr_func_fn(_serve)
    _held.extend((kind, fn))
    check("xr_type_register", ctypes.byref(kind))
    for name, ctx in ((NAME, None), (CONTEXT, 1)):
        function = t.xr_func(size=ctypes.sizeof(t.xr_func), name=name, fn=fn,
                             ctx=ctx)
        check("xr_fn_register", ctypes.byref(function))


def begin():
    register()
    check("xr_init")


def serve():
    """In a program that was executed to be a worker, or the zygote."""
    if "XRUN_ZYGOTE_FD" in os.environ or "XRUN_CARD_FD" in os.environ:
        register()
        check("xr_init")
        sys.exit("executed to be a worker, and not served")


# --- results -------------------------------------------------------------------

def nanoseconds(timeout):
    return FOR_EVER if timeout is None else max(0, round(timeout * 1e9))


class AsyncResult:
    def __init__(self, future):
        self._future = future

    def __del__(self):
        if getattr(self, "_future", None):
            library.give_back("xr_future_unref", self._future)

    def ready(self):
        return x.xr_future_done(self._future)

    def successful(self):
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        error = x.xr_future_error(self._future)
        if error:
            x.xr_value_unref(error)
        return not error

    def wait(self, timeout=None):
        x.xr_future_wait(self._future, nanoseconds(timeout), None, None)

    def get(self, timeout=None):
        self.wait(timeout)
        if not self.ready():
            raise multiprocessing.TimeoutError
        error = x.xr_future_error(self._future)
        if error:
            raise exception_of(Value(error).pointer)
        return unwrap(Value(made("xr_future_value", self._future)).pointer)


MapResult = AsyncResult


class IMapIterator:
    def __init__(self, pointer):
        self._pointer = pointer

    def __del__(self):
        if getattr(self, "_pointer", None):
            library.give_back("xr_pool_iter_free", self._pointer)

    def __iter__(self):
        return self

    def next(self, timeout=None):
        value = library.NOTHING()
        err = t.xr_error()
        status = x.xr_pool_iter_next(self._pointer, nanoseconds(timeout),
                                     ctypes.byref(value), ctypes.byref(err))
        got = Value(value.value) if value.value else None
        if status == t.XR_OK:
            return unwrap(got.pointer)
        if status == t.XR_E_END:
            raise StopIteration
        if got is not None:
            raise exception_of(got.pointer)
        if status == t.XR_E_TIMEOUT:
            raise multiprocessing.TimeoutError
        raise library.Error(status, err.text.decode(errors="replace"))

    __next__ = next


# --- pools ---------------------------------------------------------------------

class Worker:
    def __init__(self, pid):
        self.pid = pid

    def is_alive(self):
        return self.pid > 0 and os.path.exists(f"/proc/{self.pid}")


class Pool:
    kind, mode = t.XR_POOL_PROCESSES, t.XR_ENC_COPY
    wrap = staticmethod(pickled)
    routing, flags = t.XR_POOL_SHARED, 0
    METHODS = {"fork": b"fork", "spawn": b"spawn", "forkserver": b"zygote"}

    def __init__(self, processes=None, initializer=None, initargs=(),
                 maxtasksperchild=None, context=None):
        self._pointer = None
        begin()
        if processes is not None and processes < 1:
            raise ValueError("Number of processes must be at least 1")
        if maxtasksperchild is not None and (
                not isinstance(maxtasksperchild, int) or maxtasksperchild < 1):
            raise ValueError("maxtasksperchild must be a positive int or None")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        opts = t.xr_pool_opts(size=ctypes.sizeof(t.xr_pool_opts),
                              kind=self.kind, mode=self.mode,
                              routing=self.routing, flags=self.flags,
                              workers=processes or os.cpu_count(),
                              max_tasks=maxtasksperchild or 0,
                              method=self.method(context))
        arguments = None
        if initializer is not None:
            arguments = listed([self.wrap_function(initializer),
                                *(self.wrap(thing) for thing in initargs)])
            opts.initializer, opts.initargs = NAME, arguments.pointer
        self.prepare(opts)
        self._pointer = made("xr_pool_new", ctypes.byref(opts))
        library.begin()
        self._callbacks = []
        self._state = RUN

    def method(self, context):
        return self.METHODS[(context or multiprocessing).get_start_method()]

    def wrap_function(self, function):
        return self.wrap(function)

    def prepare(self, opts):
        """For those who derive from it."""

    def __del__(self):
        if self._pointer is None:
            return
        if self._state == RUN:
            warnings.warn(f"unclosed running multiprocessing pool {self!r}",
                          ResourceWarning, source=self)
        library.give_back("xr_pool_free", self._pointer)

    def __reduce__(self):
        raise NotImplementedError("pool objects cannot be passed between "
                                  "processes or pickled")

    def __enter__(self):
        self._check_running()
        return self

    def __exit__(self, *_):
        self.terminate()

    def _check_running(self):
        if self._state != RUN:
            raise ValueError("Pool not running")

    # How one calls back is kept until the pool ends: it runs on another thread.
    def _task(self, func, args, callbacks=(None, None), **more):
        self._check_running()
        bound = Value(x.xr_fn_bind(CONTEXT if self.flags else NAME,
                                   self.wrap_function(func).give()))
        task = t.xr_pool_task(size=ctypes.sizeof(t.xr_pool_task),
                              func=bound.pointer, args=args.pointer, **more)
        members = dict(t.xr_pool_task._fields_)
        for name, read, callback in zip(
                ("callback", "error_callback"), (unwrap, exception_of),
                callbacks):
            if callback is None:
                continue

            def call(value, _, read=read, callback=callback):
                callback(read(value))
                return t.XR_OK
            setattr(task, name, members[name](call))
            self._callbacks.append(getattr(task, name))
        task.held = bound, args
        return task

    def _submit(self, name, task):
        return made(name, self._pointer, ctypes.byref(task))

    def apply_async(self, func, args=(), kwds=None, callback=None,
                    error_callback=None):
        named = None
        if kwds:
            named = Value(x.xr_value_new_dict())
            x.xr_value_put(named.pointer, NAME, len(NAME),
                           self.wrap(kwds).give())
        task = self._task(func, listed(self.wrap(a) for a in args),
                          (callback, error_callback),
                          named=named.pointer if named else None)
        return AsyncResult(self._submit("xr_pool_apply_async", task))

    def apply(self, func, args=(), kwds=None):
        return self.apply_async(func, args, kwds).get()

    def _chunked(self, chunksize):
        if chunksize is None:
            return {}
        return {"flags": t.XR_POOL_CHUNK, "chunk": chunksize}

    def map_async(self, func, iterable, chunksize=None, callback=None,
                  error_callback=None):
        task = self._task(func, listed(self.wrap(item) for item in iterable),
                          (callback, error_callback),
                          **self._chunked(chunksize))
        return MapResult(self._submit("xr_pool_map_async", task))

    def map(self, func, iterable, chunksize=None):
        return self.map_async(func, iterable, chunksize).get()

    def starmap_async(self, func, iterable, chunksize=None, callback=None,
                      error_callback=None):
        items = listed(listed(self.wrap(thing) for thing in item)
                       for item in iterable)
        task = self._task(func, items, (callback, error_callback),
                          **self._chunked(chunksize))
        return MapResult(self._submit("xr_pool_starmap_async", task))

    def starmap(self, func, iterable, chunksize=None):
        return self.starmap_async(func, iterable, chunksize).get()

    def imap(self, func, iterable, chunksize=1):
        task = self._task(func, listed(self.wrap(item) for item in iterable),
                          **self._chunked(chunksize))
        return IMapIterator(self._submit("xr_pool_imap", task))

    def imap_unordered(self, func, iterable, chunksize=1):
        task = self._task(func, listed(self.wrap(item) for item in iterable),
                          **self._chunked(chunksize))
        return IMapIterator(self._submit("xr_pool_imap_unordered", task))

    @property
    def _pool(self):
        room = (ctypes.c_int32 * 64)()
        x.xr_pool_pids(self._pointer, room, len(room))
        return [Worker(room[i]) for i in range(x.xr_pool_size(self._pointer))]

    def _repopulate_pool(self):
        check("xr_pool_repopulate", self._pointer)

    def close(self):
        if self._state == RUN:
            self._state = CLOSE
            x.xr_pool_close(self._pointer)

    def terminate(self):
        self._state = TERMINATE
        check("xr_pool_terminate", self._pointer, GRACE)

    def join(self):
        if self._state == RUN:
            raise ValueError("Pool is still running")
        check("xr_pool_join", self._pointer, FOR_EVER)


class ThreadPool(Pool):
    kind, mode = t.XR_POOL_THREADS, t.XR_ENC_SHARE
    wrap = staticmethod(boxed)

    def __init__(self, processes=None, initializer=None, initargs=()):
        super().__init__(processes, initializer, initargs)


def install():
    """In the place of multiprocessing's, in all of its contexts."""
    import multiprocessing.context
    import multiprocessing.dummy

    def pool(self, processes=None, initializer=None, initargs=(),
             maxtasksperchild=None):
        return Pool(processes, initializer, initargs, maxtasksperchild, self)
    multiprocessing.context.BaseContext.Pool = pool
    multiprocessing.Pool = multiprocessing.context._default_context.Pool
    multiprocessing.dummy.Pool = ThreadPool
    multiprocessing.pool.Pool = Pool
    multiprocessing.pool.ThreadPool = ThreadPool
