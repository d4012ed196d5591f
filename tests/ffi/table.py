# SPDX-License-Identifier: Apache-2.0
"""libxrun's public headers, for ctypes: made by generate.py from
src/include/xrun, never written by hand.

A pointer to a struct that only the library knows is a number, named for
the struct: xr_value_p.
"""
# pylint: disable=all
from ctypes import (CFUNCTYPE, POINTER, Structure, Union, c_bool, c_char,
                    c_char_p, c_double, c_int, c_int32, c_int64, c_size_t,
                    c_uint8, c_uint16, c_uint32, c_uint64, c_void_p)

xr_body_buffer_p = c_void_p
xr_call_p = c_void_p
xr_coll_p = c_void_p
xr_encoded_p = c_void_p
xr_event_p = c_void_p
xr_final_p = c_void_p
xr_future_p = c_void_p
xr_group_p = c_void_p
xr_link_p = c_void_p
xr_method_ref_p = c_void_p
xr_peer_p = c_void_p
xr_pool_p = c_void_p
xr_pool_item_p = c_void_p
xr_pool_iter_p = c_void_p
xr_proc_p = c_void_p
xr_procset_p = c_void_p
xr_queue_p = c_void_p
xr_rpc_settings_p = c_void_p
xr_rref_p = c_void_p
xr_store_p = c_void_p
xr_thread_p = c_void_p
xr_value_p = c_void_p
xr_world_p = c_void_p

# Structs, whose members follow.


class xr_error(Structure):
    pass


class xr_device_pair(Structure):
    pass


class xr_device_info(Structure):
    pass


class xr_failure(Structure):
    pass


class xr_method(Structure):
    pass


class xr_type(Structure):
    pass


class xr_enc_opts(Structure):
    pass


class xr_part(Structure):
    pass


class xr_dec_opts(Structure):
    pass


class xr_device_name(Structure):
    pass


class xr_future_opts(Structure):
    pass


class xr_raw_call(Structure):
    pass


class xr_raw_reply(Structure):
    pass


class xr_tensor_desc(Structure):
    pass


class xr_tensor_memory(Structure):
    pass


class xr_rpc_opts(Structure):
    pass


class xr_backend(Structure):
    pass


class xr_worker(Structure):
    pass


class xr_rpc_call(Structure):
    pass


class xr_rpc_meeting(Structure):
    pass


class xr_world_opts(Structure):
    pass


class xr_coll_opts(Structure):
    pass


class xr_coll_op(Structure):
    pass


class xr_coll_multi(Structure):
    pass


class xr_func(Structure):
    pass


class xr_rref_id(Structure):
    pass


class xr_rref_call(Structure):
    pass


class xr_group_opts(Structure):
    pass


class xr_group_service(Structure):
    pass


class xr_group_call(Structure):
    pass


class xr_metric(Structure):
    pass


class xr_progress(Structure):
    pass


class xr_device(Structure):
    pass


class xr_setting(Structure):
    pass


class xr_host(Structure):
    pass


class xr_platform_ops(Structure):
    pass


class xr_plugin_union(Union):
    pass


class xr_plugin(Structure):
    pass


class xr_store_options(Structure):
    pass


class xr_store_value(Structure):
    pass


class xr_store_swap(Structure):
    pass


class xr_queue_opts(Structure):
    pass


class xr_queue_buf(Structure):
    pass


class xr_pool_opts(Structure):
    pass


class xr_pool_task(Structure):
    pass


class xr_pool_item_info(Structure):
    pass


class xr_pool_queues(Structure):
    pass


class xr_pool_ops(Structure):
    pass


class xr_pool_loop(Structure):
    pass


class xr_proc_opts(Structure):
    pass


class xr_proc_end(Structure):
    pass


class xr_thread_opts(Structure):
    pass


class xr_spawn_opts(Structure):
    pass


class xr_spawn_end(Structure):
    pass


class xr_record(Structure):
    pass


class xr_message(Structure):
    pass


class xr_body(Structure):
    pass


class xr_carrier_host(Structure):
    pass


class xr_carrier_opts(Structure):
    pass


class xr_carrier(Structure):
    pass


# Functions of the program's that the library calls.
xr_free_fn = CFUNCTYPE(None, c_void_p, c_void_p)
xr_then_fn = CFUNCTYPE(c_int, xr_future_p, c_void_p, POINTER(xr_value_p),
        POINTER(xr_error))
xr_done_fn = CFUNCTYPE(None, xr_future_p, c_void_p)
xr_metrics_fn = CFUNCTYPE(None, c_char_p, c_int64, c_void_p)
xr_final_fn = CFUNCTYPE(None, c_void_p)
xr_func_fn = CFUNCTYPE(c_int, xr_call_p, xr_value_p, c_void_p)
xr_raw_fn = CFUNCTYPE(c_int, xr_call_p, c_void_p, c_size_t, c_void_p)
xr_stop_fn = CFUNCTYPE(None, c_void_p)
xr_add_device_fn = CFUNCTYPE(None, c_void_p, POINTER(xr_device))
xr_set_env_fn = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
xr_pool_fn = CFUNCTYPE(c_int, xr_value_p, c_void_p)
xr_pool_part_fn = CFUNCTYPE(None, c_uint64, c_uint64, c_uint32, c_void_p)
xr_proc_fn = CFUNCTYPE(c_int, c_uint32, xr_value_p, c_void_p,
        POINTER(xr_error))
xr_main_fn = CFUNCTYPE(c_int, c_uint32, c_void_p, POINTER(xr_error))

