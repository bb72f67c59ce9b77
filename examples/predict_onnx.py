"""Prints the probabilities of the classes of a picture: predict_onnx.py model.onnx picture.png

Needs numpy, onnxruntime and Pillow, and nothing of Muster.
"""

import json
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps


def resize(pixels, height, width):
    """As Muster: bilinear between the centers of pixels (tf.image.resize), a half is rounded up."""

    def blend(values, to, axis):
        size = np.float32(values.shape[axis])
        exact = (np.arange(to, dtype=np.float32) + np.float32(0.5)) * (size / np.float32(to)) - np.float32(0.5)
        lower, upper = (
            values.take(np.clip(place, 0, size - 1).astype(int), axis) for place in (np.floor(exact), np.ceil(exact))
        )
        weight = np.expand_dims(exact - np.floor(exact), tuple(i for i in range(values.ndim) if i != axis))
        return lower + (upper - lower) * weight

    return (blend(blend(pixels.astype(np.float32), width, 1), height, 0) + np.float32(0.5)).astype(np.uint8)


model = onnxruntime.InferenceSession(sys.argv[1])
_, height, width, *channels = model.get_inputs()[0].shape  # models of MNIST have no axis of channels
image = ImageOps.exif_transpose(Image.open(sys.argv[2])).convert("RGB" if channels == [3] else "L")
pixels = resize(np.asarray(image), height, width).reshape(1, height, width, *channels)
(probabilities,) = model.run(["probabilities"], {"input": pixels})
print(json.loads(model.get_modelmeta().custom_metadata_map["classes"]), probabilities)
