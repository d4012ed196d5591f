# SPDX-License-Identifier: Apache-2.0
"""torch.futures over xr_future."""
import ctypes
import threading

import table as t
import wire
from library import Error, Value, give_back, keep, take, x


def _fail_text(exception):
    return ("Got the following error when running the callback: "
            f"{type(exception).__name__}: {exception}")


@t.xr_then_fn
def _then(_, number, result, err):
    future, callback, child = take(number)
    try:
        value = callback(future)
    except BaseException as e:
        if child is not None:
            child.set_exception(RuntimeError(_fail_text(e)))
    else:
        if child is not None:
            child.set_result(value)
    return t.XR_OK


class Future:
    """A result that is not there yet."""

    def __init__(self, *, devices=None):
        for device in devices or []:
            raise ValueError(f"no such device here: {device}")
        self._begin(x.xr_future_new(None))

    def _begin(self, pointer):
        if not pointer:
            raise Error(t.XR_E_NOMEM, "no memory for a future")
        self._pointer = pointer
        self._lock = threading.Lock()
        self._made = None       # (value,), once it was made of the library's
        self._mapped = None     # what the value is, where that is known here

    @classmethod
    def adopt(cls, pointer):
        """Of the library's; its reference is taken."""
        future = cls.__new__(cls)
        future._begin(pointer)
        return future

    def __class_getitem__(cls, _):
        return cls

    def __del__(self):
        if getattr(self, "_pointer", None):
            give_back("xr_future_unref", self._pointer)

    def __reduce__(self):
        raise RuntimeError("Can not pickle torch.futures.Future")

    def done(self):
        return x.xr_future_done(self._pointer)

    def _result(self, pointer):
        value = Value(pointer)
        with self._lock:
            if self._made is None:
                self._made = (self._mapped() if self._mapped else
                              wire.of_value(value.pointer),)
            return self._made[0]

    def error(self):
        """The ERROR that it ended with, or None."""
        pointer = x.xr_future_error(self._pointer)
        return Value(pointer) if pointer else None

    def _end(self, name, *arguments):
        try:
            pointer = self._ask(name, *arguments)
        except Error:
            error = self.error()
            if error is None:
                raise
            raise wire.exception_of(error.pointer) from None
        return self._result(pointer)

    def _ask(self, name, *arguments):
        out, err = ctypes.c_void_p(), t.xr_error()
        status = getattr(x, name)(self._pointer, *arguments,
                                  ctypes.byref(out), ctypes.byref(err))
        if status != t.XR_OK:
            raise Error(status, err.text.decode(errors="replace"))
        return out.value

    def wait(self):
        return self._end("xr_future_wait", t.XR_TIMEOUT_NEVER)

    def value(self):
        return self._end("xr_future_value")

    def _follow(self, callback, child):
        if not callable(callback):
            raise TypeError("incompatible function arguments. A callback is "
                            f"wanted, and this is {callback!r}")
        number = keep((self, callback, child))
        status = x.xr_future_then(self._pointer, _then, number, 0, None)
        if status != t.XR_OK:
            take(number)
            raise Error(status, x.xr_status_text(status).decode())

    def then(self, callback):
        child = Future()
        self._follow(callback, child)
        return child

    def add_done_callback(self, callback):
        self._follow(callback, None)

    def _set(self, name, value):
        status = getattr(x, name)(self._pointer, value.give())
        if status == t.XR_E_STATE:
            raise RuntimeError("Future can only be marked completed once: " +
                               x.xr_status_text(status).decode())
        if status != t.XR_OK:
            raise Error(status, x.xr_status_text(status).decode())

    def set_result(self, value):
        self._set("xr_future_set", wire.box(value))

    def set_value(self, value):
        """With what the library has."""
        self._set("xr_future_set", value)

    def set_exception(self, exception):
        assert isinstance(exception, Exception), \
            f"{exception} is of type {type(exception)}, not an Exception"
        self.set_error(wire.error_value(exception))

    def set_error(self, error):
        self._set("xr_future_fail", error)

    def give(self):
        """A reference, for who takes it."""
        return x.xr_future_ref(self._pointer)


def collect_all(futures):
    """A future of these futures, when all have ended, or one has failed."""
    futures = list(futures)
    pointers = (ctypes.c_void_p * len(futures))(
        *[f._pointer for f in futures])
    out = ctypes.c_void_p()
    status = x.xr_future_all(pointers, len(futures), ctypes.byref(out))
    if status != t.XR_OK:
        raise Error(status, x.xr_status_text(status).decode())
    every = Future.adopt(out.value)
    every._mapped = lambda: futures
    return every


def wait_all(futures):
    """Their values; the first error at once."""
    return [f.wait() for f in collect_all(futures).wait()]
