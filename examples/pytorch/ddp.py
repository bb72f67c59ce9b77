"""Trains a line with PyTorch's DistributedDataParallel. init_process_group finds the others by MASTER_ADDR, MASTER_PORT,
RANK and WORLD_SIZE."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH, LEARNING_RATE = int(os.environ.get("STEPS", 300)), 64, 0.05

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
for step in range(STEPS):
    x = torch.randn(BATCH, 1)
    loss = torch.nn.functional.mse_loss(model(x), 2 * x + 10)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.2g}", flush=True)
line = model.module
print(f"rank {rank} of {dist.get_world_size()}: loss {loss.item():.2g}, "
      f"y = {line.weight.item():.2f} x + {line.bias.item():.2f}", flush=True)
dist.destroy_process_group()
