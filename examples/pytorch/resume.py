"""Trains a line with PyTorch's DistributedDataParallel, saves a checkpoint every 100 steps, and goes on from the newest
one when it is started again: after a replica was lost, after Ctrl-C, or on another node."""
import os
import pathlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS, SAVE_EVERY, BATCH, LEARNING_RATE = int(os.environ.get("STEPS", 300)), 100, 64, 0.05
CHECKPOINT = pathlib.Path(os.environ["MUSTER_STORAGE"], "checkpoint.pt")  # every replica sees this folder


def save(step):
    """Writes a whole file first and renames it then, so that a kill at any moment leaves the checkpoint before it."""
    unfinished = CHECKPOINT.with_suffix(".unfinished")
    with open(unfinished, "wb") as file:
        torch.save({"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, CHECKPOINT)


dist.init_process_group("gloo")  # returns when all replicas are there, so that all load the same checkpoint below
rank = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)
first = 0
if CHECKPOINT.exists():
    state = torch.load(CHECKPOINT, weights_only=True)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["step"]
print(f"rank {rank} begins at step {first}", flush=True)

for step in range(first, STEPS):
    torch.manual_seed(step * dist.get_world_size() + rank)  # the data of a step are the same after a restart
    x = torch.randn(BATCH, 1)
    loss = torch.nn.functional.mse_loss(model(x), 2 * x + 10)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % SAVE_EVERY == 0:
        if rank == 0:
            save(step + 1)
        dist.barrier()  # nobody is a checkpoint ahead of rank 0
        print(f"rank {rank}: step {step + 1}, loss {loss.item():.2g}", flush=True)

line = model.module
print(f"rank {rank}: y = {line.weight.item():.4f} x + {line.bias.item():.4f}", flush=True)
dist.destroy_process_group()
