#!/usr/bin/env python3
"""Writes tests/fixtures/pytorch/*.json: the first losses and gradients of small models, computed by
PyTorch in float32 and in float64. The format, and the exact recipe of weights and data, is in the
README beside them.

    deploy/setup/python.sh bench && build/venv/bin/python tests/python/make_pytorch_fixtures.py [NAME...]
"""

import functools
import gzip
import json
import math
import pathlib
import sys

import numpy as np
import ssd_reference
import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 10


# Weights and data: a hash of two integers (README).


def mixed(number, elements):
    x = np.uint64(number << 32) + elements.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def values(number, shape, limit, first=0):
    elements = np.arange(first, first + math.prod(shape))
    centred = (mixed(number, elements) >> np.uint64(40)).astype(np.int64) - 2**23
    return (centred.astype(np.float32) / np.float32(2**23) * np.float32(limit)).reshape(shape)


@functools.cache
def idx(name, header):
    data = gzip.open(ROOT / "examples/data/mnist" / name).read()
    return np.frombuffer(data, np.uint8, offset=header)


def blocks(case, first):
    """What is added to the noise of images: a colour for each block of pixels, so that no two look alike."""
    size, (height, width, channels), block = case["batch_size"], case["input_shape"], case["data"]["block"]
    high, wide = math.ceil(height / block), math.ceil(width / block)
    colours = values(1003, (size, high, wide, channels), 1.0, first * high * wide * channels)
    large = colours.repeat(block, axis=1).repeat(block, axis=2)[:, :height, :width]
    return large.reshape(size, -1)


def batch(case, step):
    """Features and labels (or targets) of one batch, as float32 and int64 (or float32)."""
    size, features = case["batch_size"], math.prod(case["input_shape"])
    first = step * size
    if case["data"]["source"] == "mnist":
        images = idx("train-images-idx3-ubyte.gz", 16).reshape(-1, 784)[first : first + size]
        labels = idx("train-labels-idx1-ubyte.gz", 8)[first : first + size]
        return images.astype(np.float32) * np.float32(1 / 255), labels.astype(np.int64)
    x = values(1000, (size, features), 1.0, first * features)
    if "block" in case["data"]:
        x = x * np.float32(0.25) + blocks(case, first)
    if case["loss"] == "ssd":
        return x, case["data"]["objects"][first : first + size]
    count = case["label_count"]
    if case["loss"] != "softmax_cross_entropy":
        targets = values(1002, (size, count), 1.0, first * count)
        kind = case["data"].get("targets")
        if kind == "binary":
            targets = (targets > 0).astype(np.float32)
        elif kind == "counts":
            targets = np.floor(2 * (targets + 1))
        return x, targets
    drawn = mixed(1001, np.arange(first, first + size)) >> np.uint64(40)
    return x, (drawn % np.uint64(count)).astype(np.int64)


# The model, interpreted from the same description that the C++ test reads.


def activation(name, x):
    return {"linear": lambda v: v, "relu": F.relu, "relu6": F.relu6, "sigmoid": torch.sigmoid}[name](x)


