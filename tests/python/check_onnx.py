"""Runs the models that tests/integration/onnx/write_models exports as ONNX with onnxruntime, and compares the
outputs with those of `muster-trainer predict` for the same pictures. Run by ctest as onnx_python."""

import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
import tensorflow as tf

TOLERANCE = 1e-4  # of probabilities, scores and boxes, whose unit is the picture
PICTURES = 5
CLASSIFIERS = {"mnist-mlp": 10, "mnist-cnn": 10, "mobilenet-v1": 7, "layers": 5}
DETECTORS, DETECTOR_CLASSES = ["ssd-mobilenet-v1", "ssd-mobilenet-v1-softmax"], 3


def load(folder, name):
    """The model as onnxruntime runs it, and whole pictures of the size that it wants."""
    model = onnxruntime.InferenceSession(
        folder / name / "model" / "model.onnx", providers=["CPUExecutionProvider"]
    )
    (wanted,) = model.get_inputs()
    assert wanted.name == "input" and wanted.type == "tensor(uint8)", (wanted.name, wanted.type)
    assert json.loads(model.get_modelmeta().custom_metadata_map["classes"]) == ["first", "second"]
    shape = [PICTURES, *wanted.shape[1:]]
    pixels = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    for picture in range(PICTURES):  # smooth ones too
        pixels[picture, : shape[1] * picture // PICTURES] = 50 * picture
    return model, pixels


def write_pictures(folder, pixels):
    folder.mkdir()
    for number, picture in enumerate(pixels):
        tf.io.write_file(str(folder / f"{number}.png"), tf.io.encode_png(picture))


def predict(trainer, folder, name, pixels, pictures="pictures"):
    pictures = folder / name / pictures
    write_pictures(pictures, pixels)
    command = [trainer, "predict", "--checkpoint", folder / name / "model", pictures]
    done = subprocess.run(
        [*command, "--classes", "1000", "--score", "0"],
        check=True,
        timeout=120,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout)["predictions"]


def check_classifier(trainer, folder, name, classes):
    model, pixels = load(folder, name)
    (found,) = model.run(["probabilities"], {"input": pixels})
    assert found.shape == (PICTURES, classes), (name, found.shape)
    wanted = np.full(found.shape, np.nan)
    for row, prediction in enumerate(predict(trainer, folder, name, pixels)):
        for one in prediction["classes"]:
            wanted[row, one["label"]] = one["probability"]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE, err_msg=name)
    assert np.ptp(found, axis=0).max() > 10 * TOLERANCE, f"{name} says the same of all pictures"
    (one,) = model.run(["probabilities"], {"input": pixels[:1]})
    np.testing.assert_allclose(one, found[:1], rtol=0, atol=TOLERANCE)


def check_resizing(trainer, folder, name):
    """examples/predict_onnx.py resizes pictures as Muster does."""
    example = (pathlib.Path(__file__).parents[2] / "examples/predict_onnx.py").read_text()
    code = {"np": np}
    exec(re.search(r"^def resize.*?(?=^model)", example, re.DOTALL | re.MULTILINE).group(), code)
    model, pixels = load(folder, name)
    height, width = pixels.shape[1:3]
    random = np.random.default_rng(2)
    for number, size in enumerate([(2 * height + 3, width - 5), (height - 1, 3 * width), (height, width)]):
        picture = random.integers(0, 256, [*size, pixels.shape[3]], dtype=np.uint8)
        resized = code["resize"](picture, height, width)
        (found,) = model.run(["probabilities"], {"input": resized[None]})
        (prediction,) = predict(trainer, folder, name, [picture], f"resized-{number}")
        for one in prediction["classes"]:
            assert abs(found[0, one["label"]] - one["probability"]) < TOLERANCE, (size, one)


def check_detector(trainer, folder, name):
    model, pixels = load(folder, name)
    boxes, scores = model.run(["boxes", "scores"], {"input": pixels})
    anchors = boxes.shape[1]
    assert boxes.shape == (PICTURES, anchors, 4), boxes.shape
    assert scores.shape == (PICTURES, anchors, DETECTOR_CLASSES), scores.shape
    height, width = pixels.shape[1:3]
    unit = np.array([height, width, height, width])
    predictions = predict(trainer, folder, name, pixels)
    for row, prediction in enumerate(predictions):
        objects = prediction["objects"]
        assert len(objects) == 100, len(objects)
        clipped = np.clip(boxes[row], 0, 1)
        for one in objects:
            box = [one["box"][border] for border in ("ymin", "xmin", "ymax", "xmax")]
            distance = np.abs(clipped - np.array(box) / unit).max(axis=1)
            distance = np.maximum(distance, np.abs(scores[row, :, one["label"]] - one["score"]))
            assert distance.min() < TOLERANCE, (row, one, distance.min())
        for label in range(DETECTOR_CLASSES):  # the best of a class is never suppressed
            best = max((o["score"] for o in objects if o["label"] == label), default=None)
            visible = (clipped[:, 2] > clipped[:, 0]) & (clipped[:, 3] > clipped[:, 1])
            if best is not None:
                assert abs(scores[row, visible, label].max() - best) < TOLERANCE, (row, label)
    first, second = (p["objects"][0]["score"] for p in predictions[:2])
    assert abs(first - second) > TOLERANCE, "the detector says the same of all pictures"


