"""Reads what tests/integration/formats/write_formats writes with the libraries users will use:
safetensors, TensorBoard, TensorFlow. Run by ctest as formats_python."""

import hashlib
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors
import safetensors.numpy
import tensorflow as tf
from tensorboard.backend.event_processing import (
    data_provider,
    event_accumulator,
    event_file_loader,
    plugin_event_multiplexer,
)
from tensorboard.context import RequestContext

SHAPES = {
    "hidden/kernel": (7, 70),
    "hidden/bias": (70,),
    "temperature": (),
    "frozen/kernel": (3, 5),
    "norm/mean": (5,),
}
# Reverse-layer order, then the frozen and the state segment: what a digest covers.
ORDER = ["temperature", "hidden/bias", "hidden/kernel", "frozen/kernel", "norm/mean"]


def expected(name):
    count = math.prod(SHAPES[name])
    values = 1000 * ORDER.index(name) + 0.5 * np.arange(count, dtype=np.float32)
    return values.reshape(SHAPES[name]).astype("<f4")


def digest_of(tensors):
    digest = hashlib.sha256()
    for name in ORDER:
        digest.update(tensors[name].tobytes())
    return digest.hexdigest()


def crc32c(data):
    """Bit by bit, of no one's library."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def check_whole(tensors, prefix=""):
    assert set(tensors) == {prefix + name for name in SHAPES}, sorted(tensors)
    for name in SHAPES:
        found = tensors[prefix + name]
        assert found.dtype == np.float32 and found.shape == SHAPES[name], (name, found.shape)
        np.testing.assert_array_equal(found, expected(name))


def check_manifest(folder, step):
    text = (folder / "manifest.json").read_bytes()
    manifest = json.loads(text)
    assert manifest["position"]["step"] == step, manifest
    body = text[: text.rindex(b'"crc32c"')]
    assert manifest["crc32c"] == crc32c(body)
    for entry in manifest["files"]:
        data = (folder / entry["name"]).read_bytes()
        assert len(data) == entry["bytes"], entry
        assert crc32c(data) == entry["crc32c"], entry
    return manifest


def assemble(folder, kind):
    """Whole tensors from a kind's shards: every file by itself loads, slices say where rows belong."""
    whole = {}
    filled = {}
    for path in sorted(folder.glob(f"{kind}-*.safetensors")):
        with safetensors.safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
        for name, rows in safetensors.numpy.load_file(path).items():
            slice_ = json.loads(metadata.get("slice:" + name, "null"))
            shape = slice_["shape"] if slice_ else rows.shape
            whole.setdefault(name, np.full(shape, np.nan, np.float32))
            if slice_:
                first = slice_["first_row"]
                whole[name][first : first + len(rows)] = rows
            else:
                whole[name][...] = rows
            filled[name] = filled.get(name, 0) + rows.size
    for name, tensor in whole.items():
        assert filled[name] == tensor.size, name
    return whole


def check_index(folder):
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(4 * math.prod(s) for s in SHAPES.values())
    assert set(index["weight_map"]) == set(SHAPES)
    for name, file in index["weight_map"].items():
        assert name in safetensors.numpy.load_file(folder / file)
    return index


def check_checkpoints(root):
    one = root / "checkpoints" / "ckpt-1-g1"
    assert not check_manifest(one, 1)["slices"]
    check_whole(safetensors.numpy.load_file(one / "model-00000-of-00001.safetensors"))
    check_whole(safetensors.numpy.load_file(one / "optimizer-00000-of-00001.safetensors"), "m/")
    assert "slices" not in check_index(one)["metadata"]

    three = root / "checkpoints" / "ckpt-3-g1"
    manifest = check_manifest(three, 3)
    assert len(manifest["files"]) == 7  # three of each kind, and the index
    assert any(s["tensor"] == "hidden/kernel" for s in manifest["slices"])
    check_whole(assemble(three, "model"))
    check_whole(assemble(three, "optimizer"), "m/")
    assert "hidden/kernel" in check_index(three)["metadata"]["slices"]

    state = tf.train.get_checkpoint_state(str(root / "checkpoints"))
    assert state.model_checkpoint_path.endswith("/ckpt-3-g1"), state
    assert [pathlib.Path(p).name for p in state.all_model_checkpoint_paths] == [
        "ckpt-1-g1",
        "ckpt-3-g1",
    ]


def check_export(root, digest, program):
    path = root / "model" / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    check_whole(tensors)
    assert digest_of(tensors) == digest
    with safetensors.safe_open(path, "numpy") as file:
        assert json.loads(file.metadata()["training"]) == {"batchSize": 32}
    # And the other way: what Python writes, Muster reads.
    safetensors.numpy.save_file(tensors, root / "python.safetensors")
    assert run(program, "read", root / "python.safetensors") == digest


def check_events(root):
    (path,) = (root / "events").iterdir()
    events = list(event_file_loader.EventFileLoader(str(path)).Load())
    assert events[0].file_version == "brain.Event:2"
    assert len(events) == 1 + 53, len(events)

    reader = event_accumulator.EventAccumulator(
        str(root / "events"), size_guidance={event_accumulator.TENSORS: 0}  # keep all
    )
    reader.Reload()
    assert sorted(reader.Tags()["tensors"]) == ["pictures/0", "train/loss", "validation/accuracy"]
    loss = reader.Tensors("train/loss")
    assert [event.step for event in loss] == list(range(51))
    values = [tf.make_ndarray(event.tensor_proto).item() for event in loss]
    np.testing.assert_allclose(values[:50], [1 / (s + 1) for s in range(50)], rtol=1e-6)
    assert math.isnan(values[50])
    assert reader.SummaryMetadata("train/loss").plugin_data.plugin_name == "scalars"
    check_image(root)


def check_image(root):
    """As TensorBoard's image tab sees it."""
    runs = plugin_event_multiplexer.EventMultiplexer()
    runs.AddRunsFromDirectory(str(root / "events"))
    runs.Reload()
    provider = data_provider.MultiplexerDataProvider(runs, str(root / "events"))
    context = RequestContext()
    (tags,) = provider.read_blob_sequences(
        context, experiment_id="", plugin_name="images", downsample=10
    ).values()
    assert list(tags) == ["pictures/0"], tags
    (datum,) = tags["pictures/0"]
    assert datum.step == 50, datum
    width, height, png = (
        provider.read_blob(context, blob_key=value.blob_key) for value in datum.values
    )
    assert (width, height) == (b"5", b"3"), (width, height)
    pixels = tf.io.decode_png(png).numpy()
    np.testing.assert_array_equal(pixels.ravel(), 5 * np.arange(3 * 5 * 3))


def run(program, mode, path):
    done = subprocess.run(
        [program, mode, str(path)], check=True, timeout=60, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="muster-formats-") as name:
        root = pathlib.Path(name)
        digest = run(program, "write", root)
        assert digest == digest_of({name: expected(name) for name in ORDER})
        check_checkpoints(root)
        check_export(root, digest, program)
        check_events(root)
    print("safetensors, manifest, index, CheckpointState and events read back")


if __name__ == "__main__":
    main()
