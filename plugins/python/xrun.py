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
of its reports. Threads and signal handlers may call all of it at once: there is
no lock. After a fork both processes speak for the rank.

`xrun ps JOB` shows what was told; the protocol is xrun-protocol(7).
"""
import faulthandler
import functools
import json
import math
import os
import select
import signal
import socket
import time
import traceback

__all__ = ["rank", "size", "local_rank", "local_size", "node", "nodes", "job",
           "attempt", "device", "in_job", "ready", "progress", "on_stop",
           "stopping", "grace", "record"]

PER_SECOND = 10  # reports of progress; more would tell nobody more
METRICS_MAX = 4096
STEP_MAX = 2**53 - 1  # up to here all who read JSON count alike
_told = 0.0
_stopping = False
_stacks = -1
_stop_functions = []


# --- who we are ---------------------------------------------------------------

def _number(name, otherwise):
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return otherwise


def _reader(name, otherwise, text):
    def read():
        return _number("XRUN_" + name.upper(), otherwise)
    read.__name__ = read.__qualname__ = name
    read.__doc__ = text
    return read


rank = _reader("rank", 0, "The number of this rank, from 0.")
size = _reader("size", 1, "How many ranks the job has.")
local_rank = _reader("local_rank", 0, "Its number on its machine, from 0.")
local_size = _reader("local_size", 1, "How many ranks of the job are there.")
node = _reader("node", 0, "The number of this machine in the job, from 0.")
nodes = _reader("nodes", 1, "How many machines the job has.")
attempt = _reader("attempt", 0, "How often the job was started before.")


def in_job():
    """Was this process started by xrun?"""
    return "XRUN_JOB" in os.environ


def job():
    """The id of the job; "" outside of one."""
    return os.environ.get("XRUN_JOB", "")


def device():
    """What this rank computes on: "cpu", "cuda:3", "tpu:11"."""
    return os.environ.get("XRUN_DEVICE", "cpu")


# --- what we tell -------------------------------------------------------------

def _open():
    """The socket of the job and its inode: both are named in XRUN_CONTROL_FD, as a
    program may close the one and open something else there. All ranks share its
    flags; given SOCK_NONBLOCK, Python leaves them, setdefaulttimeout() or not."""
    try:
        fd, inode = map(int, os.environ["XRUN_CONTROL_FD"].split(":"))
        if os.fstat(fd).st_ino == inode:
            kind = socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK
            return socket.socket(socket.AF_UNIX, kind, 0, os.dup(fd)), inode
    except (KeyError, ValueError, OSError):
        pass
    return None, 0


_socket, _inode = _open()


def _tell(message, patience=0.1):
    """One message, or none, without fail: whole, so that nobody needs a lock. Where
    the queue is full of what others told, it waits for so many seconds."""
    try:
        if _socket is None or os.fstat(_socket.fileno()).st_ino != _inode:
            return
        message["rank"] = rank()
        text = json.dumps(message, allow_nan=False).encode()
        end = time.monotonic() + patience
        while not _sent(text) and time.monotonic() < end:
            room = select.poll()
            room.register(_socket, select.POLLOUT)
            room.poll(10)  # ms: there may be some before it says so
    except (OSError, ValueError, TypeError):
        pass


def _sent(text):
    try:
        return _socket.send(text, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except BlockingIOError:
        return 0


def ready():
    """This rank has what it needs, and begins to work."""
    _tell({"type": "ready"})


def _as_number(value):
    """What json can write, or None. Numbers of numpy and torch have item(); that
    of many numbers raises what it likes."""
    try:
        value = value.item() if hasattr(value, "item") else value
        real = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(value) if real and math.isfinite(value) else None
    except Exception:
        return None


def progress(step, total=None, **metrics):
    """`step` of `total` steps are done. Metrics are numbers by name; what is no
    finite number is left out. At most ten times a second it is told, the last
    step always. A step beyond 2**53 - 1 is told as that."""
    global _told
    now = time.monotonic()
    if now - _told < 1 / PER_SECOND and step != total:
        return
    _told = now
    message = {"type": "progress", "step": min(int(step), STEP_MAX)}
    if total is not None:
        message["total"] = min(int(total), STEP_MAX)
    numbers = {name: _as_number(value) for name, value in metrics.items()}
    numbers = {k: v for k, v in numbers.items() if v is not None}
    if numbers and len(json.dumps(numbers)) <= METRICS_MAX:
        message["metrics"] = numbers
    _tell(message, 0.1 if step == total else 0)


# --- how we end ---------------------------------------------------------------

def _on_signal(number, frame):
    global _stopping
    _stopping = True  # no Event: it has a lock, and a second signal may come
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
    --grace be less: xrun waits for it before it kills. 600 beyond --grace are the most in all; ask again if
    it takes longer. Before the job is told to stop it does nothing."""
    _tell({"type": "grace", "seconds": float(seconds)})


def stopping():
    """Was the job told to stop? Asked for by on_stop()."""
    return _stopping


def _write_error(error):
    """What xrun shows of a failure, where it asked for it: the file that
    torch.distributed.elastic names, in its form."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    text = traceback.format_exc()
    content = {"message": {
        "message": f"{type(error).__name__}: {error}",
        "extraInfo": {"py_callstack": text, "timestamp": str(int(time.time()))},
    }}
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
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


# --- where we are -------------------------------------------------------------

def _offer_stack():
    """`xrun stacks` asks by SIGURG, which ends nobody, and reads a file in memory:
    faulthandler writes there where the main thread is, whatever holds it. Each
    process has its own."""
    global _stacks
    try:
        if _stacks != -1 or signal.getsignal(signal.SIGURG) == signal.SIG_DFL:
            last, _stacks = _stacks, os.memfd_create("xrun-stacks")
            faulthandler.register(signal.SIGURG, _stacks, all_threads=False)
            os.close(last) if last != -1 else None
    except (OSError, ValueError, AttributeError, RuntimeError):
        pass  # a Python or kernel without


# A crash in native code, too, shows where Python was: on stderr, which xrun keeps.
if in_job():
    _offer_stack()
    os.register_at_fork(after_in_child=_offer_stack)
    try:
        faulthandler.is_enabled() or faulthandler.enable()
    except (OSError, ValueError, AttributeError, RuntimeError):
        pass  # no stderr with a descriptor
