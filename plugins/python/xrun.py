# SPDX-License-Identifier: Apache-2.0
"""What a rank of an xrun job can know and tell, in one file.

    import xrun

    print(xrun.rank(), xrun.size(), xrun.device())
    xrun.ready()
    for step in range(1000):
        train(step)
        xrun.progress(step, total=1000, loss=loss)

Outside of a job the rank is 0 of 1, and what is told is told to nobody: a script
need not know how it was started. Nothing here needs more than the standard
library, and nothing here raises because xrun is gone or busy: a job does not fail
of its reports. Threads may call all of it at once. After a fork both processes
speak for the rank.

`xrun ps JOB` shows what was told; the protocol is xrun-protocol(7).
"""
import functools
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback

__all__ = ["rank", "size", "local_rank", "local_size", "node", "nodes", "job",
           "attempt", "device", "in_job", "ready", "progress", "on_stop",
           "stopping", "grace", "record"]

PER_SECOND = 10  # reports of progress; more would tell nobody more
METRICS_MAX = 4096

_lock = threading.Lock()
_socket = None
_opened = False
_told = 0.0
_stopping = threading.Event()
_stop_functions = []


# --- who we are ---------------------------------------------------------------

def _number(name, otherwise):
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return otherwise


def in_job():
    """Was this process started by xrun?"""
    return "XRUN_JOB" in os.environ


def rank():
    """The number of this rank, from 0."""
    return _number("XRUN_RANK", 0)


def size():
    """How many ranks the job has."""
    return _number("XRUN_SIZE", 1)


def local_rank():
    """The number of this rank on its machine, from 0."""
    return _number("XRUN_LOCAL_RANK", 0)


def local_size():
    """How many ranks the job has on this machine."""
    return _number("XRUN_LOCAL_SIZE", 1)


def node():
    """The number of this machine in the job, from 0."""
    return _number("XRUN_NODE", 0)


def nodes():
    """How many machines the job has."""
    return _number("XRUN_NODES", 1)


def job():
    """The id of the job; "" outside of one."""
    return os.environ.get("XRUN_JOB", "")


def attempt():
    """How often the job was started before; 0 at first."""
    return _number("XRUN_ATTEMPT", 0)


def device():
    """What this rank computes on: "cpu", "cuda:3", "tpu:11"."""
    return os.environ.get("XRUN_DEVICE", "cpu")


# --- what we tell -------------------------------------------------------------

def _open():
    """The socket of the job, or None. Descriptor and inode are both named in
    XRUN_CONTROL_FD, since a program may have closed the one and opened
    something else in its place."""
    try:
        fd, inode = map(int, os.environ["XRUN_CONTROL_FD"].split(":"))
        if os.fstat(fd).st_ino != inode:
            return None
        return socket.socket(fileno=os.dup(fd))
    except (KeyError, ValueError, OSError):
        return None


def _tell(message):
    """One message, or none: it never waits, and never fails."""
    global _socket, _opened
    with _lock:
        if not _opened:
            _socket = _open()
            _opened = True
        if _socket is None:
            return
        try:
            message["rank"] = rank()
            _socket.send(json.dumps(message, allow_nan=False).encode(),
                         socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except (OSError, ValueError, TypeError):
            pass


def ready():
    """This rank has what it needs, and begins to work."""
    _tell({"type": "ready"})


def _as_number(value):
    """What json can write: numbers of numpy and torch have item()."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if value - value == 0 else None  # neither inf nor nan


def progress(step, total=None, **metrics):
    """`step` of `total` steps are done. Metrics are numbers by name; what is no
    finite number is left out. At most ten times a second it is told, the last
    step always."""
    global _told
    now = time.monotonic()
    if now - _told < 1 / PER_SECOND and step != total:
        return
    _told = now
    message = {"type": "progress", "step": int(step)}
    if total is not None:
        message["total"] = int(total)
    numbers = {name: _as_number(value) for name, value in metrics.items()}
    numbers = {k: v for k, v in numbers.items() if v is not None}
    if numbers and len(json.dumps(numbers)) <= METRICS_MAX:
        message["metrics"] = numbers
    _tell(message)


# --- how we end ---------------------------------------------------------------

def _on_signal(number, frame):
    _stopping.set()
    for function in _stop_functions:
        function()


def on_stop(function=None, signals=(signal.SIGTERM,)):
    """Call `function` when the job is told to stop, in the main thread, between
    two steps of Python. The rank then has the time of xrun's --grace to save what
    it has. It is to end by itself; stopping() tells a loop to. May be a
    decorator. Only the main thread may call it."""
    if function is not None:
        _stop_functions.append(function)
    for number in signals:
        signal.signal(number, _on_signal)
    return function


def grace(seconds):
    """The rank needs so many seconds from now on to save what it has, though
    --grace be less: xrun waits for it before it kills. At most 600; ask again if
    it takes longer. Before the job is told to stop it does nothing."""
    _tell({"type": "grace", "seconds": float(seconds)})


def stopping():
    """Was the job told to stop? Asked for by on_stop()."""
    return _stopping.is_set()


def _write_error(error):
    """What xrun shows of a failure, where it asked for it: the file that
    torch.distributed.elastic names, in its form."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    text = "".join(traceback.format_exception(type(error), error,
                                              error.__traceback__))
    content = {"message": {
        "message": f"{type(error).__name__}: {error}",
        "extraInfo": {"py_callstack": text, "timestamp": str(int(time.time()))},
    }}
    try:
        with open(path, "x", encoding="utf-8") as file:
            json.dump(content, file)
    except OSError:
        pass  # there is one already, or no room


def record(function):
    """A decorator for main(): an exception that ends the rank is told to xrun
    with its traceback, and goes on."""
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            _write_error(error)
            raise
    return wrapper


def _watch_crashes():
    """A crash in native code, too, shows where Python was: on stderr, which
    xrun keeps. PYTHONFAULTHANDLER or the program itself may have it so."""
    import faulthandler
    if sys.stderr is not None and not faulthandler.is_enabled():
        try:
            faulthandler.enable()
        except (OSError, ValueError, AttributeError):
            pass  # no stderr with a descriptor


if in_job():
    _watch_crashes()
