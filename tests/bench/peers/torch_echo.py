# SPDX-License-Identifier: Apache-2.0
"""PyTorch's rpc_sync over TensorPipe: BYTES CALLS WINDOW [CPUS]; with a window
rpc_async."""
import json
import os
import resource
import sys
import time

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp


def echo(tensor):
    return tensor


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(size, calls):
    data = torch.ones(max(size, 1), dtype=torch.uint8)
    took = []
    for i in range(calls // 10 + 1 + calls):
        if i == calls // 10 + 1:
            took, before = [], cpu()
        data[0] = i % 251
        begin = time.monotonic_ns()
        back = rpc.rpc_sync("w1", echo, args=(data,))
        assert torch.equal(back, data)
        took.append(time.monotonic_ns() - begin)
    took.sort()
    print(json.dumps({"bytes": size, "calls": calls,
                      "p50_us": took[calls // 2] / 1e3,
                      "p99_us": took[calls - calls // 100 - 1] / 1e3,
                      "cpu_us": (cpu() - before) * 1e6 / calls}), flush=True)


def measure_windows(size, calls, window):
    data = torch.ones(max(size, 1), dtype=torch.uint8)
    calls -= calls % window
    begin, before = time.monotonic_ns(), cpu()
    for i in range(0, calls, window):
        data[0] = i % 251
        for future in [rpc.rpc_async("w1", echo, args=(data,))
                       for _ in range(window)]:
            assert torch.equal(future.wait(), data)
    took = time.monotonic_ns() - begin
    print(json.dumps({"bytes": size, "calls": calls,
                      "rate": calls * 1e9 / took,
                      "cpu_us": (cpu() - before) * 1e6 / calls}), flush=True)


def run(rank, size, calls, window, cpus):
    if cpus:
        os.sched_setaffinity(0, {cpus[rank]})
    torch.set_num_threads(1)
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=2)
    if rank == 0 and window > 0:
        measure_windows(size, calls, window)
    elif rank == 0:
        measure(size, calls)
    rpc.shutdown()


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(20000 + os.getpid() % 20000)
    CPUS = [int(c) for c in sys.argv[4].split(",")] if len(sys.argv) > 4 else []
    mp.spawn(run, args=(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]),
                        CPUS), nprocs=2)