TABLE = """
model: {{layers: [{{dense: {{units: 8, activation: relu}}}}, {{dense: {{units: {units}}}}}], loss: {loss}{options}}}
data:
  train:
    table:
      files: rows.csv
      features:
        - {{columns: [plain, gap], missing: flag, least: -1.5, most: 2.5}}
        - {{columns: [small], transform: minMax, missing: constant, constant: 0.25}}
        - {{columns: [large], transform: log}}
        - {{columns: [parts], transform: buckets, buckets: 5, missing: flag}}
        - {{columns: [vector], kind: vector}}
        - {{columns: [vector parts], kind: vector, transform: buckets, buckets: 3}}
        - {{columns: [colour], kind: category, mostValues: 3, spareValues: 2}}
        - {{columns: [nothing], kind: category, mostValues: 3}}
        - {{columns: [hashed], kind: category, hashBuckets: 4}}
      target: {target}
epochs: 3
"""
ROWS = 200


def table_rows():
    """Columns of raw cells: numbers with NaN, texts with empty ones, lists of numbers."""
    random = np.random.default_rng(3)
    gaps = lambda numbers: np.where(random.random(ROWS) < 0.1, np.nan, numbers)
    texts = lambda *names: random.choice(names, ROWS)
    return {
        "plain": random.normal(size=ROWS).round(3),
        "gap": gaps(random.normal(1e6, 3, ROWS)),
        "small": gaps(random.normal(size=ROWS).round(3)),
        "large": gaps(np.exp(random.normal(0, 5, ROWS)) * random.choice([1, -1], ROWS)),
        "parts": gaps(random.normal(size=ROWS).round(1)),
        "vector": random.normal(size=(ROWS, 3)).round(3),
        "vector parts": random.normal(size=(ROWS, 2)).round(1),
        "colour": texts("red", "blue", "grün", "rare, \"quoted\"", "other", ""),
        "nothing": texts(""),
        "hashed": texts("a", "b", ""),
        "price": random.normal(20, 3, ROWS).round(3),
        "area": np.exp(random.normal(0, 2, ROWS)),
        "kind": texts("x", "y", "z"),
    }


def write_table(path, columns):
    def cell(value):
        if isinstance(value, np.ndarray):
            return " ".join(map(repr, value.tolist()))
        return "" if isinstance(value, float) and np.isnan(value) else value

    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in range(ROWS):
            writer.writerow([cell(values[row]) for values in columns.values()])


def fnv(text):
    number = 0xCBF29CE484222325
    for byte in text.encode():
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return number


def check_table(trainer, folder, name, settings, output):
    """The exported model takes raw cells, and says what `predict` says of the same rows."""
    job, columns = folder / name, table_rows()
    job.mkdir()
    write_table(job / "rows.csv", columns)
    (job / "training.yaml").write_text(TABLE.format(**settings))
    training = [trainer, "--standalone", job / "training.yaml", "--storage", job]
    done = subprocess.run(training, check=True, timeout=60, cwd=job, capture_output=True, text=True)
    assert "takes the 4 inputs of the column hashed as numbers" in done.stderr, done.stderr
    model = onnxruntime.InferenceSession(job / "model/model.onnx", providers=["CPUExecutionProvider"])
    inputs = {}
    for wanted in model.get_inputs():
        cells = columns[wanted.name]
        if wanted.name == "hashed":
            inputs[wanted.name] = np.eye(4, dtype=np.float32)[[fnv(text) % 4 for text in cells]]
        elif wanted.type == "tensor(string)":
            inputs[wanted.name] = cells.astype(object).reshape(ROWS, 1)
        else:
            inputs[wanted.name] = cells.astype(np.float64).reshape(ROWS, -1)
    (found,) = model.run([output], inputs)
    predicting = [trainer, "predict", "--checkpoint", job / "model", job / "rows.csv"]
    done = subprocess.run(predicting, check=True, timeout=60, stdout=subprocess.PIPE, text=True)
    rows = list(csv.reader(done.stdout.splitlines()))
    wanted = np.array([row[-found.shape[1] :] for row in rows[1:]], dtype=np.float64)
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)
    assert np.ptp(found, axis=0).max() > 10 * TOLERANCE, f"{name} says the same of all rows"
    return rows[0]


def check_tables(trainer, folder):
    check_table(
        trainer,
        folder,
        "classes",
        {"units": 3, "loss": "softmaxCrossEntropy", "options": "", "target": "{column: kind}"},
        "probabilities",
    )
    numbers = {"units": 2, "options": "", "loss": "meanSquaredError"}
    for transform in ("standardize", "log"):
        target = f"{{columns: [price, area], transform: {transform}}}"
        check_table(trainer, folder, transform, {**numbers, "target": target}, "outputs")
    quantiles = {"units": 4, "loss": "quantile", "options": ", lossOptions: {quantiles: [0.1, 0.9]}"}
    target = "{columns: [price, area], transform: standardize}"
    names = check_table(trainer, folder, "quantiles", {**quantiles, "target": target}, "outputs")
    assert names[1:] == [f"quantile {q} of {t}" for q in (0.1, 0.9) for t in ("price", "area")], names


def main():
    writer, trainer = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="muster-onnx-") as name:
        folder = pathlib.Path(name)
        subprocess.run([writer, folder], check=True, timeout=60)
        for model, classes in CLASSIFIERS.items():
            check_classifier(trainer, folder, model, classes)
        check_resizing(trainer, folder, "mobilenet-v1")
        for model in DETECTORS:
            check_detector(trainer, folder, model)
        check_tables(trainer, folder)
    print("onnxruntime's outputs are those of muster-trainer predict")


if __name__ == "__main__":
    main()
