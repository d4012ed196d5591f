# SPDX-License-Identifier: Apache-2.0
"""Python's objects as values, and back.

What travels is a LIST: an OPAQUE of the type "python", which is the pickled
object, then the tensors and references that were in it. A tensor of the CPU's
goes as one that shares its storage, and tensors that share one still do where
they arrive. What stays in a process, in a future or behind a reference, is an
OPAQUE too, of the object itself.
"""
import copyreg
import ctypes
import importlib
import io
import pickle
import sys
import traceback

import torch

import table as t
from library import (Error, Restricted, Value, keep, kept, made, take,
                     x)

TYPE = b"python"


class Pickled:
    """An object that came, or is to be sent, as bytes."""

    def __init__(self, data):
        self.data = data


class Box:
    """An object that stays."""

    def __init__(self, thing):
        self.thing = thing


# --- the type ---------------------------------------------------------------

def _encode(number, _):
    with Restricted():
        thing = kept(number)
        data = thing.data if isinstance(thing, Pickled) else \
            pickle.dumps(thing.thing)
        return x.xr_value_new_bytes(data, len(data))


def _decode(data, length, _):
    with Restricted():
        return keep(Pickled(ctypes.string_at(data, length)))


def _free(number, _):
    with Restricted():
        take(number)


def type_of(methods):
    """The type, for xr_type_register(); @methods: of xr_method."""
    members = dict(t.xr_type._fields_)
    table = (t.xr_method * len(methods))(*methods)
    kind = t.xr_type(size=ctypes.sizeof(t.xr_type), name=TYPE,
                     encode=members["encode"](_encode),
                     decode=members["decode"](_decode),
                     free=members["free"](_free),
                     methods=table, method_count=len(methods))
    kind.held = (table, methods)
    return kind


def box(thing):
    """A Value of what stays in this process."""
    return Value(x.xr_value_new_opaque(TYPE, keep(Box(thing))))


# --- tensors ----------------------------------------------------------------

DTYPES = {
    torch.bool: t.XR_DT_BOOL, torch.uint8: t.XR_DT_U8,
    torch.int8: t.XR_DT_I8, torch.int16: t.XR_DT_I16,
    torch.int32: t.XR_DT_I32, torch.int64: t.XR_DT_I64,
    torch.float16: t.XR_DT_F16, torch.bfloat16: t.XR_DT_BF16,
    torch.float32: t.XR_DT_F32, torch.float64: t.XR_DT_F64,
    torch.complex64: t.XR_DT_C64, torch.complex128: t.XR_DT_C128,
}
TORCH_DTYPES = {number: dtype for dtype, number in DTYPES.items()}


def is_plain(tensor):
    """One that libxrun can describe; others are pickled as torch does it."""
    return (type(tensor) is torch.Tensor and tensor.device.type == "cpu" and
            tensor.layout == torch.strided and tensor.dtype in DTYPES and
            tensor.dim() <= t.XR_TENSOR_DIMS and not tensor.is_quantized and
            not tensor.is_conj() and not tensor.is_neg())


@t.xr_free_fn
def _drop(_, number):
    with Restricted():
        take(number)


def _storage(tensor):
    untyped = getattr(tensor, "untyped_storage", None)
    return untyped() if untyped else tensor.storage().untyped()


def tensor_value(tensor, storages):
    """@storages: what of the same message views each storage."""
    tensor = tensor.detach()
    storage = _storage(tensor)
    desc = t.xr_tensor_desc(size=ctypes.sizeof(t.xr_tensor_desc),
                            dtype=DTYPES[tensor.dtype], ndim=tensor.dim(),
                            device_kind=t.XR_DEVICE_CPU,
                            offset=tensor.storage_offset() *
                            tensor.element_size())
    desc.shape[:tensor.dim()] = list(tensor.shape)
    desc.strides[:tensor.dim()] = list(tensor.stride())
    at = storage.data_ptr()
    if at in storages:
        return Value(made("xr_tensor_view", storages[at], ctypes.byref(desc)))
    number = keep(tensor)
    memory = t.xr_tensor_memory(size=ctypes.sizeof(t.xr_tensor_memory),
                                data=at, bytes=storage.nbytes(),
                                free_fn=_drop, ctx=number)
    try:
        value = Value(made("xr_tensor_wrap", ctypes.byref(desc),
                           ctypes.byref(memory)))
    except Error:
        take(number)
        raise
    if at:
        storages[at] = value.pointer
    return value


