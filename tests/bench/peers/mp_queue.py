#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python's multiprocessing.Queue, or SimpleQueue; as queue.h says.

usage: mp_queue.py WRITERS READERS BYTES ITEMS BATCH Queue|SimpleQueue
A batch is a list in one item.
"""
import json
import multiprocessing
import resource
import struct
import sys
import time


def put(queue, gate, size, items, batch, told):
    rest = bytes(size - 16) if size >= 16 else b""
    gate.wait()
    told.put(time.monotonic_ns())
    for i in range(0, items, batch):
        some = []
        for n in range(i, min(i + batch, items)):
            word = struct.pack("<Q", n)
            some.append(word + rest + word if size >= 16 else word)
        queue.put(some if batch > 1 else some[0])


def get(queue, gate, size, batch, told):
    got = total = 0
    gate.wait()
    while True:
        some = queue.get()
        if some is None:
            break
        for item in some if batch > 1 else (some,):
            if len(item) != size or item[:8] != item[-8:]:
                sys.exit(3)
            total += struct.unpack_from("<Q", item)[0]
            got += 1
        end = time.monotonic_ns()
    told.put((got, total, end if got else 0))


def main():
    writers, readers, size, items, batch = (int(a) for a in sys.argv[1:6])
    context = multiprocessing.get_context("fork")
    queue = getattr(context, sys.argv[6])()
    told = context.SimpleQueue()
    gate = context.Barrier(writers + readers + 1)
    ins = [context.Process(target=put, args=(queue, gate, size, items, batch,
                                              told))
           for _ in range(writers)]
    outs = [context.Process(target=get, args=(queue, gate, size, batch, told))
            for _ in range(readers)]
    for one in ins + outs:
        one.start()
    gate.wait()
    begin = min(told.get() for _ in ins)
    for one in ins:
        one.join()
    for _ in outs:
        queue.put(None)
    found = [told.get() for _ in outs]
    for one in outs:
        one.join()
    if sum(f[0] for f in found) != writers * items or \
            sum(f[1] for f in found) != writers * items * (items - 1) // 2:
        sys.exit(3)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    every = writers * items
    print(json.dumps({
        "ns": (max(f[2] for f in found) - begin) / every,
        "cpu_ns": (used.ru_utime + used.ru_stime) * 1e9 / every}))


if __name__ == "__main__":
    main()
