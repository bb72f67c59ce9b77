#!/usr/bin/env python3
"""SSD MobileNet v1 in PyTorch at its best honest setup: 300 x 300, batch 8, 90 classes, three objects an image,
RMSprop; images and targets are in memory as tensors, nothing is logged. The network is the one of the TF Object
Detection API. Hard negatives are the three times as many anchors of the largest loss, without the suppression of
overlapping ones that Muster's step has too. `--layout channels-last` is the layout that convolutions on a CPU are
fastest with; `--bfloat16` is autocast. `--classification` is MobileNet v1 alone, 224 x 224, batch 16, 1000 classes.
`--convolutions` times each convolution of a step by itself, forward and both gradients, and adds up their best times:
what a step would take in which everything else were free. PyTorch computes them by oneDNN."""

import argparse
import math
import resource
import time

import common
import numpy as np

BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1), (512, 1),
          (512, 1), (1024, 2), (1024, 1)]
EXTRAS = [512, 256, 256, 128]
GRIDS = [19, 10, 5, 3, 2, 1]
CLASSES = 90


def network(torch, classification):
    nn = torch.nn

    class Same(nn.Module):
        """A convolution with TensorFlow's padding, batch normalization and ReLU6."""

        def __init__(self, inputs, filters, size, stride, depthwise=False):
            super().__init__()
            # An even size with stride 2 has one zero after it, an odd one a zero on both sides.
            self.size, self.stride = size, stride
            self.convolution = nn.Conv2d(inputs, filters, size, stride, bias=False,
                                         padding=size // 2 if stride == 1 else 0,
                                         groups=inputs if depthwise else 1)
            self.norm = nn.BatchNorm2d(filters, eps=0.001, momentum=0.0003)

        def forward(self, x):
            if self.stride == 2:
                edges = []
                for length in (x.shape[3], x.shape[2]):
                    zeros = max(0, (math.ceil(length / 2) - 1) * 2 + self.size - length)
                    edges += [zeros // 2, zeros - zeros // 2]
                x = nn.functional.pad(x, edges)
            return nn.functional.relu6(self.norm(self.convolution(x)))

    def backbone():
        layers, inputs = [Same(3, 32, 3, 2)], 32
        for filters, stride in BLOCKS:
            layers.append(nn.Sequential(Same(inputs, inputs, 3, stride, depthwise=True),
                                        Same(inputs, filters, 1, 1)))
            inputs = filters
        return layers

    if classification:
        return nn.Sequential(*backbone(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.001),
                             nn.Linear(1024, 1000))

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            layers = backbone()
            self.first, self.second = nn.Sequential(*layers[:12]), nn.Sequential(*layers[12:])
            extras, inputs = [], 1024
            for filters in EXTRAS:
                extras.append(nn.Sequential(Same(inputs, filters // 2, 1, 1), Same(filters // 2, filters, 3, 2)))
                inputs = filters
            self.extras = nn.ModuleList(extras)
            depths = [512, 1024, *EXTRAS]
            anchors = [3, 6, 6, 6, 6, 6]
            self.boxes = nn.ModuleList(nn.Conv2d(d, n * 4, 1) for d, n in zip(depths, anchors))
            self.classes = nn.ModuleList(nn.Conv2d(d, n * (CLASSES + 1), 1) for d, n in zip(depths, anchors))

        def forward(self, x):
            maps = [self.first(x)]
            maps.append(self.second(maps[0]))
            for extra in self.extras:
                maps.append(extra(maps[-1]))

            def heads(convolutions, width):
                return torch.cat([head(m).permute(0, 2, 3, 1).reshape(len(x), -1, width)
                                  for head, m in zip(convolutions, maps)], dim=1)

            return heads(self.boxes, 4), heads(self.classes, CLASSES + 1)

    return Detector()


def detection_loss(torch, outputs, targets):
    boxes, logits = outputs
    codes, classes, positive = targets
    functional = torch.nn.functional
    wanted = functional.one_hot(classes, CLASSES + 1).to(logits.dtype)
    classification = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none").sum(2)
    localization = functional.smooth_l1_loss(boxes, codes, reduction="none").sum(2)
    matches = positive.sum(1)
    negative_loss = torch.where(positive, 0.0, classification).detach()
    rank = negative_loss.argsort(1, descending=True).argsort(1)
    chosen = positive | (rank < 3 * matches[:, None])
    weight = matches.sum().clamp(min=1)
    return ((classification * chosen).sum() + (localization * positive).sum()) / weight


def convolution_seconds(torch, model, images):
    """The sum over the convolutions of the least time of forward and backward, each on its own."""
    calls = []

    def remember(module, inputs, output):
        calls.append((module, inputs[0].detach(), torch.randn_like(output)))

    hooks = [module.register_forward_hook(remember) for module in model.modules()
             if isinstance(module, torch.nn.Conv2d)]
    with torch.no_grad():
        model(images)
    for hook in hooks:
        hook.remove()
    total = 0.0
    for number, (module, x, dy) in enumerate(calls):
        weight, bias = module.weight.detach(), module.bias.detach() if module.bias is not None else None
        shape = [module.stride, module.padding, module.dilation]

        def once():
            torch.nn.functional.conv2d(x, weight, bias, *shape, module.groups)
            torch.ops.aten.convolution_backward(dy, x, weight, [len(weight)] if bias is not None else None, *shape,
                                                False, [0, 0], module.groups,
                                                [number > 0, True, bias is not None])

        best = math.inf
        for _ in range(6):
            begin = time.perf_counter()
            once()
            best = min(best, time.perf_counter() - begin)
        total += best
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--layout", choices=["contiguous", "channels-last"], default="channels-last")
    parser.add_argument("--classification", action="store_true")
    parser.add_argument("--bfloat16", action="store_true")
    parser.add_argument("--convolutions", action="store_true")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--batch", type=int, help="8, or 16 with --classification, unless it is given")
    parser.add_argument("--seconds", type=float, default=15)
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    torch.set_flush_denormal(True)
    size, batch = (224, 16) if arguments.classification else (300, 8)
    batch = arguments.batch or batch
    device = torch.device(arguments.device)
    model = network(torch, arguments.classification).to(device)
    random = np.random.default_rng(1)
    images = torch.from_numpy(random.uniform(-1, 1, (batch, 3, size, size)).astype(np.float32)).to(device)
    if arguments.layout == "channels-last":
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    if arguments.convolutions:
        seconds = convolution_seconds(torch, model, images)
        common.report(1 / seconds, imagesPerSecond=batch / seconds, threads=arguments.threads)
        return
    anchors = sum(grid * grid * (3 if grid == 19 else 6) for grid in GRIDS)
    positive = torch.zeros(batch, anchors, dtype=torch.bool)
    positive[:, torch.from_numpy(random.choice(anchors, 12, replace=False))] = True
    classes = torch.where(positive, torch.randint(1, CLASSES + 1, (batch, anchors)), 0)
    targets = [one.to(device) for one in (torch.randn(batch, anchors, 4), classes, positive)]
    labels = torch.randint(0, 1000, (batch,)).to(device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.004, alpha=0.9, eps=1.0, momentum=0.9, foreach=True)

    def loss_of(x):
        with torch.autocast(arguments.device, dtype=torch.bfloat16, enabled=arguments.bfloat16):
            outputs = model(x)
        if arguments.classification:
            return torch.nn.functional.cross_entropy(outputs.float(), labels)
        return detection_loss(torch, [one.float() for one in outputs], targets)

    if arguments.mode == "compile":
        loss_of = torch.compile(loss_of)

    def step(_):
        optimizer.zero_grad(set_to_none=True)
        loss_of(images).backward()
        optimizer.step()

    # A GPU is asked for several steps at once.
    finish, block = (torch.cuda.synchronize, 10) if device.type == "cuda" else (lambda: None, 1)
    speed = common.steps_per_second(step, arguments.seconds, warm_up=3, block=block, finish=finish)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    common.report(speed, imagesPerSecond=speed * batch, peakMegabytes=peak, threads=arguments.threads)


if __name__ == "__main__":
    main()