def tensor_of(pointer, storages):
    """A tensor over the value's own memory, which it keeps."""
    desc = t.xr_tensor_desc(size=ctypes.sizeof(t.xr_tensor_desc))
    x.xr_tensor_desc(pointer, ctypes.byref(desc))
    dtype = TORCH_DTYPES[desc.dtype]
    shape = tuple(desc.shape[:desc.ndim])
    length = ctypes.c_size_t()
    at = x.xr_tensor_data(pointer, ctypes.byref(length))
    if length.value == 0:
        return torch.empty(shape, dtype=dtype)
    if at not in storages:
        memory = (ctypes.c_char * length.value).from_address(at)
        memory.value_of = Value.of(pointer)
        storages[at] = _storage(torch.frombuffer(memory, dtype=torch.uint8))
    view = torch.tensor([], dtype=dtype)
    return view.set_(storages[at], desc.offset // view.element_size(), shape,
                     tuple(desc.strides[:desc.ndim]))


# --- objects ----------------------------------------------------------------

class Reference:
    """What a remote reference does to travel: rpc.RRef is one."""

    def to_value(self):
        raise NotImplementedError

    def check_alive(self):
        """Raises where it may not travel any more."""


reference_of = None     # set by who has the kind of Reference


def _script_function(function):
    module, _, name = function.qualified_name.rpartition(".")
    return _attribute, (module.removeprefix("__torch__."), name)


def _attribute(module, name):
    return getattr(importlib.import_module(module), name)


def _script_module(module):
    data = io.BytesIO()
    torch.jit.save(module, data)
    return _load_script_module, (data.getvalue(),)


def _load_script_module(data):
    return torch.jit.load(io.BytesIO(data))


class _Pickler(pickle.Pickler):
    def __init__(self, file, reducers):
        super().__init__(file)
        self.dispatch_table = {**copyreg.dispatch_table,
                               torch.jit.ScriptFunction: _script_function,
                               **reducers}
        self.extras = []
        self.places = {}

    def reducer_override(self, thing):
        if isinstance(thing, torch.jit.ScriptModule):
            return self.dispatch_table.get(type(thing), _script_module)(thing)
        return NotImplemented

    def persistent_id(self, thing):
        if not (isinstance(thing, Reference) or
                isinstance(thing, torch.Tensor) and is_plain(thing)):
            return None
        if id(thing) not in self.places:
            self.places[id(thing)] = len(self.extras)
            self.extras.append(thing)
        return self.places[id(thing)]


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, extras):
        super().__init__(file)
        self.extras = extras

    def persistent_load(self, place):
        return self.extras[place]


class Serialiser:
    """Bytes, and the tensors and references that are beside them."""

    def __init__(self):
        self.reducers = {}

    def _register_reducer(self, kind, reducer):
        self.reducers.setdefault(kind, reducer)

    def serialize(self, thing):
        file = io.BytesIO()
        pickler = _Pickler(file, self.reducers)
        pickler.dump(thing)
        for extra in pickler.extras:
            if isinstance(extra, Reference):
                extra.check_alive()
        return file.getvalue(), pickler.extras

    def deserialize(self, data, extras):
        return _Unpickler(io.BytesIO(data), extras).load()


serialiser = Serialiser()


def to_value(thing, how=serialiser):
    """A Value that can travel."""
    data, extras = how.serialize(thing)
    storages = {}
    values = [Value(x.xr_value_new_opaque(TYPE, keep(Pickled(data))))]
    for extra in extras:
        values.append(tensor_value(extra, storages)
                      if isinstance(extra, torch.Tensor)
                      else extra.to_value())
    items = (ctypes.c_void_p * len(values))(*[v.pointer for v in values])
    for value in values:
        value.give()
    return Value(x.xr_value_new_list_of(items, len(values)))


def _pickled(pointer):
    number = x.xr_value_object(x.xr_value_at(pointer, 0), TYPE)
    return kept(number) if number else None


