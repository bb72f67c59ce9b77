#!/usr/bin/env python3
"""Writes tests/fixtures/checkpoints/: checkpoints that TensorFlow itself has saved (README.md there).

The names are those of the TF Object Detection API's ssd_mobilenet_v1, here with depth_multiplier 0.0625 and one
class. Element i of a variable is ((s + 31 i) mod 251 - 125) / 64, where s is the sum of the bytes of its name.
"""
import pathlib
import sys

import numpy as np
import tensorflow as tf

DEPTH = 0.0625
BLOCKS = [64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024]
EXTRAS = [512, 256, 256, 128]
ANCHORS = [3, 6, 6, 6, 6, 6]
FEATURES = "FeatureExtractor/MobilenetV1/"


def depth(filters):
    return max(int(filters * DEPTH), 16)


def normalized(name, shape, filters, depthwise=False):
    yield f"{name}/{'depthwise_weights' if depthwise else 'weights'}", shape
    for statistic in ("gamma", "beta", "moving_mean", "moving_variance"):
        yield f"{name}/BatchNorm/{statistic}", [filters]


def variables():
    yield from normalized(FEATURES + "Conv2d_0", [3, 3, 3, depth(32)], depth(32))
    channels = depth(32)
    maps = []
    for i, filters in enumerate(BLOCKS, 1):
        yield from normalized(f"{FEATURES}Conv2d_{i}_depthwise", [3, 3, channels, 1], channels, depthwise=True)
        yield from normalized(f"{FEATURES}Conv2d_{i}_pointwise", [1, 1, channels, depth(filters)], depth(filters))
        channels = depth(filters)
        if i in (11, 13):
            maps.append(channels)
    for i, filters in enumerate(EXTRAS, 2):
        name = FEATURES + "Conv2d_13_pointwise"
        narrow, wide = depth(filters // 2), depth(filters)
        yield from normalized(f"{name}_1_Conv2d_{i}_1x1_{narrow}", [1, 1, channels, narrow], narrow)
        yield from normalized(f"{name}_2_Conv2d_{i}_3x3_s2_{wide}", [3, 3, narrow, wide], wide)
        channels = wide
        maps.append(channels)
    for i, (channels, anchors) in enumerate(zip(maps, ANCHORS)):
        for head, outputs in (("BoxEncodingPredictor", 4 * anchors), ("ClassPredictor", 2 * anchors)):
            yield f"BoxPredictor_{i}/{head}/weights", [1, 1, channels, outputs]
            yield f"BoxPredictor_{i}/{head}/biases", [outputs]


def values(name, shape):
    count = int(np.prod(shape, dtype=np.int64))
    return (((sum(name.encode()) + 31 * np.arange(count)) % 251 - 125) / 64).astype(np.float32).reshape(shape)


def save(prefix, tensors):
    names = list(tensors)
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names),
                      tensors=[tf.constant(tensors[name]) for name in names])


def detector(folder):
    """Everything that a training saves, in two files of data."""
    tensors = {name: values(name, shape) for name, shape in variables()}
    first = FEATURES + "Conv2d_0/weights"
    for name in (first, "BoxPredictor_0/ClassPredictor/biases"):
        shadow = name + "/ExponentialMovingAverage"
        tensors[shadow] = values(shadow, tensors[name].shape)
    for slot in ("/RMSProp", "/RMSProp_1"):
        tensors[first + slot] = np.ones_like(tensors[first])
    tensors["global_step"] = np.array(1234, np.int64)
    names = sorted(tensors)
    parts = [folder / "part-0", folder / "part-1"]
    for part, some in zip(parts, (names[: len(names) // 2], names[len(names) // 2:])):
        save(part, {name: tensors[name] for name in some})
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[str(part) for part in parts],
                                  destination_prefix=str(folder / "model.ckpt"), delete_old_dirs=False)


def kinds(folder):
    """What Muster cannot take: other types; and what it can: a scalar, an empty tensor, an object-based name."""
    save(folder / "kinds.ckpt", {
        "half": np.array([1, 2], np.float16), "integer": np.array([1, 2], np.int32),
        "scalar": np.array(0.5, np.float32), "empty": np.zeros([0, 3], np.float32),
        "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE": values("kernel", [2, 3])})


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/fixtures/checkpoints")
    folder.mkdir(parents=True, exist_ok=True)
    detector(folder)
    kinds(folder)


if __name__ == "__main__":
    main()
