# SPDX-License-Identifier: Apache-2.0
"""Queues as multiprocessing has them, which are xr_queue.

An item travels pickled, as bytes. A queue is handed to a process that is started:
to one that is forked by its handle, to others by its text. Nothing is between who
puts and who gets, so put() raises what multiprocessing's thread would print.
"""
import ctypes
import multiprocessing
import multiprocessing.context
import multiprocessing.queues
import multiprocessing.reduction
import queue

import library
import table as t
from library import check, made, x

UNBOUNDED = 32767   # as the system's semaphores are
BYTES = 64 << 20
FOR_EVER = t.XR_TIMEOUT_NEVER


class Handle:
    """What is freed when nobody of this process has it."""

    def __init__(self, pointer):
        self.pointer = pointer

    @classmethod
    def new(cls, items):
        opts = t.xr_queue_opts(size=ctypes.sizeof(t.xr_queue_opts),
                               items=items, bytes=BYTES)
        return cls(made("xr_queue_new", ctypes.byref(opts)))

    @classmethod
    def open(cls, text):
        return cls(made("xr_queue_open", text))

    def text(self):
        room = ctypes.create_string_buffer(t.XR_QUEUE_TEXT_MAX)
        check("xr_queue_text", self.pointer, room, len(room))
        return room.value

    def put(self, data, timeout):
        check("xr_queue_put_bytes", self.pointer, data, len(data), timeout)

    def get(self, timeout):
        buf = t.xr_queue_buf()
        check("xr_queue_get_bytes", self.pointer, ctypes.byref(buf), timeout)
        try:
            return ctypes.string_at(buf.data, buf.len)
        finally:
            _free(buf.data)

    def count(self):
        return x.xr_queue_count(self.pointer)

    def __del__(self):
        if getattr(self, "pointer", None):
            library.give_back("xr_queue_free", self.pointer)


_free = ctypes.CDLL(None).free
_free.argtypes, _free.restype = (ctypes.c_void_p,), None


def nanoseconds(block, timeout):
    if not block:
        return 0
    return FOR_EVER if timeout is None else max(0, round(timeout * 1e9))


class SimpleQueue:
    def __init__(self, *, ctx=None):
        self._handle = Handle.new(UNBOUNDED)

    def __getstate__(self):
        multiprocessing.context.assert_spawning(self)
        return self._handle.text()

    def __setstate__(self, state):
        self._handle = Handle.open(state)

    def _open(self):
        if self._handle is None:
            raise ValueError(f"Queue {self!r} is closed")
        return self._handle

    def empty(self):
        return self._open().count() == 0

    def put(self, obj):
        data = multiprocessing.reduction.ForkingPickler.dumps(obj)
        self._open().put(bytes(data), FOR_EVER)

    def get(self):
        return multiprocessing.reduction.ForkingPickler.loads(
            self._open().get(FOR_EVER))

    def close(self):
        self._handle = None


class Queue(SimpleQueue):
    def __init__(self, maxsize=0, *, ctx=None):
        self._maxsize = maxsize if maxsize > 0 else UNBOUNDED
        self._handle = Handle.new(self._maxsize)

    def __getstate__(self):
        return self._maxsize, super().__getstate__()

    def __setstate__(self, state):
        self._maxsize, text = state
        super().__setstate__(text)

    def put(self, obj, block=True, timeout=None):
        data = multiprocessing.reduction.ForkingPickler.dumps(obj)
        try:
            self._open().put(bytes(data), nanoseconds(block, timeout))
        except library.Error as e:
            if e.status == t.XR_E_TIMEOUT:
                raise queue.Full from None
            raise

    def get(self, block=True, timeout=None):
        try:
            data = self._open().get(nanoseconds(block, timeout))
        except library.Error as e:
            if e.status == t.XR_E_TIMEOUT:
                raise queue.Empty from None
            raise
        return multiprocessing.reduction.ForkingPickler.loads(data)

    def put_nowait(self, obj):
        self.put(obj, False)

    def get_nowait(self):
        return self.get(False)

    def qsize(self):
        return self._open().count()

    def full(self):
        return self.qsize() >= self._maxsize

    def join_thread(self):
        """There is none."""

    cancel_join_thread = join_thread


class JoinableQueue(Queue):
    """As multiprocessing counts what is not done."""

    def __init__(self, maxsize=0, *, ctx=None):
        super().__init__(maxsize)
        ctx = ctx or multiprocessing.get_context()
        self._undone = ctx.Semaphore(0)
        self._all_done = ctx.Condition()

    def __getstate__(self):
        return super().__getstate__(), self._undone, self._all_done

    def __setstate__(self, state):
        state, self._undone, self._all_done = state
        super().__setstate__(state)

    def put(self, obj, block=True, timeout=None):
        with self._all_done:
            super().put(obj, block, timeout)
            self._undone.release()

    def task_done(self):
        with self._all_done:
            if not self._undone.acquire(False):
                raise ValueError("task_done() called too many times")
            if self._undone._semlock._is_zero():
                self._all_done.notify_all()

    def join(self):
        with self._all_done:
            if not self._undone._semlock._is_zero():
                self._all_done.wait()


def install():
    """In the place of multiprocessing's, in all of its contexts."""
    for name, kind in (("Queue", Queue), ("JoinableQueue", JoinableQueue),
                       ("SimpleQueue", SimpleQueue)):
        def method(self, *args, _kind=kind, **more):
            return _kind(*args, ctx=self.get_context(), **more)
        setattr(multiprocessing.context.BaseContext, name, method)
        setattr(multiprocessing.queues, name, kind)
        setattr(multiprocessing, name,
                getattr(multiprocessing.context._default_context, name))