def padded(layer, x, value=0.0):
    """[n, height, width, channels] as PyTorch has it, [n, channels, height, width], with TensorFlow's zeros."""
    x = x.movedim(-1, 1) if x.dim() == 4 else x.unsqueeze(1)
    if layer["padding"] == "valid":
        return x
    edges = []
    for size, window, stride in zip(x.shape[2:], layer["size"], layer["strides"]):
        zeros = max(0, (math.ceil(size / stride) - 1) * stride + window - size)
        edges = [zeros // 2, zeros - zeros // 2, *edges]
    return F.pad(x, edges, value=value)


def convolved(layer, parameters, x):
    kernel = parameters[layer["name"] + "/kernel"]
    if layer["kind"] == "conv2d":
        y = F.conv2d(padded(layer, x), kernel.permute(3, 2, 0, 1), stride=layer["strides"])
    else:
        y = F.conv2d(padded(layer, x), kernel.permute(2, 3, 0, 1), stride=layer["strides"],
                     groups=x.shape[-1])
    y = y.movedim(1, -1)
    if layer.get("use_bias", True):
        y = y + parameters[layer["name"] + "/bias"]
    return activation(layer["activation"], y)


def pooled(layer, x):
    if layer["kind"] == "maxPool":
        return F.max_pool2d(padded(layer, x, -math.inf), layer["size"], layer["strides"]).movedim(1, -1)
    mean = [F.avg_pool2d(padded(layer, v), layer["size"], layer["strides"])
            for v in (x, torch.ones_like(x))]
    return (mean[0] / mean[1]).movedim(1, -1)


def normalized(layer, parameters, x):
    """By the formula: PyTorch's own batch normalization loses three digits more in float32."""
    places = tuple(range(x.dim() - 1))
    mean = x.mean(places)
    variance = ((x - mean) ** 2).mean(places)
    gamma, beta = (parameters[f"{layer['name']}/{name}"] for name in ("gamma", "beta"))
    return (x - mean) / torch.sqrt(variance + layer["epsilon"]) * gamma + beta


def forward(case, parameters, x):
    outputs = {"input": x}
    last = "input"
    for layer in case["layers"]:
        name, inputs = layer["name"], [outputs[i] for i in layer.get("inputs", [last])]
        if layer["kind"] in ("conv2d", "depthwiseConv2d"):
            y = convolved(layer, parameters, inputs[0])
        elif layer["kind"] in ("maxPool", "averagePool"):
            y = pooled(layer, inputs[0])
        elif layer["kind"] == "globalAveragePool":
            y = inputs[0].mean(dim=(1, 2))
        elif layer["kind"] == "dense":
            y = inputs[0].flatten(1) @ parameters[name + "/kernel"]
            if layer.get("use_bias", True):
                y = y + parameters[name + "/bias"]
            y = activation(layer["activation"], y)
        elif layer["kind"] == "activation":
            y = activation(layer["activation"], inputs[0])
        elif layer["kind"] == "batchNormalization":
            y = normalized(layer, parameters, inputs[0])
        elif layer["kind"] == "add":
            y = sum(inputs)
        elif layer["kind"] == "flatten":
            y = inputs[0].flatten(1)
        else:
            y = torch.cat(inputs, dim=-1)
        outputs[name] = y
        last = name
    return outputs[last]


def loss_of(case, outputs, labels):
    if case["loss"] == "ssd":
        return ssd_reference.loss(outputs, labels, case["label_count"], case["input_shape"])
    if case["loss"] == "mean_squared_error":
        return F.mse_loss(outputs, labels)
    if case["loss"] == "huber":
        return F.huber_loss(outputs, labels, delta=case["delta"])
    if case["loss"] == "binary_cross_entropy":
        weight = torch.tensor(case["positive_weight"], dtype=outputs.dtype)
        return F.binary_cross_entropy_with_logits(outputs, labels, pos_weight=weight)
    if case["loss"] == "poisson":
        return F.poisson_nll_loss(outputs, labels, log_input=True)
    if case["loss"] == "quantile":  # PyTorch has none
        above = labels - outputs
        return torch.maximum(case["quantile"] * above, (case["quantile"] - 1) * above).mean()
    return F.cross_entropy(outputs, labels)


class Lamb:
    """Algorithm 2 of You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes"
    (ICLR 2020, arXiv:1904.00962v5), line by line with phi(z) = z; torch.optim has none. As everywhere here,
    only kernels are decayed. A norm of 0 gives the ratio 1, as in the authors' code."""

    param_groups = ()

    def __init__(self, parameters, rate, betas, epsilon, weight_decay):
        self.rate, self.betas, self.epsilon = rate, betas, epsilon
        self.tensors = [(p, weight_decay if name.endswith("/kernel") else 0.0,
                         torch.zeros_like(p), torch.zeros_like(p)) for name, p in parameters.items()]
        self.t = 0

    def zero_grad(self):
        for x, *_ in self.tensors:
            x.grad = None

    @torch.no_grad()
    def step(self):
        self.t += 1
        beta1, beta2 = self.betas
        for x, weight_decay, m, v in self.tensors:
            g = x.grad
            m.copy_(beta1 * m + (1 - beta1) * g)
            v.copy_(beta2 * v + (1 - beta2) * g * g)
            r = m / (1 - beta1**self.t) / (torch.sqrt(v / (1 - beta2**self.t)) + self.epsilon)
            direction = r + weight_decay * x
            norms = x.norm().item(), direction.norm().item()
            ratio = norms[0] / norms[1] if norms[0] > 0 and norms[1] > 0 else 1.0
            x -= self.rate * ratio * direction


class RmsProp:
    """tf.compat.v1.train.RMSPropOptimizer, as TensorFlow's kernel ApplyRMSProp computes it: the mean square
    starts at 1, and epsilon is added before the root. torch.optim's is another."""

    param_groups = ()

    def __init__(self, parameters, rate, decay, momentum, epsilon):
        self.rate, self.decay, self.momentum, self.epsilon = rate, decay, momentum, epsilon
        self.tensors = [(p, torch.ones_like(p), torch.zeros_like(p)) for p in parameters.values()]

    def zero_grad(self):
        for x, *_ in self.tensors:
            x.grad = None

    @torch.no_grad()
    def step(self):
        for x, square, velocity in self.tensors:
            square.copy_(self.decay * square + (1 - self.decay) * x.grad * x.grad)
            velocity.copy_(self.momentum * velocity + self.rate * x.grad / torch.sqrt(square + self.epsilon))
            x -= velocity


def optimizer_of(spec, parameters):
    rate = spec["learning_rate"]
    if spec["name"] == "rmsprop":
        return RmsProp(parameters, rate, spec["decay"], spec["momentum"], spec["epsilon"])
    if spec["name"] == "sgd":
        return torch.optim.SGD(parameters.values(), lr=rate, momentum=spec.get("momentum", 0.0),
                               nesterov=spec.get("nesterov", False))
    betas = (spec["beta1"], spec["beta2"])
    if spec["name"] == "adam":
        return torch.optim.Adam(parameters.values(), lr=rate, betas=betas)
    if spec["name"] == "lamb":
        return Lamb(parameters, rate, betas, spec["epsilon"], spec["weight_decay"])
    kernels = [p for name, p in parameters.items() if name.endswith("/kernel")]
    others = [p for name, p in parameters.items() if not name.endswith("/kernel")]
    groups = [{"params": kernels, "weight_decay": spec["weight_decay"]},
              {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=betas)


def run(case, dtype):
    """Losses of the first batches, and the gradients of the first one."""
    parameters = {}
    for entry in case["parameters"]:
        if "constant" in entry:
            value = np.full(entry["shape"], entry["constant"], np.float32)
        else:
            value = values(entry["number"], entry["shape"], entry["limit"])
        parameters[entry["name"]] = torch.tensor(value, dtype=dtype, requires_grad=True)
    optimizer = optimizer_of(case["optimizer"], parameters)
    losses, gradients = [], {}
    for step in range(case.get("steps", STEPS)):
        x, labels = batch(case, step)
        x = torch.from_numpy(x).to(dtype).reshape(-1, *case["input_shape"])
        if isinstance(labels, np.ndarray):
            labels = torch.from_numpy(labels)
            labels = labels.to(dtype) if labels.is_floating_point() else labels
        optimizer.zero_grad()
        loss = loss_of(case, forward(case, parameters, x), labels)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            gradients = {n: p.grad.clone().double() for n, p in parameters.items()}
        if "beta2" in case["optimizer"]:  # Keras's: outside the bias correction
            correction = math.sqrt(1 - case["optimizer"]["beta2"] ** (step + 1))
            for group in optimizer.param_groups:
                group["eps"] = case["optimizer"]["epsilon"] / correction
        optimizer.step()
    return losses, gradients


def parameters_of(case, limits):
    """The parameters' entries in layer order; a kernel's limit is `limits` of (inputs, units)."""
    shape = case["input_shape"]
    shapes = {"input": shape if len(shape) != 2 else [*shape, 1]}
    last, entries = "input", []
    for layer in case["layers"]:
        name = layer["name"]
        inputs = [shapes[i] for i in layer.get("inputs", [last])]
        shape = list(inputs[0])
        if layer["kind"] == "concatenate":
            shape[-1] = sum(i[-1] for i in inputs)
        if "size" in layer:
            same = layer["padding"] == "same"
            shape[:2] = [math.ceil((n if same else n - size + 1) / stride)
                         for n, size, stride in zip(shape, layer["size"], layer["strides"])]
        width = math.prod(shape) if layer["kind"] == "dense" else shape[-1]
        if layer["kind"] in ("conv2d", "depthwiseConv2d"):
            filters = layer.get("filters", 1)
            window = math.prod(layer["size"])
            entries.append({"name": name + "/kernel", "shape": [*layer["size"], width, filters],
                            "number": len(entries), "limit": limits(window * width, window * filters)})
            width = layer.get("filters", width)
            if layer.get("use_bias", True):
                entries.append({"name": name + "/bias", "shape": [width],
                                "number": len(entries), "limit": layer.pop("bias_limit", 0.0)})
            shape[-1] = width
        elif layer["kind"] == "globalAveragePool":
            shape = [width]
        elif layer["kind"] == "dense":
            units = layer["units"]
            entries.append({"name": name + "/kernel", "shape": [width, units],
                            "number": len(entries), "limit": limits(width, units)})
            if layer.get("use_bias", True):
                entries.append({"name": name + "/bias", "shape": [units],
                                "number": len(entries), "limit": layer.pop("bias_limit", 0.0)})
            shape = [units]
        elif layer["kind"] == "flatten":
            shape = [math.prod(shape)]
        elif layer["kind"] == "batchNormalization":
            entries.append({"name": name + "/gamma", "shape": [width], "constant": case.get("gamma", 1.0)})
            entries.append({"name": name + "/beta", "shape": [width], "constant": case.get("beta", 0.0)})
        shapes[name] = shape
        last = name
    return entries


def glorot(inputs, units):
    return math.sqrt(6 / (inputs + units))


def unit_variance(inputs, units):
    return math.sqrt(3)


def window(name, kind, size, stride, padding, **more):
    return {"name": name, "kind": kind, "size": [size, size], "strides": [stride, stride], "padding": padding,
            **more}


def convolution(name, filters, size, stride, padding, function="linear", **more):
    return window(name, "conv2d", size, stride, padding, filters=filters, activation=function, **more)


def depthwise(name, size, stride, padding, function="linear", **more):
    return window(name, "depthwiseConv2d", size, stride, padding, activation=function, **more)


def dense(name, units, function="linear", **more):
    return {"name": name, "kind": "dense", "units": units, "activation": function, **more}


def ssd():
    """A quarter of SSD MobileNet v1, at 160 x 160; every convolution has at least 16 filters. Most rectifiers begin
    where they are linear: with gamma 1 and beta 0 the gradients of so many layers in a row lose too many digits."""
    layers, grids = [], []

    def normalized(layer):
        layers.extend([layer, {"name": layer["name"] + "_normalization", "kind": "batchNormalization",
                               "momentum": 0.9997, "epsilon": 1e-3},
                       {"name": layer["name"] + "_relu6", "kind": "activation", "activation": "relu6"}])

    def filters(count):
        return max(16, count // 4)

    normalized(convolution("Conv2d_0", filters(32), 3, 2, "same", use_bias=False))
    for i, (count, stride) in enumerate(ssd_reference.BLOCKS):
        normalized(depthwise(f"Conv2d_{i + 1}_depthwise", 3, stride, "same", use_bias=False))
        normalized(convolution(f"Conv2d_{i + 1}_pointwise", filters(count), 1, 1, "same", use_bias=False))
        if i + 1 in (11, 13):
            grids.append(layers[-1]["name"])
    for i, count in enumerate(ssd_reference.EXTRAS):
        name = f"Conv2d_{i + 2}"
        normalized(convolution(f"Conv2d_13_pointwise_1_{name}_1x1_{count // 2}", filters(count // 2), 1, 1,
                               "same", use_bias=False))
        normalized(convolution(f"Conv2d_13_pointwise_2_{name}_3x3_s2_{count}", filters(count), 3, 2, "same",
                               use_bias=False))
        grids.append(layers[-1]["name"])
    classes, flat = 3, {"boxes": [], "classes": []}
    for i, grid in enumerate(grids):
        anchors = 3 if i == 0 else 6
        for part, width in (("boxes", 4), ("classes", classes + 1)):
            name = f"BoxPredictor_{i}_{part}"
            layers.append(convolution(name, anchors * width, 1, 1, "same", inputs=[grid], bias_limit=0.1))
            layers.append({"name": name + "_flat", "kind": "flatten"})
            flat[part].append(name + "_flat")
    layers.append({"name": "predictions", "kind": "concatenate", "inputs": flat["boxes"] + flat["classes"]})
    batch_size, steps = 8, 20
    random = np.random.default_rng(17)
    objects = [[ssd_reference.random_object(random, classes) for _ in range(random.integers(0, 4))]
               for _ in range(batch_size * steps)]
    return {"format": 1, "name": "ssd-mobilenet-v1", "catalogue": {"classes": classes, "depth_multiplier": 0.25},
            "gamma": 0.6, "beta": 1.2, "input_shape": [160, 160, 3], "label_count": classes, "loss": "ssd", "layers": layers,
            "optimizer": {"name": "rmsprop", "learning_rate": 0.001, "decay": 0.9, "momentum": 0.9,
                          "epsilon": 1.0},
            "batch_size": batch_size, "steps": steps, "tolerance": 1e-4,
            "data": {"source": "generated", "block": 40, "objects": objects}}


ADAM = {"name": "adam", "learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}
MNIST = {"input_shape": [784], "label_count": 10, "loss": "softmax_cross_entropy",
         "data": {"source": "mnist"}}


def mnist(name, layers, optimizer, batch_size=32):
    return {"format": 1, "name": name, **MNIST, "layers": layers, "optimizer": optimizer,
            "batch_size": batch_size}


def cases():
    mlp = [dense("hidden_1", 256, "relu"), dense("hidden_2", 256, "relu"), dense("logits", 10)]
    small = [dense("hidden", 64, "relu"), dense("logits", 10)]
    yield mnist("mnist-mlp", mlp, ADAM), glorot
    sigmoid = [dense("hidden", 100, "sigmoid", bias_limit=math.sqrt(3)),
               dense("logits", 10, bias_limit=math.sqrt(3))]
    yield mnist("mnist-sigmoid", sigmoid, {"name": "sgd", "learning_rate": 0.001}, 100), unit_variance
    custom = [dense("hidden_1", 128, "relu"), dense("hidden_2", 64, "sigmoid"), dense("logits", 10)]
    yield mnist("custom-network", custom, ADAM, 50), glorot
    momentum = {"name": "sgd", "learning_rate": 0.05, "momentum": 0.9, "nesterov": True}
    yield mnist("momentum", small, momentum), glorot
    yield mnist("adamw", small, {**ADAM, "name": "adamw", "weight_decay": 0.01}), glorot
    lamb = {**ADAM, "name": "lamb", "learning_rate": 0.02, "weight_decay": 0.1}
    yield mnist("lamb", [dense("hidden", 64, "relu", bias_limit=0.1), dense("logits", 10)], lamb), glorot
    rmsprop = {"name": "rmsprop", "learning_rate": 0.01, "decay": 0.9, "momentum": 0.9, "epsilon": 0.1}
    yield mnist("rmsprop", small, rmsprop), glorot
    yield {"format": 1, "name": "linear-regression", "input_shape": [1], "label_count": 1,
           "loss": "mean_squared_error", "layers": [dense("line", 1, bias_limit=0.5)],
           "optimizer": {"name": "sgd", "learning_rate": 0.01}, "batch_size": 32,
           "data": {"source": "generated"}}, unit_variance
    yield {"format": 1, "name": "huber", "input_shape": [12], "label_count": 3, "loss": "huber",
           "delta": 0.5, "layers": [dense("hidden", 16, "relu"), dense("out", 3, bias_limit=0.5)],
           "optimizer": {"name": "sgd", "learning_rate": 0.05}, "batch_size": 32,
           "data": {"source": "generated"}}, glorot
    for name, targets, settings in [("binary_cross_entropy", "binary", {"positive_weight": 2.5}),
                                    ("poisson", "counts", {}), ("quantile", None, {"quantile": 0.8})]:
        yield {"format": 1, "name": name.replace("_", "-"), "input_shape": [12], "label_count": 3, "loss": name,
               **settings, "steps": 20,
               "layers": [dense("hidden", 16, "relu"), dense("out", 3, bias_limit=0.5)],
               "optimizer": {"name": "sgd", "learning_rate": 0.05}, "batch_size": 32,
               "data": {"source": "generated", **({"targets": targets} if targets else {})}}, glorot
    cnn = [convolution("convolution_1", 8, 3, 1, "valid", "relu"),
           convolution("convolution_2", 16, 3, 1, "valid", "relu"), window("pool", "maxPool", 2, 2, "valid"),
           dense("hidden", 32, "relu"), dense("logits", 10)]
    yield {**mnist("mnist-cnn", cnn, ADAM), "input_shape": [28, 28]}, glorot
    norm = {"kind": "batchNormalization", "momentum": 0.99, "epsilon": 1e-3}
    relu6 = {"kind": "activation", "activation": "relu6"}
    # A small MobileNet with what TensorFlow's padding makes of even sizes, and pools.
    yield {"format": 1, "name": "images", "input_shape": [14, 12, 3], "label_count": 4,
           "loss": "softmax_cross_entropy",
           "layers": [
               convolution("first", 8, 3, 2, "same", use_bias=False),
               {"name": "first_norm", **norm}, {"name": "first_relu", **relu6},
               depthwise("depthwise_1", 3, 1, "same", use_bias=False),
               {"name": "depthwise_1_norm", **norm}, {"name": "depthwise_1_relu", **relu6},
               convolution("pointwise_1", 12, 1, 1, "same", "relu6", bias_limit=0.1),
               window("mean", "averagePool", 3, 1, "same"),
               {"name": "sum", "kind": "add", "inputs": ["mean", "pointwise_1"]},
               depthwise("depthwise_2", 3, 2, "same", bias_limit=0.1),
               window("largest", "maxPool", 2, 1, "same"),
               {"name": "pooled", "kind": "globalAveragePool"},
               dense("logits", 4)],
           "optimizer": {**ADAM, "learning_rate": 0.001}, "batch_size": 32,
           "data": {"source": "generated"}}, glorot
    # Every convolution is normalized, and one has two readers, as in a detector.
    def normalized(layer):
        return [layer, {"name": layer["name"] + "_norm", **norm}, {"name": layer["name"] + "_relu", **relu6}]

    yield {"format": 1, "name": "normalized", "input_shape": [17, 18, 3], "label_count": 5,
           "loss": "softmax_cross_entropy",
           "layers": [
               *normalized(convolution("first", 24, 3, 2, "same", use_bias=False)),
               *normalized(depthwise("depthwise_1", 3, 1, "same", use_bias=False)),
               *normalized(convolution("pointwise_1", 40, 1, 1, "same", use_bias=False)),
               *normalized(depthwise("depthwise_2", 3, 2, "same", use_bias=False)),
               *normalized(convolution("pointwise_2", 32, 1, 1, "same", use_bias=False)),
               *normalized(convolution("extra", 16, 3, 2, "same", use_bias=False)),
               convolution("head", 6, 1, 1, "same", inputs=["pointwise_2_relu"], bias_limit=0.1),
               {"name": "head_mean", "kind": "globalAveragePool"},
               convolution("extra_head", 6, 1, 1, "same", inputs=["extra_relu"], bias_limit=0.1),
               {"name": "extra_mean", "kind": "globalAveragePool"},
               {"name": "sides", "kind": "concatenate", "inputs": ["head_mean", "extra_mean"]},
               dense("logits", 5)],
           "optimizer": ADAM, "batch_size": 16, "data": {"source": "generated"}}, glorot
    # He's limits. A depthwise kernel has 9 inputs, and 9 * 1 is what it is called with as units.
    yield ssd(), lambda inputs, units: math.sqrt(6 / min(inputs, units) if units == 9 else 6 / inputs)
    yield {"format": 1, "name": "branches", "input_shape": [24], "label_count": 5,
           "loss": "softmax_cross_entropy",
           "layers": [
               dense("left", 16, "relu", inputs=["input"], bias_limit=0.1),
               {"name": "left_norm", **norm},
               dense("right", 16, inputs=["input"], use_bias=False),
               {"name": "right_norm", **norm},
               {"name": "right_relu", "kind": "activation", "activation": "relu"},
               {"name": "sum", "kind": "add", "inputs": ["left_norm", "right_relu"]},
               {"name": "side", "kind": "concatenate", "inputs": ["sum", "right_norm"]},
               dense("logits", 5)],
           "optimizer": {**ADAM, "learning_rate": 0.01}, "batch_size": 32,
           "data": {"source": "generated"}}, glorot


def main():
    torch.set_num_threads(1)
    folder = ROOT / "tests/fixtures/pytorch"
    for case, limits in cases():
        if sys.argv[1:] and case["name"] not in sys.argv[1:]:
            continue
        case["parameters"] = parameters_of(case, limits)
        case["losses"], _ = run(case, torch.float32)
        case["losses_float64"], gradients = run(case, torch.float64)
        case["gradients"] = [
            {"name": name, "norm": g.norm().item(), "first": g.flatten()[:16].tolist()}
            for name, g in gradients.items()]
        (folder / (case["name"] + ".json")).write_text(json.dumps(case, indent=1) + "\n")
        apart = max(abs(a / b - 1) for a, b in zip(case["losses"], case["losses_float64"]))
        print(f"{case['name']}: losses {case['losses'][0]:.6f} .. {case['losses'][-1]:.6f}, "
              f"float32 and float64 at most {apart:.1e} apart")


if __name__ == "__main__":
    main()
