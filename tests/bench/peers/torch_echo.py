# SPDX-License-Identifier: Apache-2.0
"""PyTorch's rpc_sync over TensorPipe: BYTES CALLS [CPUS]."""
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


def run(rank, size, calls, cpus):
    if cpus:
        os.sched_setaffinity(0, {cpus[rank]})
    torch.set_num_threads(1)
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=2)
    if rank == 0:
        measure(size, calls)
    rpc.shutdown()


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(20000 + os.getpid() % 20000)
    CPUS = [int(c) for c in sys.argv[3].split(",")] if len(sys.argv) > 3 else []
    mp.spawn(run, args=(int(sys.argv[1]), int(sys.argv[2]), CPUS), nprocs=2)
