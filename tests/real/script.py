# SPDX-License-Identifier: Apache-2.0
"""A script as people write them: print, no flush.

usage: script.py [fail RANK | ask]
"""
import os
import sys

rank = int(os.environ["RANK"])
size = int(os.environ["WORLD_SIZE"])


def inner(number):
    raise ValueError(f"rank {number} cannot go on: größer als 7 ≠ klein")


for step in range(20):
    print(f"rank {rank} of {size}, Schritt {step} ✓")
    if step == 0 and sys.argv[1:] == ["ask"]:
        sys.stdin.readline()
    if step == 10 and sys.argv[1:] == ["fail", str(rank)]:
        inner(rank)
