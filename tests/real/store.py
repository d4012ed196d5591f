# SPDX-License-Identifier: Apache-2.0
"""The store of a process group after rank 0 has ended, and a client of it."""
import datetime
import os
import select
import sys

import torch.distributed as dist

LIMIT = datetime.timedelta(seconds=60)
RANK = int(os.environ["RANK"])


def client():
    """Rank 0 takes no part."""
    if RANK != 0:
        store = dist.TCPStore(os.environ["MASTER_ADDR"],
                              int(os.environ["MASTER_PORT"]), None, False, LIMIT)
        store.set("a", "1")
        print("client:", store.get("a").decode(), store.add("n", 3), flush=True)


def group():
    """Rank 1 uses the store after the process of rank 0 has ended."""
    dist.init_process_group("gloo", timeout=LIMIT)
    store = dist.distributed_c10d._get_default_store()
    if RANK == 0:
        store.set("pid", str(os.getpid()))
        os._exit(0)
    pid = int(store.get("pid"))
    fd = os.pidfd_open(pid) if os.path.exists(f"/proc/{pid}") else None
    if fd is not None:
        select.select([fd], [], [], 60)
    print("later:", store.get("pid") == str(pid).encode(), flush=True)
    os._exit(0)


{"client": client, "group": group}[sys.argv[1]]()