# Members of structs.
xr_error._fields_ = [
    ("status", c_int),
    ("sys", c_int32),
    ("text", c_char * 232),
]
xr_device_pair._fields_ = [
    ("to", c_char_p),
    ("from", c_int32),
    ("dst", c_int32),
]
xr_device_info._fields_ = [
    ("size", c_uint32),
    ("name", c_char_p),
    ("count", c_uint32),
    ("devices", POINTER(c_int32)),
    ("device_count", c_uint32),
    ("pairs", POINTER(xr_device_pair)),
    ("pair_count", c_uint32),
]
xr_failure._fields_ = [
    ("size", c_uint32),
    ("status", c_int),
    ("type", c_char_p),
    ("text", c_char_p),
    ("func", c_char_p),
    ("worker", c_char_p),
    ("worker_id", c_uint32),
    ("backtrace", c_char_p),
    ("cause", xr_value_p),
]
xr_method._fields_ = [
    ("size", c_uint32),
    ("name", c_char_p),
    ("schema", c_char_p),
    ("flags", c_uint32),
    ("is_static", c_bool),
    ("fn", CFUNCTYPE(c_int, xr_call_p, c_void_p, xr_value_p, c_void_p)),
]
xr_type._fields_ = [
    ("size", c_uint32),
    ("name", c_char_p),
    ("encode", CFUNCTYPE(xr_value_p, c_void_p, c_void_p)),
    ("decode", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
    ("free", CFUNCTYPE(None, c_void_p, c_void_p)),
    ("methods", POINTER(xr_method)),
    ("method_count", c_uint32),
    ("ctx", c_void_p),
]
xr_enc_opts._fields_ = [
    ("size", c_uint32),
    ("mode", c_int),
    ("checksum", c_uint32),
]
xr_part._fields_ = [
    ("data", c_void_p),
    ("len", c_size_t),
]
xr_dec_opts._fields_ = [
    ("size", c_uint32),
    ("bytes_max", c_uint64),
    ("fds", POINTER(c_int)),
    ("fd_count", c_size_t),
]
xr_device_name._fields_ = [
    ("kind", c_int),
    ("index", c_int32),
]
xr_future_opts._fields_ = [
    ("size", c_uint32),
    ("devices", POINTER(xr_device_name)),
    ("device_count", c_uint32),
]
xr_raw_call._fields_ = [
    ("size", c_uint32),
    ("to", xr_peer_p),
    ("method", xr_method_ref_p),
    ("data", c_void_p),
    ("len", c_size_t),
    ("timeout", c_int64),
    ("reply", c_void_p),
    ("reply_cap", c_size_t),
]
xr_raw_reply._fields_ = [
    ("data", c_void_p),
    ("len", c_size_t),
    ("own", c_void_p),
]
xr_tensor_desc._fields_ = [
    ("size", c_uint32),
    ("dtype", c_int),
    ("ndim", c_uint32),
    ("device_kind", c_int),
    ("device_index", c_int32),
    ("shape", c_int64 * 8),
    ("strides", c_int64 * 8),
    ("offset", c_uint64),
]
xr_tensor_memory._fields_ = [
    ("size", c_uint32),
    ("data", c_void_p),
    ("bytes", c_size_t),
    ("free_fn", xr_free_fn),
    ("ctx", c_void_p),
]
xr_rpc_opts._fields_ = [
    ("size", c_uint32),
    ("backend", c_uint32),
    ("timeout", c_int64),
    ("init_method", c_char_p),
    ("threads", c_uint32),
    ("transports", POINTER(c_char_p)),
    ("transport_count", c_uint32),
    ("maps", POINTER(xr_device_pair)),
    ("map_count", c_uint32),
    ("devices", POINTER(c_int32)),
    ("device_count", c_uint32),
    ("extra", POINTER(c_char_p)),
    ("extra_count", c_uint32),
    ("rref_flags", c_uint32),
]
xr_backend._fields_ = [
    ("size", c_uint32),
    ("name", c_char_p),
    ("check",
        CFUNCTYPE(c_int, POINTER(xr_rpc_opts), c_void_p, POINTER(xr_error))),
    ("carriers", CFUNCTYPE(POINTER(c_char_p), POINTER(xr_rpc_opts), c_void_p)),
    ("ctx", c_void_p),
]
xr_worker._fields_ = [
    ("size", c_uint32),
    ("id", c_uint32),
    ("name", c_char * 128),
]
xr_rpc_call._fields_ = [
    ("size", c_uint32),
    ("to", c_char_p),
    ("id", c_int64),
    ("func", c_char_p),
    ("bound", xr_value_p),
    ("args", xr_value_p),
    ("named", xr_value_p),
    ("timeout", c_int64),
    ("flags", c_uint32),
]
xr_rpc_meeting._fields_ = [
    ("size", c_uint32),
    ("names", POINTER(c_char_p)),
    ("count", c_size_t),
    ("timeout", c_int64),
]
xr_world_opts._fields_ = [
    ("size", c_uint32),
    ("name", c_char_p),
    ("rank", c_int64),
    ("world_size", c_int64),
    ("rpc", POINTER(xr_rpc_opts)),
    ("timeout", c_int64),
]
xr_coll_opts._fields_ = [
    ("size", c_uint32),
    ("ranks", POINTER(c_uint32)),
    ("count", c_size_t),
    ("timeout", c_int64),
]
xr_coll_op._fields_ = [
    ("size", c_uint32),
    ("dtype", c_int),
    ("data", c_void_p),
    ("count", c_size_t),
    ("op", c_int),
    ("tag", c_uint32),
    ("rank", c_int64),
    ("list", POINTER(c_void_p)),
    ("timeout", c_int64),
]
xr_coll_multi._fields_ = [
    ("size", c_uint32),
    ("count", c_uint32),
    ("tensors", POINTER(xr_value_p)),
    ("op", c_int),
    ("index", c_uint32),
    ("rank", c_int64),
    ("lists", POINTER(POINTER(xr_value_p))),
    ("timeout", c_int64),
]
xr_func._fields_ = [
    ("size", c_uint32),
    ("name", c_char_p),
    ("schema", c_char_p),
    ("flags", c_uint32),
    ("fn", xr_func_fn),
    ("raw", xr_raw_fn),
    ("ctx", c_void_p),
]
xr_rref_id._fields_ = [
    ("worker", c_uint32),
    ("local", c_uint64),
]
xr_rref_call._fields_ = [
    ("size", c_uint32),
    ("rref", xr_rref_p),
    ("method", c_char_p),
    ("args", xr_value_p),
    ("named", xr_value_p),
    ("timeout", c_int64),
]
xr_group_opts._fields_ = [
    ("size", c_uint32),
    ("name", c_char_p),
    ("members", POINTER(c_char_p)),
    ("count", c_size_t),
    ("timeout", c_int64),
]
xr_group_service._fields_ = [
    ("size", c_uint32),
    ("key", c_char_p),
    ("fn", xr_func_fn),
    ("ctx", c_void_p),
    ("flags", c_uint32),
]
xr_group_call._fields_ = [
    ("size", c_uint32),
    ("key", c_char_p),
    ("args", xr_value_p),
    ("named", xr_value_p),
    ("timeout", c_int64),
]
xr_metric._fields_ = [
    ("name", c_char_p),
    ("value", c_double),
]
xr_progress._fields_ = [
    ("size", c_uint32),
    ("metric_count", c_uint32),
    ("step", c_int64),
    ("total", c_int64),
    ("metrics", POINTER(xr_metric)),
]
xr_device._fields_ = [
    ("size", c_uint32),
    ("index", c_uint32),
    ("memory", c_uint64),
    ("id", c_char * 64),
    ("uuid", c_char * 64),
    ("address", c_char * 24),
    ("platform", c_char * 16),
]
xr_setting._fields_ = [
    ("name", c_char_p),
    ("dflt", c_char_p),
    ("help", c_char_p),
]
xr_host._fields_ = [
    ("size", c_uint32),
    ("abi", c_uint32),
    ("setting", CFUNCTYPE(c_char_p, POINTER(xr_host), c_char_p, c_char_p)),
    ("env", CFUNCTYPE(c_char_p, POINTER(xr_host), c_char_p)),
]
xr_platform_ops._fields_ = [
    ("size", c_uint32),
    ("mask", c_char_p),
    ("find", CFUNCTYPE(c_int, xr_add_device_fn, c_void_p, POINTER(xr_error))),
    ("list", CFUNCTYPE(c_int, xr_add_device_fn, c_void_p, POINTER(xr_error))),
    ("give",
        CFUNCTYPE(c_int, POINTER(POINTER(xr_device)), c_uint32, xr_set_env_fn, c_void_p, POINTER(xr_error))),
    ("most", c_uint32),
]
xr_plugin_union._fields_ = [
    ("ops", c_void_p),
    ("platform", POINTER(xr_platform_ops)),
]
xr_plugin._anonymous_ = ("_",)
xr_plugin._fields_ = [
    ("size", c_uint32),
    ("abi", c_uint32),
    ("kind", c_int),
    ("preference", c_int),
    ("name", c_char_p),
    ("summary", c_char_p),
    ("settings", POINTER(xr_setting)),
    ("probe", CFUNCTYPE(c_int, POINTER(xr_host), POINTER(xr_error))),
    ("_", xr_plugin_union),
]
xr_store_options._fields_ = [
    ("size", c_uint32),
    ("dynamic", c_bool),
    ("prefix", c_char_p),
    ("rank", c_int64),
    ("world_size", c_int64),
    ("timeout", c_int64),
]
xr_store_value._fields_ = [
    ("data", c_void_p),
    ("len", c_size_t),
    ("own", c_void_p),
]
xr_store_swap._fields_ = [
    ("size", c_uint32),
    ("key", c_char_p),
    ("expected", c_void_p),
    ("expected_len", c_size_t),
    ("desired", c_void_p),
    ("desired_len", c_size_t),
]
xr_queue_opts._fields_ = [
    ("size", c_uint32),
    ("kind", c_int),
    ("items", c_uint32),
    ("lanes", c_uint32),
    ("bytes", c_uint64),
    ("mode", c_int),
    ("redeliver", c_bool),
]
xr_queue_buf._fields_ = [
    ("data", c_void_p),
    ("room", c_size_t),
    ("len", c_size_t),
]
xr_pool_opts._fields_ = [
    ("size", c_uint32),
    ("kind", c_int),
    ("routing", c_int),
    ("on_worker_error", c_int),
    ("flags", c_uint32),
    ("workers", c_uint32),
    ("contexts", xr_value_p),
    ("initializer", c_char_p),
    ("initargs", xr_value_p),
    ("max_tasks", c_uint64),
    ("method", c_char_p),
    ("module", c_char_p),
    ("name", c_char_p),
    ("start_failures", c_uint32),
    ("start_window", c_int64),
    ("mode", c_int),
    ("tasks", c_uint32),
    ("bytes", c_uint64),
    ("ops", POINTER(xr_pool_ops)),
]
xr_pool_task._fields_ = [
    ("size", c_uint32),
    ("flags", c_uint32),
    ("name", c_char_p),
    ("func", xr_value_p),
    ("args", xr_value_p),
    ("named", xr_value_p),
    ("chunk", c_int64),
    ("timeout", c_int64),
    ("callback", xr_pool_fn),
    ("error_callback", xr_pool_fn),
    ("ctx", c_void_p),
]
xr_pool_item_info._fields_ = [
    ("size", c_uint32),
    ("count", c_uint32),
    ("job", c_uint64),
    ("first", c_uint64),
    ("func", c_char_p),
    ("worker", c_uint32),
]
xr_pool_queues._fields_ = [
    ("size", c_uint32),
    ("count", c_uint32),
    ("in", POINTER(xr_queue_p)),
    ("out", xr_queue_p),
]
xr_pool_ops._fields_ = [
    ("size", c_uint32),
    ("ctx", c_void_p),
    ("setup_queues",
        CFUNCTYPE(c_int, xr_pool_p, POINTER(xr_pool_queues), c_void_p, POINTER(xr_error))),
    ("inqueue_put",
        CFUNCTYPE(c_int, xr_pool_p, xr_pool_item_p, c_void_p, POINTER(xr_error))),
    ("outqueue_get",
        CFUNCTYPE(c_int, xr_pool_p, c_int64, POINTER(xr_pool_item_p), c_void_p, POINTER(xr_error))),
    ("repopulate", CFUNCTYPE(c_int, xr_pool_p, c_void_p, POINTER(xr_error))),
    ("maintain", CFUNCTYPE(c_int, xr_pool_p, c_void_p, POINTER(xr_error))),
    ("terminate_workers",
        CFUNCTYPE(c_int, xr_pool_p, c_int64, c_void_p, POINTER(xr_error))),
    ("join_workers",
        CFUNCTYPE(c_int, xr_pool_p, c_int64, c_void_p, POINTER(xr_error))),
    ("worker", c_char_p),
]
xr_pool_loop._fields_ = [
    ("size", c_uint32),
    ("fn", xr_pool_part_fn),
    ("ctx", c_void_p),
    ("count", c_uint64),
    ("grain", c_uint64),
]
xr_proc_opts._fields_ = [
    ("size", c_uint32),
    ("flags", c_uint32),
    ("func", c_char_p),
    ("cleaner", c_char_p),
    ("name", c_char_p),
    ("arg", xr_value_p),
    ("ordinal", c_uint32),
    ("method", c_char_p),
    ("module", c_char_p),
    ("env", POINTER(c_char_p)),
]
xr_proc_end._fields_ = [
    ("size", c_uint32),
    ("code", c_int32),
    ("signal", c_int32),
]
xr_thread_opts._fields_ = [
    ("size", c_uint32),
    ("ordinal", c_uint32),
    ("fn", xr_proc_fn),
    ("cleaner", xr_proc_fn),
    ("ctx", c_void_p),
    ("name", c_char_p),
    ("arg", xr_value_p),
]
xr_spawn_opts._fields_ = [
    ("size", c_uint32),
    ("flags", c_uint32),
    ("nprocs", c_uint32),
    ("method", c_char_p),
    ("module", c_char_p),
    ("grace", c_int64),
]
xr_spawn_end._fields_ = [
    ("size", c_uint32),
    ("index", c_uint32),
    ("pid", c_int32),
    ("code", c_int32),
    ("signal", c_int32),
    ("error", xr_value_p),
]
xr_record._fields_ = [
    ("kind", c_uint8),
    ("flags", c_uint8),
    ("aux", c_uint16),
    ("method", c_uint32),
    ("corr", c_uint64),
]
xr_message._fields_ = [
    ("record", xr_record),
    ("parts", POINTER(xr_part)),
    ("count", c_uint32),
    ("more", c_bool),
    ("answer", c_bool),
    ("lent", c_bool),
    ("token", c_void_p),
    ("loans", POINTER(xr_part)),
    ("loan_count", c_uint32),
]
xr_body._fields_ = [
    ("data", c_void_p),
    ("len", c_size_t),
    ("own", c_void_p),
    ("loans", POINTER(xr_part)),
    ("loan_count", c_uint32),
]
xr_carrier_host._fields_ = [
    ("size", c_uint32),
    ("ctx", c_void_p),
    ("deliver",
        CFUNCTYPE(None, c_void_p, c_void_p, POINTER(xr_record), POINTER(xr_body))),
    ("place",
        CFUNCTYPE(c_void_p, c_void_p, c_void_p, POINTER(xr_record), c_uint64)),
    ("sent", CFUNCTYPE(None, c_void_p, c_void_p)),
    ("accepted", CFUNCTYPE(c_void_p, c_void_p, c_uint32, c_uint64, xr_link_p)),
    ("lost", CFUNCTYPE(None, c_void_p, c_void_p, xr_link_p, c_char_p)),
    ("awake", CFUNCTYPE(None, c_void_p)),
]
xr_carrier_opts._fields_ = [
    ("size", c_uint32),
    ("id", c_uint32),
    ("incarnation", c_uint64),
    ("secret", POINTER(c_uint8)),
    ("interface", c_char_p),
    ("store_host", c_char_p),
]
xr_carrier._fields_ = [
    ("size", c_uint32),
    ("api", c_uint32),
    ("name", c_char_p),
    ("priority", c_int32),
    ("caps", c_uint32),
    ("copies", c_uint32),
    ("open",
        CFUNCTYPE(c_int, POINTER(xr_carrier_host), POINTER(xr_carrier_opts), POINTER(c_void_p), POINTER(xr_error))),
    ("address", CFUNCTYPE(c_size_t, c_void_p, c_char_p, c_size_t)),
    ("connect",
        CFUNCTYPE(c_int, c_void_p, c_char_p, c_uint32, c_uint64, c_void_p, POINTER(xr_link_p), POINTER(xr_error))),
    ("send",
        CFUNCTYPE(c_int, xr_link_p, POINTER(xr_message), POINTER(c_bool))),
    ("unsend", CFUNCTYPE(c_bool, xr_link_p, c_void_p)),
    ("can_lend", CFUNCTYPE(c_bool, xr_link_p, POINTER(xr_part))),
    ("progress", CFUNCTYPE(c_uint32, c_void_p, c_uint32)),
    ("body_take",
        CFUNCTYPE(xr_body_buffer_p, c_void_p, POINTER(xr_body), POINTER(c_void_p))),
    ("buffer_unref", CFUNCTYPE(None, xr_body_buffer_p)),
    ("loan_take",
        CFUNCTYPE(xr_body_buffer_p, c_void_p, POINTER(xr_body), c_uint32)),
    ("link_close", CFUNCTYPE(None, xr_link_p)),
    ("free", CFUNCTYPE(None, c_void_p)),
    ("there", CFUNCTYPE(c_int, c_void_p, c_char_p, c_uint32, c_uint64)),
]

# A function: what it gives, and what it takes.
FUNCTIONS = {
    "xr_backend_find": (c_uint32, (c_char_p,)),
    "xr_backend_name": (c_char_p, (c_uint32,)),
    "xr_backend_register": (c_int, (POINTER(xr_backend), POINTER(c_uint32),
        POINTER(xr_error),)),
    "xr_buffer_free": (None, (c_void_p,)),
    "xr_buffer_new": (c_void_p, (c_size_t,)),
    "xr_call_async": (c_int, (POINTER(xr_raw_call), POINTER(xr_future_p),
        POINTER(xr_error),)),
    "xr_call_caller": (c_char_p, (xr_call_p, POINTER(c_uint32),)),
    "xr_call_cancelled": (c_bool, (xr_call_p,)),
    "xr_call_defer": (xr_call_p, (xr_call_p,)),
    "xr_call_drop": (None, (xr_call_p,)),
    "xr_call_func": (c_char_p, (xr_call_p,)),
    "xr_call_named": (xr_value_p, (xr_call_p,)),
    "xr_call_oneway": (c_int, (POINTER(xr_raw_call), POINTER(xr_error),)),
    "xr_call_sync": (c_int, (POINTER(xr_raw_call), POINTER(xr_raw_reply),
        POINTER(xr_error),)),
    "xr_carrier_register": (c_int, (POINTER(xr_carrier), POINTER(xr_error),)),
    "xr_coll_allgather": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_error),)),
    "xr_coll_allgather_multi": (c_int, (xr_coll_p, POINTER(xr_coll_multi),
        POINTER(xr_error),)),
    "xr_coll_allreduce": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_error),)),
    "xr_coll_allreduce_multi": (c_int, (xr_coll_p, POINTER(xr_coll_multi),
        POINTER(xr_error),)),
    "xr_coll_barrier": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_error),)),
    "xr_coll_bcast": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_error),)),
    "xr_coll_bcast_multi": (c_int, (xr_coll_p, POINTER(xr_coll_multi),
        POINTER(xr_error),)),
    "xr_coll_close": (None, (xr_coll_p,)),
    "xr_coll_free": (None, (xr_coll_p,)),
    "xr_coll_gather": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_error),)),
    "xr_coll_iallgather": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_coll_iallreduce": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_coll_ibarrier": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_coll_ibcast": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_coll_igather": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_coll_index": (c_int64, (xr_coll_p,)),
    "xr_coll_irecv": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_coll_ireduce": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_coll_iscatter": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_coll_isend": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_coll_new": (c_int, (xr_world_p, POINTER(xr_coll_opts),
        POINTER(xr_coll_p), POINTER(xr_error),)),
    "xr_coll_recv": (c_int, (xr_coll_p, POINTER(xr_coll_op), POINTER(c_int64),
        POINTER(xr_error),)),
    "xr_coll_reduce": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_error),)),
    "xr_coll_reduce_multi": (c_int, (xr_coll_p, POINTER(xr_coll_multi),
        POINTER(xr_error),)),
    "xr_coll_scatter": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_error),)),
    "xr_coll_send": (c_int, (xr_coll_p, POINTER(xr_coll_op),
        POINTER(xr_error),)),
    "xr_coll_size": (c_uint32, (xr_coll_p,)),
    "xr_decode": (c_int, (POINTER(xr_part), c_size_t, POINTER(xr_dec_opts),
        POINTER(xr_value_p), POINTER(xr_error),)),
    "xr_devmap_check": (c_int, (POINTER(xr_device_info), c_size_t, c_bool,
        POINTER(xr_error),)),
    "xr_devmap_devices": (c_size_t, (POINTER(xr_device_info), c_size_t,
        c_char_p, POINTER(c_int32), c_size_t,)),
    "xr_devmap_invert": (c_size_t, (POINTER(xr_device_info), c_size_t,
        c_char_p, POINTER(xr_device_pair), c_size_t,)),
    "xr_dtype_name": (c_char_p, (c_int,)),
    "xr_dtype_size": (c_size_t, (c_int,)),
    "xr_encode": (c_int, (xr_value_p, POINTER(xr_enc_opts),
        POINTER(xr_encoded_p), POINTER(xr_error),)),
    "xr_encoded_fds": (POINTER(c_int), (xr_encoded_p, POINTER(c_size_t),)),
    "xr_encoded_free": (None, (xr_encoded_p,)),
    "xr_encoded_parts": (POINTER(xr_part), (xr_encoded_p, POINTER(c_size_t),)),
    "xr_error_set": (c_int, (POINTER(xr_error), c_int, c_char_p,)),
    "xr_event_clear": (None, (xr_event_p,)),
    "xr_event_is_set": (c_bool, (xr_event_p,)),
    "xr_event_new": (xr_event_p, ()),
    "xr_event_new_all": (xr_event_p, (POINTER(xr_event_p), c_size_t,)),
    "xr_event_new_any": (xr_event_p, (POINTER(xr_event_p), c_size_t,)),
    "xr_event_ref": (xr_event_p, (xr_event_p,)),
    "xr_event_set": (None, (xr_event_p,)),
    "xr_event_unref": (None, (xr_event_p,)),
    "xr_final_drop": (None, (xr_final_p,)),
    "xr_final_new": (c_int, (xr_final_fn, c_void_p, c_int32,
        POINTER(xr_final_p), POINTER(xr_error),)),
    "xr_final_run": (c_bool, (xr_final_p,)),
    "xr_fn_bind": (xr_value_p, (c_char_p, xr_value_p,)),
    "xr_fn_register": (c_int, (POINTER(xr_func), POINTER(xr_error),)),
    "xr_future_all": (c_int, (POINTER(xr_future_p), c_size_t,
        POINTER(xr_future_p),)),
    "xr_future_cancel": (c_int, (xr_future_p,)),
    "xr_future_done": (c_bool, (xr_future_p,)),
    "xr_future_error": (xr_value_p, (xr_future_p,)),
    "xr_future_fail": (c_int, (xr_future_p, xr_value_p,)),
    "xr_future_fail_with": (c_int, (xr_future_p, c_int, c_char_p,)),
    "xr_future_new": (xr_future_p, (POINTER(xr_future_opts),)),
    "xr_future_on_done": (c_int, (xr_future_p, xr_done_fn, c_void_p,)),
    "xr_future_ref": (xr_future_p, (xr_future_p,)),
    "xr_future_set": (c_int, (xr_future_p, xr_value_p,)),
    "xr_future_successful": (c_int, (xr_future_p, POINTER(c_bool),)),
    "xr_future_then": (c_int, (xr_future_p, xr_then_fn, c_void_p, c_uint32,
        POINTER(xr_future_p),)),
    "xr_future_unref": (None, (xr_future_p,)),
    "xr_future_value": (c_int, (xr_future_p, POINTER(xr_value_p),
        POINTER(xr_error),)),
    "xr_future_wait": (c_int, (xr_future_p, c_int64, POINTER(xr_value_p),
        POINTER(xr_error),)),
    "xr_future_wait_all": (c_int, (POINTER(xr_future_p), c_size_t, c_int64,
        POINTER(xr_value_p), POINTER(xr_error),)),
    "xr_group_async": (c_int, (xr_group_p, POINTER(xr_rpc_call),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_group_barrier": (c_int, (xr_group_p, c_int64, POINTER(xr_error),)),
    "xr_group_call_async": (c_int, (xr_group_p, POINTER(xr_group_call),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_group_call_remote": (c_int, (xr_group_p, POINTER(xr_group_call),
        POINTER(xr_rref_p), POINTER(xr_error),)),
    "xr_group_call_sync": (c_int, (xr_group_p, POINTER(xr_group_call),
        POINTER(xr_value_p), POINTER(xr_error),)),
    "xr_group_close": (None, (xr_group_p,)),
    "xr_group_deregister": (c_int, (xr_group_p, c_char_p, POINTER(xr_error),)),
    "xr_group_free": (None, (xr_group_p,)),
    "xr_group_get_paired": (c_int, (xr_group_p, c_char_p, POINTER(xr_rref_p),
        POINTER(xr_error),)),
    "xr_group_is_member": (c_bool, (xr_group_p, c_char_p,)),
    "xr_group_is_paired": (c_int, (xr_group_p, c_char_p, POINTER(c_bool),
        POINTER(xr_error),)),
    "xr_group_is_registered": (c_int, (xr_group_p, c_char_p, POINTER(c_bool),
        POINTER(xr_error),)),
    "xr_group_members": (c_size_t, (xr_group_p, POINTER(c_char_p), c_size_t,)),
    "xr_group_name": (c_char_p, (xr_group_p,)),
    "xr_group_new": (c_int, (xr_world_p, POINTER(xr_group_opts),
        POINTER(xr_group_p), POINTER(xr_error),)),
    "xr_group_of_value": (c_int, (xr_value_p, POINTER(xr_group_p),
        POINTER(xr_error),)),
    "xr_group_pair": (c_int, (xr_group_p, c_char_p, xr_value_p,
        POINTER(xr_error),)),
    "xr_group_register": (c_int, (xr_group_p, POINTER(xr_group_service),
        POINTER(xr_error),)),
    "xr_group_remote": (c_int, (xr_group_p, POINTER(xr_rpc_call),
        POINTER(xr_rref_p), POINTER(xr_error),)),
    "xr_group_size": (c_uint32, (xr_group_p,)),
    "xr_group_sync": (c_int, (xr_group_p, POINTER(xr_rpc_call),
        POINTER(xr_value_p), POINTER(xr_error),)),
    "xr_group_unpair": (c_int, (xr_group_p, c_char_p, POINTER(xr_error),)),
    "xr_group_value": (xr_value_p, (xr_group_p,)),
    "xr_heartbeat": (None, ()),
    "xr_init": (c_int, (POINTER(xr_error),)),
    "xr_job_attach": (c_int, (POINTER(xr_error),)),
    "xr_job_attempt": (c_uint32, ()),
    "xr_job_detach": (None, ()),
    "xr_job_device": (c_char_p, ()),
    "xr_job_extend": (c_int, (c_int64,)),
    "xr_job_id": (c_char_p, ()),
    "xr_job_local_rank": (c_uint32, ()),
    "xr_job_local_size": (c_uint32, ()),
    "xr_job_node": (c_uint32, ()),
    "xr_job_nodes": (c_uint32, ()),
    "xr_job_on_stop": (c_int, (xr_stop_fn, c_void_p, POINTER(xr_error),)),
    "xr_job_progress": (c_int, (POINTER(xr_progress),)),
    "xr_job_rank": (c_uint32, ()),
    "xr_job_ready": (c_int, ()),
    "xr_job_report_crashes": (c_int, (POINTER(xr_error),)),
    "xr_job_size": (c_uint32, ()),
    "xr_job_stopping": (c_int, ()),
    "xr_kind_name": (c_char_p, (c_int,)),
    "xr_main": (c_int, (xr_main_fn, c_void_p,)),
    "xr_method_find": (c_int, (c_char_p, POINTER(xr_method_ref_p),
        POINTER(xr_error),)),
    "xr_metrics_each": (c_int, (xr_metrics_fn, c_void_p,)),
    "xr_metrics_get": (c_int, (c_char_p, POINTER(c_int64),)),
    "xr_module_static": (c_int, (POINTER(xr_func), c_size_t,
        POINTER(xr_error),)),
    "xr_name": (c_char_p, ()),
    "xr_peer_find": (c_int, (c_char_p, c_int64, POINTER(xr_peer_p),
        POINTER(xr_error),)),
    "xr_pool_apply": (c_int, (xr_pool_p, POINTER(xr_pool_task), c_int64,
        POINTER(xr_value_p), POINTER(xr_error),)),
    "xr_pool_apply_async": (c_int, (xr_pool_p, POINTER(xr_pool_task),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_pool_close": (None, (xr_pool_p,)),
    "xr_pool_for": (c_int, (xr_pool_p, POINTER(xr_pool_loop),
        POINTER(xr_error),)),
    "xr_pool_free": (None, (xr_pool_p,)),
    "xr_pool_imap": (c_int, (xr_pool_p, POINTER(xr_pool_task),
        POINTER(xr_pool_iter_p), POINTER(xr_error),)),
    "xr_pool_imap_unordered": (c_int, (xr_pool_p, POINTER(xr_pool_task),
        POINTER(xr_pool_iter_p), POINTER(xr_error),)),
    "xr_pool_inqueue_put": (c_int, (xr_pool_p, xr_pool_item_p,
        POINTER(xr_error),)),
    "xr_pool_item_info": (c_int, (xr_pool_item_p,
        POINTER(xr_pool_item_info),)),
    "xr_pool_iter_free": (None, (xr_pool_iter_p,)),
    "xr_pool_iter_next": (c_int, (xr_pool_iter_p, c_int64, POINTER(xr_value_p),
        POINTER(xr_error),)),
    "xr_pool_join": (c_int, (xr_pool_p, c_int64, POINTER(xr_error),)),
    "xr_pool_join_workers": (c_int, (xr_pool_p, c_int64, POINTER(xr_error),)),
    "xr_pool_maintain": (c_int, (xr_pool_p, POINTER(xr_error),)),
    "xr_pool_map": (c_int, (xr_pool_p, POINTER(xr_pool_task), c_int64,
        POINTER(xr_value_p), POINTER(xr_error),)),
    "xr_pool_map_async": (c_int, (xr_pool_p, POINTER(xr_pool_task),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_pool_new": (c_int, (POINTER(xr_pool_opts), POINTER(xr_pool_p),
        POINTER(xr_error),)),
    "xr_pool_of": (xr_pool_p, (xr_value_p,)),
    "xr_pool_outqueue_get": (c_int, (xr_pool_p, c_int64,
        POINTER(xr_pool_item_p), POINTER(xr_error),)),
    "xr_pool_pids": (c_uint32, (xr_pool_p, POINTER(c_int32), c_uint32,)),
    "xr_pool_repopulate": (c_int, (xr_pool_p, POINTER(xr_error),)),
    "xr_pool_setup_queues": (c_int, (xr_pool_p, POINTER(xr_pool_queues),
        POINTER(xr_error),)),
    "xr_pool_size": (c_uint32, (xr_pool_p,)),
    "xr_pool_starmap": (c_int, (xr_pool_p, POINTER(xr_pool_task), c_int64,
        POINTER(xr_value_p), POINTER(xr_error),)),
    "xr_pool_starmap_async": (c_int, (xr_pool_p, POINTER(xr_pool_task),
        POINTER(xr_future_p), POINTER(xr_error),)),
    "xr_pool_state": (c_int, (xr_pool_p,)),
    "xr_pool_terminate": (c_int, (xr_pool_p, c_int64, POINTER(xr_error),)),
    "xr_pool_terminate_workers": (c_int, (xr_pool_p, c_int64,
        POINTER(xr_error),)),
    "xr_pool_value": (xr_value_p, (xr_pool_p,)),
    "xr_pool_worker": (c_int, (c_uint32, xr_value_p, c_void_p,
        POINTER(xr_error),)),
    "xr_proc_fd": (c_int, (xr_proc_p,)),
    "xr_proc_free": (None, (xr_proc_p,)),
    "xr_proc_kill": (c_int, (xr_proc_p, c_int, POINTER(xr_error),)),
    "xr_proc_kill_tree": (c_int, (xr_proc_p, c_int, POINTER(xr_error),)),
    "xr_proc_name": (c_char_p, (xr_proc_p,)),
    "xr_proc_pid": (c_int32, (xr_proc_p,)),
    "xr_proc_raise": (c_int, (xr_value_p, POINTER(xr_error),)),
    "xr_proc_register": (c_int, (c_char_p, xr_proc_fn, c_void_p,
        POINTER(xr_error),)),
    "xr_proc_report": (xr_value_p, (xr_proc_p, c_size_t,)),
    "xr_proc_start": (c_int, (POINTER(xr_proc_opts), POINTER(xr_proc_p),
        POINTER(xr_error),)),
    "xr_proc_started": (c_int64, (xr_proc_p,)),
    "xr_proc_wait": (c_int, (xr_proc_p, c_int64, POINTER(xr_proc_end),
        POINTER(xr_error),)),
    "xr_proc_watch": (c_int, (xr_proc_p, c_int64, POINTER(xr_error),)),
    "xr_procset_free": (None, (xr_procset_p,)),
    "xr_procset_join": (c_int, (xr_procset_p, c_int64, POINTER(xr_spawn_end),
        POINTER(xr_error),)),
    "xr_procset_pids": (c_size_t, (xr_procset_p, POINTER(c_int32), c_size_t,)),
    "xr_prof_begin": (c_int, (c_uint32, POINTER(xr_error),)),
    "xr_prof_end": (c_int, (c_uint32, POINTER(xr_value_p),
        POINTER(xr_error),)),
    "xr_prof_mark_begin": (None, (c_char_p,)),
    "xr_prof_mark_end": (None, ()),
    "xr_prof_trace": (c_int, (xr_value_p, POINTER(xr_value_p),
        POINTER(xr_error),)),
    "xr_queue_adopt": (c_int, (POINTER(c_int), POINTER(xr_queue_p),
        POINTER(xr_error),)),
    "xr_queue_close": (None, (xr_queue_p,)),
    "xr_queue_count": (c_size_t, (xr_queue_p,)),
    "xr_queue_done": (None, (xr_queue_p,)),
    "xr_queue_empty": (c_bool, (xr_queue_p,)),
    "xr_queue_fd": (c_int, (xr_queue_p, POINTER(c_int), POINTER(xr_error),)),
    "xr_queue_fds": (None, (xr_queue_p, POINTER(c_int),)),
    "xr_queue_find": (c_int, (xr_store_p, c_char_p, c_int64,
        POINTER(xr_queue_p), POINTER(xr_error),)),
    "xr_queue_free": (None, (xr_queue_p,)),
    "xr_queue_get": (c_int, (xr_queue_p, POINTER(xr_value_p), c_int64,
        POINTER(xr_error),)),
    "xr_queue_get_bytes": (c_int, (xr_queue_p, POINTER(xr_queue_buf), c_int64,
        POINTER(xr_error),)),
    "xr_queue_get_many": (c_int, (xr_queue_p, POINTER(xr_value_p),
        POINTER(c_size_t), c_int64, POINTER(xr_error),)),
    "xr_queue_get_many_bytes": (c_int, (xr_queue_p, POINTER(xr_queue_buf),
        POINTER(c_size_t), c_int64, POINTER(xr_error),)),
    "xr_queue_lane": (c_int, (xr_queue_p, c_uint32, POINTER(xr_queue_p),
        POINTER(xr_error),)),
    "xr_queue_leave": (None, (xr_queue_p, c_uint32,)),
    "xr_queue_new": (c_int, (POINTER(xr_queue_opts), POINTER(xr_queue_p),
        POINTER(xr_error),)),
    "xr_queue_open": (c_int, (c_char_p, POINTER(xr_queue_p),
        POINTER(xr_error),)),
    "xr_queue_put": (c_int, (xr_queue_p, xr_value_p, c_int64,
        POINTER(xr_error),)),
    "xr_queue_put_bytes": (c_int, (xr_queue_p, c_void_p, c_size_t, c_int64,
        POINTER(xr_error),)),
    "xr_queue_put_many": (c_int, (xr_queue_p, POINTER(xr_value_p),
        POINTER(c_size_t), c_int64, POINTER(xr_error),)),
    "xr_queue_put_many_bytes": (c_int, (xr_queue_p, POINTER(xr_part),
        POINTER(c_size_t), c_int64, POINTER(xr_error),)),
    "xr_queue_share": (c_int, (xr_queue_p, xr_store_p, c_char_p,
        POINTER(xr_error),)),
    "xr_queue_text": (c_int, (xr_queue_p, c_char_p, c_size_t,
        POINTER(xr_error),)),
    "xr_rank": (c_int64, ()),
    "xr_raw_reply_free": (None, (POINTER(xr_raw_reply),)),
    "xr_rendezvous": (c_int, (c_char_p, xr_value_p, c_int64,
        POINTER(xr_value_p), POINTER(xr_error),)),
    "xr_reply": (c_int, (xr_call_p, xr_value_p,)),
    "xr_reply_bytes": (c_int, (xr_call_p, c_void_p, c_size_t,)),
    "xr_reply_error": (c_int, (xr_call_p, xr_value_p,)),
    "xr_reply_fail": (c_int, (xr_call_p, c_int, c_char_p,)),
    "xr_reply_future": (c_int, (xr_call_p, xr_future_p,)),
    "xr_rpc_allgather": (c_int, (POINTER(xr_rpc_meeting), xr_value_p,
        POINTER(xr_value_p), POINTER(xr_error),)),
    "xr_rpc_async": (c_int, (POINTER(xr_rpc_call), POINTER(xr_future_p),
        POINTER(xr_error),)),
    "xr_rpc_barrier": (c_int, (POINTER(xr_rpc_meeting), POINTER(xr_error),)),
    "xr_rpc_get_timeout": (c_int, (POINTER(c_int64), POINTER(xr_error),)),
    "xr_rpc_init": (c_int, (c_char_p, c_int64, c_int64, POINTER(xr_rpc_opts),
        POINTER(xr_error),)),
    "xr_rpc_opts_devices": (c_int, (xr_rpc_settings_p, POINTER(c_int32),
        c_uint32, POINTER(xr_error),)),
    "xr_rpc_opts_init": (c_int, (c_uint32, POINTER(xr_rpc_opts),
        POINTER(xr_error),)),
    "xr_rpc_opts_map_device": (c_int, (xr_rpc_settings_p, c_char_p, c_int32,
        c_int32, POINTER(xr_error),)),
    "xr_rpc_opts_set": (c_int, (xr_rpc_settings_p, c_char_p, c_char_p,
        POINTER(xr_error),)),
    "xr_rpc_remote": (c_int, (POINTER(xr_rpc_call), POINTER(xr_rref_p),
        POINTER(xr_error),)),
    "xr_rpc_set_timeout": (c_int, (c_int64, POINTER(xr_error),)),
    "xr_rpc_settings_free": (None, (xr_rpc_settings_p,)),
    "xr_rpc_settings_new": (xr_rpc_settings_p, (c_uint32,)),
    "xr_rpc_settings_opts": (POINTER(xr_rpc_opts), (xr_rpc_settings_p,)),
    "xr_rpc_shutdown": (c_int, (c_uint32, c_int64, POINTER(xr_error),)),
    "xr_rpc_sync": (c_int, (POINTER(xr_rpc_call), POINTER(xr_value_p),
        POINTER(xr_error),)),
    "xr_rpc_wait_begin": (c_int, (POINTER(xr_error),)),
    "xr_rpc_wait_end": (c_int, (c_int64, POINTER(xr_error),)),
    "xr_rref_call_async": (c_int, (POINTER(xr_rref_call), POINTER(xr_future_p),
        POINTER(xr_error),)),
    "xr_rref_call_remote": (c_int, (POINTER(xr_rref_call), POINTER(xr_rref_p),
        POINTER(xr_error),)),
    "xr_rref_call_sync": (c_int, (POINTER(xr_rref_call), POINTER(xr_value_p),
        POINTER(xr_error),)),
    "xr_rref_confirmed": (c_bool, (xr_rref_p,)),
    "xr_rref_created": (c_int, (xr_rref_p, POINTER(xr_future_p),)),
    "xr_rref_fetch": (c_int, (xr_rref_p, c_int64, POINTER(xr_value_p),
        POINTER(xr_error),)),
    "xr_rref_fetch_async": (c_int, (xr_rref_p, c_int64, POINTER(xr_future_p),
        POINTER(xr_error),)),
    "xr_rref_from_value": (c_int, (xr_value_p, POINTER(xr_rref_p),
        POINTER(xr_error),)),
    "xr_rref_id": (None, (xr_rref_p, POINTER(xr_rref_id),
        POINTER(xr_rref_id),)),
    "xr_rref_is_owner": (c_bool, (xr_rref_p,)),
    "xr_rref_local": (c_int, (xr_rref_p, c_int64, POINTER(xr_value_p),
        POINTER(xr_error),)),
    "xr_rref_owner": (c_int, (xr_rref_p, POINTER(xr_worker),)),
    "xr_rref_ref": (xr_rref_p, (xr_rref_p,)),
    "xr_rref_text": (c_size_t, (xr_rref_p, c_char_p, c_size_t,)),
    "xr_rref_unref": (None, (xr_rref_p,)),
    "xr_spawn": (c_int, (c_char_p, xr_value_p, POINTER(xr_spawn_opts),
        POINTER(xr_procset_p), POINTER(xr_error),)),
    "xr_status_name": (c_char_p, (c_int,)),
    "xr_status_retryable": (c_bool, (c_int,)),
    "xr_status_text": (c_char_p, (c_int,)),
    "xr_store_add": (c_int, (xr_store_p, c_char_p, c_int64, POINTER(c_int64),
        POINTER(xr_error),)),
    "xr_store_check": (c_int, (xr_store_p, POINTER(c_char_p), c_size_t,
        POINTER(c_bool), POINTER(xr_error),)),
    "xr_store_close": (None, (xr_store_p,)),
    "xr_store_compare_set": (c_int, (xr_store_p, POINTER(xr_store_swap),
        POINTER(xr_store_value), POINTER(c_bool), POINTER(xr_error),)),
    "xr_store_delete": (c_int, (xr_store_p, c_char_p, POINTER(c_bool),
        POINTER(xr_error),)),
    "xr_store_free": (None, (xr_store_p,)),
    "xr_store_get": (c_int, (xr_store_p, c_char_p, c_int64,
        POINTER(xr_store_value), POINTER(xr_error),)),
    "xr_store_open": (c_int, (c_char_p, POINTER(xr_store_options),
        POINTER(xr_store_p), POINTER(xr_error),)),
    "xr_store_rank": (c_int64, (xr_store_p,)),
    "xr_store_set": (c_int, (xr_store_p, c_char_p, c_void_p, c_size_t,
        POINTER(xr_error),)),
    "xr_store_size": (c_int64, (xr_store_p,)),
    "xr_store_value_free": (None, (POINTER(xr_store_value),)),
    "xr_store_wait": (c_int, (xr_store_p, POINTER(c_char_p), c_size_t, c_int64,
        POINTER(xr_error),)),
    "xr_tensor_data": (c_void_p, (xr_value_p, POINTER(c_size_t),)),
    "xr_tensor_dense": (None, (POINTER(xr_tensor_desc),)),
    "xr_tensor_desc": (c_int, (xr_value_p, POINTER(xr_tensor_desc),)),
    "xr_tensor_elements": (c_int64, (POINTER(xr_tensor_desc),)),
    "xr_tensor_new": (c_int, (POINTER(xr_tensor_desc), POINTER(xr_value_p),
        POINTER(xr_error),)),
    "xr_tensor_same": (c_bool, (xr_value_p, xr_value_p,)),
    "xr_tensor_view": (c_int, (xr_value_p, POINTER(xr_tensor_desc),
        POINTER(xr_value_p), POINTER(xr_error),)),
    "xr_tensor_wrap": (c_int, (POINTER(xr_tensor_desc),
        POINTER(xr_tensor_memory), POINTER(xr_value_p), POINTER(xr_error),)),
    "xr_thread_free": (None, (xr_thread_p,)),
    "xr_thread_report": (xr_value_p, (xr_thread_p, c_size_t,)),
    "xr_thread_start": (c_int, (POINTER(xr_thread_opts), POINTER(xr_thread_p),
        POINTER(xr_error),)),
    "xr_thread_wait": (c_int, (xr_thread_p, c_int64, POINTER(xr_error),)),
    "xr_thread_watch": (c_int, (xr_thread_p, c_int64, POINTER(xr_error),)),
    "xr_type_register": (c_int, (POINTER(xr_type), POINTER(xr_error),)),
    "xr_value_append": (c_int, (xr_value_p, xr_value_p,)),
    "xr_value_at": (xr_value_p, (xr_value_p, c_size_t,)),
    "xr_value_count": (c_size_t, (xr_value_p,)),
    "xr_value_data": (c_void_p, (xr_value_p, POINTER(c_size_t),)),
    "xr_value_equal": (c_bool, (xr_value_p, xr_value_p,)),
    "xr_value_failure": (c_int, (xr_value_p, POINTER(xr_failure),)),
    "xr_value_find": (xr_value_p, (xr_value_p, c_void_p, c_size_t,)),
    "xr_value_func": (c_char_p, (xr_value_p, POINTER(xr_value_p),)),
    "xr_value_get_bool": (c_int, (xr_value_p, POINTER(c_bool),)),
    "xr_value_get_c128": (c_int, (xr_value_p, POINTER(c_double),
        POINTER(c_double),)),
    "xr_value_get_f64": (c_int, (xr_value_p, POINTER(c_double),)),
    "xr_value_get_i64": (c_int, (xr_value_p, POINTER(c_int64),)),
    "xr_value_get_u64": (c_int, (xr_value_p, POINTER(c_uint64),)),
    "xr_value_key": (c_void_p, (xr_value_p, c_size_t, POINTER(c_size_t),)),
    "xr_value_kind": (c_int, (xr_value_p,)),
    "xr_value_new_bool": (xr_value_p, (c_bool,)),
    "xr_value_new_bytes": (xr_value_p, (c_void_p, c_size_t,)),
    "xr_value_new_c128": (xr_value_p, (c_double, c_double,)),
    "xr_value_new_dict": (xr_value_p, ()),
    "xr_value_new_error": (xr_value_p, (POINTER(xr_failure),)),
    "xr_value_new_f64": (xr_value_p, (c_double,)),
    "xr_value_new_i64": (xr_value_p, (c_int64,)),
    "xr_value_new_list": (xr_value_p, ()),
    "xr_value_new_list_of": (xr_value_p, (POINTER(xr_value_p), c_size_t,)),
    "xr_value_new_nil": (xr_value_p, ()),
    "xr_value_new_opaque": (xr_value_p, (c_char_p, c_void_p,)),
    "xr_value_new_rref": (xr_value_p, (xr_rref_p,)),
    "xr_value_new_text": (xr_value_p, (c_char_p, c_size_t,)),
    "xr_value_new_u64": (xr_value_p, (c_uint64,)),
    "xr_value_new_worker": (xr_value_p, (c_char_p, c_uint32,)),
    "xr_value_object": (c_void_p, (xr_value_p, c_char_p,)),
    "xr_value_put": (c_int, (xr_value_p, c_void_p, c_size_t, xr_value_p,)),
    "xr_value_ref": (xr_value_p, (xr_value_p,)),
    "xr_value_rref": (xr_rref_p, (xr_value_p,)),
    "xr_value_type": (c_char_p, (xr_value_p,)),
    "xr_value_unref": (None, (xr_value_p,)),
    "xr_value_worker": (c_char_p, (xr_value_p, POINTER(c_uint32),)),
    "xr_value_wrap_bytes": (xr_value_p, (c_void_p, c_size_t, xr_free_fn,
        c_void_p,)),
    "xr_wait_all": (c_int, (POINTER(xr_event_p), c_size_t, c_int64,
        POINTER(xr_error),)),
    "xr_wait_any": (c_int, (POINTER(xr_event_p), c_size_t, c_int64,
        POINTER(c_size_t), POINTER(xr_error),)),
    "xr_worker_find": (c_int, (c_char_p, POINTER(xr_worker),
        POINTER(xr_error),)),
    "xr_worker_find_id": (c_int, (c_int64, POINTER(xr_worker),
        POINTER(xr_error),)),
    "xr_worker_list": (c_int, (POINTER(xr_worker), c_size_t, POINTER(c_size_t),
        POINTER(xr_error),)),
    "xr_worker_self": (c_int, (POINTER(xr_worker), POINTER(xr_error),)),
    "xr_world_close": (c_int, (xr_world_p, c_uint32, c_int64,
        POINTER(xr_error),)),
    "xr_world_free": (None, (xr_world_p,)),
    "xr_world_get": (xr_world_p, ()),
    "xr_world_member": (c_char_p, (xr_world_p, c_int64,)),
    "xr_world_members": (c_size_t, (xr_world_p, POINTER(c_char_p), c_size_t,)),
    "xr_world_new": (c_int, (POINTER(xr_world_opts), POINTER(xr_world_p),
        POINTER(xr_error),)),
    "xr_world_ready": (c_bool, ()),
    "xr_world_size": (c_uint32, (xr_world_p,)),
}

# Numbers.
# enum xr_status
XR_OK = 0
XR_E_INVAL = -1
XR_E_STATE = -2
XR_E_NOTFOUND = -3
XR_E_EXISTS = -4
XR_E_RANGE = -5
XR_E_CONFLICT = -6
XR_E_NOTMEMBER = -7
XR_E_END = -8
XR_E_NO_FUNCTION = -9
XR_E_SCHEMA = -10
XR_E_ENCODE = -11
XR_E_STALE = -12
XR_E_NOMEM = -20
XR_E_SYS = -21
XR_E_NODEV = -22
XR_E_ABI = -23
XR_E_AGAIN = -24
XR_E_DEVICE = -25
XR_E_PROTO = -40
XR_E_VERSION = -41
XR_E_AUTH = -42
XR_E_PEER_LOST = -43
XR_E_REMOTE = -44
XR_E_DECODE = -45
XR_E_WORKER_LOST = -46
XR_E_INJECTED = -47
XR_E_TIMEOUT = -60
XR_E_CANCELLED = -61
XR_E_CLOSED = -62
XR_E_FENCED = -63
# enum xr_device_kind
XR_DEVICE_CPU = 0
XR_DEVICE_CUDA = 1
XR_DEVICE_ROCM = 2
XR_DEVICE_TPU = 3
XR_DEVICE_NEURON = 4
XR_DEVICE_FAKE = 5
# enum xr_kind
XR_NIL = 0
XR_BOOL = 1
XR_I64 = 2
XR_U64 = 3
XR_F64 = 4
XR_C128 = 5
XR_BYTES = 6
XR_TEXT = 7
XR_LIST = 8
XR_DICT = 9
XR_TENSOR = 10
XR_RREF = 11
XR_WORKER = 12
XR_ERROR = 13
XR_OPAQUE = 14
XR_FUNC = 15
# enum xr_enc_mode
XR_ENC_COPY = 0
XR_ENC_SHARE = 1
# enum xr_then_flags
XR_THEN = 0
XR_SHORT = 1
# enum xr_dtype
XR_DT_BOOL = 1
XR_DT_U8 = 2
XR_DT_I8 = 3
XR_DT_U16 = 4
XR_DT_I16 = 5
XR_DT_U32 = 6
XR_DT_I32 = 7
XR_DT_U64 = 8
XR_DT_I64 = 9
XR_DT_F16 = 10
XR_DT_BF16 = 11
XR_DT_F32 = 12
XR_DT_F64 = 13
XR_DT_C64 = 14
XR_DT_C128 = 15
# enum xr_rref_flags
XR_RREF_ACK_ON_DONE = 1
# enum xr_shutdown_flags
XR_SHUTDOWN_GRACEFUL = 0
XR_SHUTDOWN_IMMEDIATE = 1
XR_SHUTDOWN_STRICT = 2
# enum xr_rpc_flags
XR_RPC_SHARE = 1
# enum xr_redop
XR_SUM = 1
XR_PROD = 2
XR_MIN = 3
XR_MAX = 4
XR_BAND = 5
XR_BOR = 6
XR_BXOR = 7
XR_AVG = 8
# enum xr_func_flags
XR_FN_ASYNC = 1
XR_FN_SHORT = 2
XR_FN_SHARE = 4
# enum xr_plugin_kind
XR_LAUNCH = 1
XR_PLATFORM = 2
XR_RPC = 3
# enum xr_queue_kind
XR_QUEUE_ANY = 0
XR_QUEUE_P2P = 1
# enum xr_queue_role
XR_QUEUE_WRITER = 1
XR_QUEUE_READER = 2
# enum xr_pool_kind
XR_POOL_PROCESSES = 0
XR_POOL_THREADS = 1
# enum xr_pool_routing
XR_POOL_SHARED = 0
XR_POOL_P2P = 1
# enum xr_pool_on_error
XR_POOL_REPLACE = 0
XR_POOL_TERMINATE = 1
# enum xr_pool_flags
XR_POOL_CONTEXT = 1
XR_POOL_DRAINS = 2
# enum xr_pool_task_flags
XR_POOL_IDEMPOTENT = 1
XR_POOL_CHUNK = 2
# enum xr_pool_state
XR_POOL_RUNNING = 0
XR_POOL_CLOSED = 1
XR_POOL_TERMINATED = 2
# enum xr_proc_flags
XR_PROC_DAEMON = 1
# enum xr_prof_flags
XR_PROF_THREAD = 0
XR_PROF_PROCESS = 1
# enum xr_exit
XR_EXIT_OK = 0
XR_EXIT_RANK_FAILED = 17
# enum xr_spawn_flags
XR_SPAWN_NO_JOIN = 1
XR_SPAWN_DAEMON = 2
# enum xr_carrier_caps
XR_CARRIER_THREAD = 1
XR_CARRIER_LOCAL = 2
XR_CARRIER_TLS = 4
XR_CARRIER_LENDS = 8
# enum xr_there
XR_THERE_UNKNOWN = 0
XR_THERE_YES = 1
XR_THERE_NO = 2
XR_THERE_SILENT = 3
# macros
XR_ADDRESS_MAX = 255
XR_CARRIER_API = 1
XR_COLL_AHEAD = 4096
XR_COLL_ANY = -1
XR_COLL_MULTI_MOST = 1024
XR_DEVICE_MAP_CPU = -1
XR_EVENT_PARTS_MAX = 4096
XR_GROUP_KEY_MAX = 255
XR_GROUP_NAME_MAX = 127
XR_LOANS_MAX = 255
XR_MESSAGE_MAX = 1099511627776
XR_METRICS_MAX = 40
XR_PLUGIN_ABI = 1
XR_POOL_GRACE = 10000000000
XR_POOL_START_FAILURES = 3
XR_POOL_START_WINDOW = 10000000000
XR_POOL_TASKS = 1024
XR_POOL_TASKS_MAX = 65536
XR_POOL_WORKERS_MAX = 1000
XR_QUEUE_BYTES = 4194304
XR_QUEUE_BYTES_MAX = 68719476736
XR_QUEUE_FDS = 2
XR_QUEUE_ITEMS = 1024
XR_QUEUE_ITEMS_MAX = 1048576
XR_QUEUE_LANES_MAX = 1024
XR_QUEUE_LONG_MOST = 4
XR_QUEUE_SHORT = 96
XR_QUEUE_TEXT_MAX = 128
XR_QUEUE_USERS_MAX = 1023
XR_RPC_GROUP_THREADS_DEFAULT = 4
XR_RPC_THREADS_DEFAULT = 16
XR_RPC_TIMEOUT_DEFAULT = 60000000000
XR_STORE_EXPECTED_MAX = 32768
XR_STORE_KEYS_MAX = 1024
XR_STORE_KEY_MAX = 4096
XR_STORE_UNSAID = -1
XR_STORE_VALUE_MAX = 67108864
XR_TENSOR_DIMS = 8
XR_TIMEOUT_DEFAULT = -1
XR_TIMEOUT_NEVER = 9223372036854775807
XR_VALUE_BYTES_MAX = 1099511627776
XR_VALUE_DEPTH_MAX = 64
XR_VALUE_ITEMS_MAX = 16777216
XR_WORKER_ID_MAX = 32767
XR_WORKER_NAME_MAX = 127
XR_INIT_METHOD_DEFAULT = b"env://"
