# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training with PyTorch, nothing of ours in it.

    ddp.py FOLDER          a rank: MASTER_ADDR, RANK, ... from the environment;
                           leaves its parameters in FOLDER/rank-R.pt
    ddp.py FOLDER check N  all N ranks hold the same bits, and the same values
                           within 1e-5 as one process that sees whole batches

The task: which of four quarters of an 8x8 image is the brightest.
"""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 40
BATCH = 32  # of all ranks together


def new_model():
    torch.manual_seed(11)
    return nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(),
                         nn.AvgPool2d(2), nn.Flatten(), nn.Linear(96, 24),
                         nn.Tanh(), nn.Linear(24, 4))


def batch(step):
    dice = torch.Generator().manual_seed(1000 + step)
    images = torch.rand(BATCH, 1, 8, 8, generator=dice)
    quarters = images.reshape(BATCH, 2, 4, 2, 4).sum(dim=(2, 4))
    return images, quarters.reshape(BATCH, 4).argmax(dim=1)


def train(model, rank, size):
    """Each rank takes every size-th image; the loss is the mean."""
    rule = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    for step in range(STEPS):
        images, labels = batch(step)
        rule.zero_grad()
        loss = loss_of(model(images[rank::size]), labels[rank::size])
        loss.backward()
        rule.step()
        if step % 10 == 0 and rank == 0:
            print(f"step {step}  loss {loss.item():.4f}")
    return loss.item()


def run_rank(folder):
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank}: world size {size}")
    model = new_model()
    loss = train(DistributedDataParallel(model), rank, size)
    torch.save(model.state_dict(), os.path.join(folder, f"rank-{rank}.pt"))
    print(f"rank {rank}: final loss {loss:.4f}")
    dist.destroy_process_group()


def difference(a, b):
    if a.keys() != b.keys():
        sys.exit("the parameters have other names")
    return max((a[name] - b[name]).abs().max().item() for name in a)


def check(folder, size):
    ranks = [torch.load(os.path.join(folder, f"rank-{rank}.pt"))
             for rank in range(size)]
    for rank, found in enumerate(ranks):
        if difference(ranks[0], found) != 0:
            sys.exit(f"rank {rank} holds other parameters than rank 0")
    alone = new_model()
    start = {name: value.clone() for name, value in
             alone.state_dict().items()}
    train(alone, 0, 1)
    if difference(start, ranks[0]) < 1e-3:
        sys.exit("nothing was learned")
    far = difference(alone.state_dict(), ranks[0])
    if far > 1e-5:
        sys.exit(f"{far:g} away from one process on whole batches")
    print(f"{size} ranks agree; {far:.2g} away from one process")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[2:3] == ["check"]:
        check(sys.argv[1], int(sys.argv[3]))
    else:
        run_rank(sys.argv[1])
