#!/usr/bin/env python3
"""Writes tests/fixtures/images: small JPEGs and PNGs with the pixels that Pillow or TensorFlow reads from
them, and what TensorFlow makes of an image by resizing it and changing its colours; and
tests/fixtures/records: TFRecords as TensorFlow writes them. The READMEs beside them say what each file is.

    deploy/setup/python.sh && build/venv/bin/python tests/python/make_image_fixtures.py
"""

import io
import json
import os
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures"
HEIGHT, WIDTH = 19, 27  # no multiples of a JPEG's blocks


def picture(height=HEIGHT, width=WIDTH):
    """Smooth, so that JPEGs are small, and different in every corner and channel."""
    y, x = np.mgrid[0:height, 0:width] / (max(height, width) - 1)
    planes = [255 * x, 255 * y, 127 + 127 * np.cos(5 * x + 3 * y)]
    return np.stack(planes, axis=-1).round().clip(0, 255).astype(np.uint8)


def write(name, data, pixels):
    path = ROOT / "images" / name
    path.write_bytes(data)
    path.with_suffix(path.suffix + ".rgb").write_bytes(np.ascontiguousarray(pixels, np.uint8).tobytes())
    print(path.name, len(data), pixels.shape)


def jpeg(name, image, **options):
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", **options)
    read = Image.open(io.BytesIO(buffer.getvalue()))
    write(name, buffer.getvalue(), np.asarray(ImageOps.exif_transpose(read).convert("RGB")))


def png(name, data):
    write(name, data, tf.io.decode_png(data, channels=3).numpy())


def saved_png(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, "PNG", **options)
    return buffer.getvalue()


def interlaced_png(pixels):
    """Adam7, which neither Pillow nor TensorFlow writes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    passes = [(0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1)]
    rows = b""
    for top, down, left, right in passes:
        part = pixels[top::down, left::right]
        rows += b"".join(b"\0" + row.tobytes() for row in part if row.size)
    height, width = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def decoding():
    pixels = picture()
    rgb = Image.fromarray(pixels)
    jpeg("halved-chroma.jpg", rgb, quality=90, subsampling="4:2:0")
    jpeg("full-chroma.jpg", rgb, quality=90, subsampling="4:4:4")
    jpeg("progressive.jpg", rgb, quality=80, progressive=True)
    jpeg("coded-as-rgb.jpg", rgb, quality=80, keep_rgb=True)
    jpeg("grey.jpg", rgb.convert("L"), quality=90)
    cmyk = np.concatenate([255 - pixels, pixels[:, ::-1, :1] // 2], axis=-1)
    jpeg("cmyk.jpg", Image.fromarray(cmyk, "CMYK"), quality=90)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        jpeg(f"orientation-{orientation}.jpg", rgb, quality=85, exif=exif)
    png("rgb.png", saved_png(rgb))
    alpha = Image.fromarray(pixels[:, ::-1, 0])
    with_alpha = rgb.copy()
    with_alpha.putalpha(alpha)
    png("rgba.png", saved_png(with_alpha))
    png("grey.png", saved_png(rgb.convert("L")))
    grey_alpha = rgb.convert("L")
    grey_alpha.putalpha(alpha)
    png("grey-alpha.png", saved_png(grey_alpha))
    png("one-bit.png", saved_png(rgb.convert("1")))
    png("palette.png", saved_png(rgb.quantize(13)))
    png("palette-transparent.png", saved_png(rgb.quantize(13), transparency=3))
    png("interlaced.png", interlaced_png(pixels))
    deep = (pixels.astype(np.uint16) * 257 - 100 * (pixels > 100)).astype(np.uint16)
    png("rgb-16-bit.png", tf.io.encode_png(deep).numpy())
    png("grey-16-bit.png", tf.io.encode_png(deep[:, :, :1]).numpy())


def floats(values):
    return [round(float(v), 4) for v in np.ravel(values)]


def arithmetic():
    small = picture(7, 11)
    cases = [{"height": h, "width": w, "pixels": floats(tf.image.resize(small, [h, w]).numpy())}
             for h, w in [(7, 11), (3, 4), (14, 22), (1, 1), (20, 5), (9, 11)]]
    resized = {"height": 7, "width": 11, "from": small.ravel().tolist(), "cases": cases}
    (ROOT / "images/resize.json").write_text(json.dumps(resized) + "\n")

    random = np.random.default_rng(17)
    colours = random.integers(0, 256, (5, 6, 3)).astype(np.float32)
    colours[0, :4] = [[0, 0, 0], [255, 255, 255], [90, 90, 90], [255, 0, 0]]
    adjust = {"brightness": tf.image.adjust_brightness, "contrast": tf.image.adjust_contrast,
              "hue": tf.image.adjust_hue, "saturation": tf.image.adjust_saturation}
    amounts = {"brightness": [-0.12, 0.1], "contrast": [0.5, 1.4], "hue": [-0.2, 0.03, 0.5],
               "saturation": [0.5, 1.5, 0.0]}
    cases = []
    for name, function in adjust.items():
        for amount in amounts[name]:
            changed = tf.clip_by_value(function(colours / 255, amount) * 255, 0, 255).numpy()
            cases.append({"change": name, "amount": amount, "pixels": floats(changed)})
    changed = {"from": floats(colours), "cases": cases}
    (ROOT / "images/colours.json").write_text(json.dumps(changed) + "\n")


def feature(values):
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    if isinstance(values[0], int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def example(features):
    return tf.train.Example(features=tf.train.Features(
        feature={key: feature(values) for key, values in features.items()})).SerializeToString()


def records():
    image = (ROOT / "images/halved-chroma.jpg").read_bytes()
    first = {
        "image/encoded": [image], "image/format": [b"jpeg"], "image/filename": [b"first.jpg"],
        "image/source_id": [b"17"], "image/height": [HEIGHT], "image/width": [WIDTH],
        "image/key/sha256": [b"0123"],
        "image/object/bbox/ymin": [0.25, 0.0], "image/object/bbox/xmin": [0.5, 0.125],
        "image/object/bbox/ymax": [0.75, 1.0], "image/object/bbox/xmax": [1.0, 0.25],
        "image/object/class/label": [3, 1], "image/object/class/text": [b"dog", b"person"],
        "image/object/is_crowd": [0, 1], "image/object/difficult": [1, 0],
        "image/object/area": [64.5, 12.25],
    }
    without_boxes = {"image/encoded": [image], "image/height": [HEIGHT], "image/width": [WIDTH]}
    with tf.io.TFRecordWriter(str(ROOT / "records/detection.tfrecord")) as writer:
        writer.write(example(first))
        writer.write(example(without_boxes))
    with tf.io.TFRecordWriter(str(ROOT / "records/classification.tfrecord")) as writer:
        for label in [4, 0]:
            writer.write(example({"image/encoded": [image], "image/class/label": [label],
                                  "image/class/text": [f"class {label}".encode()]}))


def main():
    for folder in ("images", "records"):
        (ROOT / folder).mkdir(exist_ok=True)
    decoding()
    arithmetic()
    records()


if __name__ == "__main__":
    main()
