#!/usr/bin/env python3
"""Decoding and augmenting images for a detector by tf.data, one thread: parse, a random crop that shows enough of an
object, decoded from the JPEG without the rest (tf.image.decode_and_crop_jpeg), resized to 300 x 300, mirrored half
the time, scaled to -1..1. `--make FOLDER`, which it calls itself where there is nothing, writes the images that both
sides read: 64 JPEGs of 640 x 480 with three objects each, as TFRecords with a label map."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def make(folder):
    """Smooth colours with rectangles and some noise, so that a JPEG of quality 90 has about 100 KB."""
    import tensorflow as tf

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    with tf.io.TFRecordWriter(str(folder / "train-00000-of-00001.tfrecord")) as writer:
        for number in range(64):
            coarse = random.uniform(0, 255, (8, 10, 3)).astype(np.float32)
            image = tf.image.resize(coarse, (480, 640), method="bicubic").numpy()
            boxes = []
            for _ in range(3):
                top, left = random.uniform(0, 0.6, 2)
                height, width = random.uniform(0.15, 0.4, 2)
                image[int(top * 480) : int((top + height) * 480), int(left * 640) : int((left + width) * 640)] = (
                    random.uniform(0, 255, 3))
                boxes.append((top, left, top + height, left + width))
            image = np.clip(image + random.normal(0, 12, image.shape), 0, 255).astype(np.uint8)
            ymin, xmin, ymax, xmax = zip(*boxes)

            def floats(values):
                return tf.train.Feature(float_list=tf.train.FloatList(value=values))

            def integers(values):
                return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

            def text(values):
                return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))

            encoded = tf.io.encode_jpeg(image, quality=90).numpy()
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "image/encoded": text([encoded]), "image/format": text([b"jpeg"]),
                "image/filename": text([b"%d.jpg" % number]),
                "image/height": integers([480]), "image/width": integers([640]),
                "image/object/bbox/ymin": floats(ymin), "image/object/bbox/xmin": floats(xmin),
                "image/object/bbox/ymax": floats(ymax), "image/object/bbox/xmax": floats(xmax),
                "image/object/class/label": integers([1, 2, 3]),
                "image/object/class/text": text([b"a", b"b", b"c"])})).SerializeToString())
    (folder / "label_map.pbtxt").write_text(
        "".join(f"item {{ id: {i + 1} name: '{name}' }}\n" for i, name in enumerate("abc")))


def measure(folder):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    features = {"image/encoded": tf.io.FixedLenFeature([], tf.string)}
    for border in ("ymin", "xmin", "ymax", "xmax"):
        features[f"image/object/bbox/{border}"] = tf.io.VarLenFeature(tf.float32)

    def sample(record):
        parsed = tf.io.parse_single_example(record, features)
        borders = [tf.sparse.to_dense(parsed[f"image/object/bbox/{border}"])
                   for border in ("ymin", "xmin", "ymax", "xmax")]
        boxes = tf.stack(borders, axis=1)
        encoded = parsed["image/encoded"]
        shape = tf.io.extract_jpeg_shape(encoded)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            shape, boxes[None], min_object_covered=0.3, aspect_ratio_range=(0.5, 2.0), area_range=(0.1, 1.0))
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3, dct_method="INTEGER_FAST")
        image = tf.image.resize(image, (300, 300))
        image = tf.image.random_flip_left_right(image)
        return image * (2 / 255) - 1

    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    data = tf.data.TFRecordDataset(str(pathlib.Path(folder) / "train-00000-of-00001.tfrecord")).cache().repeat()
    data = iter(data.map(sample, num_parallel_calls=1).with_options(options))
    for _ in range(128):
        next(data)
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < 8:
        next(data)
        done += 1
    print(json.dumps({"imagesPerSecond": done / (time.perf_counter() - begin)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("folder")
    arguments = parser.parse_args()
    if arguments.make:
        make(arguments.folder)
        return
    if not (pathlib.Path(arguments.folder) / "label_map.pbtxt").exists():
        subprocess.run([sys.executable, __file__, "--make", arguments.folder], check=True)
    measure(arguments.folder)


if __name__ == "__main__":
    main()
