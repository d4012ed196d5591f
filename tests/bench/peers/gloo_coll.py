#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gloo_coll.py RANKS OPERATION BYTES CALLS TYPE REDUCTION - collective steps of
torch.distributed with gloo; see coll.h."""
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time

import torch
import torch.distributed as dist


def cpu():
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


def step(what, rank, out, parts, op):
    if what == "barrier":
        dist.barrier()
    elif what == "allreduce":
        dist.all_reduce(out, op)
    elif what == "bcast":
        dist.broadcast(out, 0)
    elif what == "allgather":
        dist.all_gather(parts, out)
    elif what == "reduce":
        dist.reduce(out, 0, op)
    elif what == "gather":
        dist.gather(out, parts if rank == 0 else None, 0)
    else:
        dist.scatter(out, parts if rank == 0 else None, 0)


def rank_main(rank, ranks, path, what, count, calls, reduction):
    op = dist.ReduceOp.MAX if reduction == "max" else dist.ReduceOp.SUM
    fold = max if reduction == "max" else sum
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank,
                            world_size=ranks)
    out = torch.zeros(count)
    parts = [torch.zeros(count) for _ in range(ranks)]
    took, warm, begun_cpu = [], calls // 10 + 2, 0.0
    for n in range(calls + warm):
        if n == warm:
            begun_cpu = cpu()
        out.fill_(rank * 5 + n * 3 % 251)
        dist.barrier()
        begun = time.perf_counter_ns()
        step(what, rank, out, parts, op)
        if n >= warm:
            took.append(time.perf_counter_ns() - begun)
        if what == "allreduce" and count > 0:
            want = fold(r * 5 + n * 3 % 251 for r in range(ranks))
            assert out[0] == want and out[-1] == want
    used = cpu() - begun_cpu
    took.sort()
    print(json.dumps({"bytes": count * 4, "calls": calls,
                      "p50_us": took[calls // 2] / 1e3,
                      "p99_us": took[calls - calls // 100 - 1] / 1e3,
                      "cpu_us": used * 1e6 / calls}), flush=True)
    dist.destroy_process_group()


def main():
    ranks, what, size, calls = int(sys.argv[1]), sys.argv[2], \
        int(sys.argv[3]), int(sys.argv[4])
    if sys.argv[5] != "f32":
        sys.exit("gloo reduces no bf16")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store")
        all_ranks = [multiprocessing.Process(
            target=rank_main, args=(r, ranks, path, what, size // 4, calls,
                                    sys.argv[6]))
            for r in range(ranks)]
        for one in all_ranks:
            one.start()
        for one in all_ranks:
            one.join()
        sys.exit(any(one.exitcode for one in all_ranks))


if __name__ == "__main__":
    main()