def of_list(pointer, how=serialiser):
    """The object that a LIST of to_value() says."""
    storages, extras = {}, []
    for i in range(1, x.xr_value_count(pointer)):
        item = x.xr_value_at(pointer, i)
        extras.append(tensor_of(item, storages)
                      if x.xr_value_kind(item) == t.XR_TENSOR
                      else reference_of(item))
    return how.deserialize(_pickled(pointer).data, extras)


def _text(pointer):
    length = ctypes.c_size_t()
    at = x.xr_value_data(pointer, ctypes.byref(length))
    return ctypes.string_at(at, length.value)


def _dict(pointer):
    length, names = ctypes.c_size_t(), {}
    for i in range(x.xr_value_count(pointer)):
        at = x.xr_value_key(pointer, i, ctypes.byref(length))
        names[ctypes.string_at(at, length.value).decode()] = \
            of_value(x.xr_value_at(pointer, i))
    return names


def of_value(pointer):
    """What a value is in Python."""
    kind = x.xr_value_kind(pointer)
    if kind == t.XR_NIL:
        return None
    if kind == t.XR_OPAQUE:
        thing = kept(x.xr_value_object(pointer, TYPE))
        return thing.thing if isinstance(thing, Box) else \
            pickle.loads(thing.data)
    if kind == t.XR_LIST and x.xr_value_count(pointer) and \
            x.xr_value_type(x.xr_value_at(pointer, 0)) == TYPE:
        return of_list(pointer)
    if kind == t.XR_DICT:
        return _dict(pointer)
    raise Error(t.XR_E_SCHEMA, "a value that Python has no word for: " +
                x.xr_kind_name(kind).decode())


# --- errors -----------------------------------------------------------------

def error_value(exception, text=None):
    """An ERROR of an exception; @text: in place of its own."""
    kind = type(exception)
    name = kind.__qualname__ if kind.__module__ == "builtins" else \
        f"{kind.__module__}.{kind.__qualname__}"
    lines = "".join(traceback.format_exception(exception))
    failure = t.xr_failure(size=ctypes.sizeof(t.xr_failure),
                           status=getattr(exception, "status", t.XR_E_REMOTE),
                           type=name.encode(),
                           text=(text or str(exception)).encode(),
                           backtrace=lines.encode(errors="replace"))
    return Value(x.xr_value_new_error(ctypes.byref(failure)))


def _exception_type(name):
    if name == "torch.jit.Error":
        return RuntimeError     # as it is where torch raises it itself
    module, _, name = name.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module or "builtins"), name)
    except (ImportError, AttributeError):
        return RuntimeError
    return kind if isinstance(kind, type) and issubclass(kind, Exception) \
        else RuntimeError


def unescaped(text):
    """What repr() escaped is to be read by a person. Other text than ASCII
    would not survive it."""
    if not text.isascii():
        return text
    try:
        return text.encode().decode("unicode_escape")
    except UnicodeDecodeError:
        return text


TORCH_SAYS = {
    t.XR_E_TIMEOUT: "RPCErr:1:RPC ran for more than set timeout: ",
    t.XR_E_INJECTED: "RPCErr:2:",
}


def exception_of(pointer):
    """The exception that an ERROR is, of the type that it had there."""
    failure = t.xr_failure(size=ctypes.sizeof(t.xr_failure))
    x.xr_value_failure(pointer, ctypes.byref(failure))
    while failure.status == t.XR_E_REMOTE and failure.cause:
        x.xr_value_failure(failure.cause, ctypes.byref(failure))
    text = (failure.text or b"").decode()
    if failure.type:
        kind = _exception_type(failure.type.decode())
        try:
            return kind(unescaped(text))
        except Exception:   # whose constructor wants other arguments
            return RuntimeError(f"{failure.type.decode()}: {text}")
    return Error(failure.status, TORCH_SAYS.get(failure.status, "") + text)


def told(exception, worker):
    """What the caller reads, and the callee's standard error has."""
    lines = "".join(traceback.format_exception(exception))
    text = f"On {worker}:\n{exception!r}\n{lines}"
    print(text, file=sys.stderr)
    return error_value(exception, text)
