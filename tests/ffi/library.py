# SPDX-License-Identifier: Apache-2.0
"""libxrun.so through table.py: its functions, its errors, and what of Python it
holds on to.

ctypes gives the interpreter's lock back for the time of each call, and takes it
for each callback, on whichever of the library's threads that is. So no thread
waits for the library with the lock, and the library's threads may wait for it.
"""
import ctypes
import os
import queue
import threading

import table as t

HERE = os.path.dirname(os.path.realpath(__file__))
BUILD = os.environ.get("BUILD") or os.path.join(HERE, "..", "..", "build")
NOTHING = ctypes.c_void_p


class Error(RuntimeError):
    """A status that is not XR_OK, with the library's line."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Library:
    """Functions by their names. It is loaded when one is first asked for: a
    child of fork() that its parent loaded it for could not use it."""

    def __init__(self):
        self._loaded = None

    def __getattr__(self, name):
        if self._loaded is None:
            path = os.environ.get("LIBXRUN") or os.path.join(
                BUILD, "worker", "libxrun.so.0")
            self._loaded = ctypes.CDLL(path)
        function = getattr(self._loaded, name)
        function.restype, function.argtypes = t.FUNCTIONS[name]
        setattr(self, name, function)
        return function

    def is_loaded(self):
        return self._loaded is not None


x = Library()


def check(name, *arguments):
    """Call what has a struct xr_error last; raises what it says."""
    err = t.xr_error()
    status = getattr(x, name)(*arguments, ctypes.byref(err))
    if status != t.XR_OK:
        raise Error(status, err.text.decode(errors="replace") or
                    x.xr_status_text(status).decode())


def made(name, *arguments, kind=NOTHING):
    """The same where the argument before receives something."""
    out = kind()
    check(name, *arguments, ctypes.byref(out))
    return out if kind is not NOTHING else out.value


# --- what the library holds on to ------------------------------------------

_lock = threading.Lock()
_kept = {}
_next = 0


def keep(thing):
    """A number for the library to have in place of @thing."""
    global _next
    with _lock:
        _next += 1
        _kept[_next] = thing
        return _next


def kept(number):
    return _kept[number]


def take(number):
    with _lock:
        return _kept.pop(number)


# --- giving back ------------------------------------------------------------

# Objects end wherever the collector finds them, also in a callback that may not
# call the library; what they have of the library's is given back elsewhere then.
_thread = threading.local()
_later = queue.SimpleQueue()
_reaper = None


class Restricted:
    """Around callbacks in which nothing may be given back."""

    def __enter__(self):
        _thread.depth = getattr(_thread, "depth", 0) + 1

    def __exit__(self, *_):
        _thread.depth -= 1


def _reap():
    while True:
        name, pointer = _later.get()
        if name is None:
            pointer.set()
        else:
            getattr(x, name)(pointer)


def give_back(name, pointer):
    if getattr(_thread, "depth", 0) == 0:
        getattr(x, name)(pointer)
    else:
        _later.put((name, pointer))


def begin():
    """The thread that gives back what could not be at once."""
    global _reaper
    if _reaper is None:
        _reaper = threading.Thread(target=_reap, daemon=True, name="reaper")
        _reaper.start()


def settle():
    """All that was dropped before has been given back."""
    if _reaper is not None:
        done = threading.Event()
        _later.put((None, done))
        done.wait()


class Value:
    """A reference to a value."""

    def __init__(self, pointer):
        if not pointer:
            raise Error(t.XR_E_NOMEM, "no memory for a value")
        self.pointer = pointer

    @classmethod
    def of(cls, borrowed):
        return cls(x.xr_value_ref(borrowed))

    def give(self):
        """The pointer, for who takes its reference."""
        pointer, self.pointer = self.pointer, None
        return pointer

    def __del__(self):
        if self.pointer:
            give_back("xr_value_unref", self.pointer)
