"""SSD MobileNet v1 with parameter servers: what they add to a step at 300 x 300 (27 MB of parameters, one ps and two
workers of a thread each, against two processes that train apart at the same time), and how well the example's
detector finds its digits."""

import concurrent.futures
import json
import pathlib
import tempfile

import muster

DIGITS = muster.ROOT / "build/bench/digits"
STEPS = 24


def training():
    if not (DIGITS / "label_map.pbtxt").exists():
        muster.call([muster.BIN / "muster", "data", "digits", "--output", DIGITS, "--train", 400,
                     "--validation", 24])
    source = {"tfRecord": {"files": str(DIGITS / "train-*-of-*.tfrecord"), "labels": "objects",
                           "labelMap": str(DIGITS / "label_map.pbtxt"), "imageSize": [300, 300],
                           "scale": 2 / 255, "offset": -1}}
    return {"model": {"name": "ssd-mobilenet-v1", "classes": 90}, "data": {"train": source}, "batchSize": 8,
            "steps": STEPS, "optimizer": {"name": "rmsprop", "learningRate": 0.0004, "momentum": 0.9, "epsilon": 1},
            "checkpoint": {"everySeconds": None}, "threads": 1, "seed": 1}


def together():
    """Seconds of a step of one ps, a chief and a worker."""
    manifest = {"apiVersion": "muster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "ssd"},
                "spec": {"training": training(), "replicaSpecs": {role: {"replicas": 1}
                                                                  for role in ("ps", "chief", "worker")}}}
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        file = pathlib.Path(folder) / "job.yaml"
        file.write_text(json.dumps(manifest))
        muster.call([muster.BIN / "muster", "run", file, "--directory", pathlib.Path(folder) / "run"])
        return json.loads((pathlib.Path(folder) / "run/summary.json").read_text())["secondsPerBatch"]


def apart(spec):
    """Seconds of a step of two processes that know nothing of each other."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        runs = [pool.submit(muster.standalone, spec) for _ in range(2)]
        return sum(run.result()["secondsPerBatch"] for run in runs) / 2


def exposed():
    step = together()
    return (step - apart(training())) / step


def precision():
    """COCO's mean average precision at IoU 0.5 of the detector that examples/ssd-mobilenet-v1.yaml trains, on its test
    set. The pictures are made as the example's first lines say."""
    pictures = muster.ROOT / "examples/data/digits"
    if not (pictures / "label_map.pbtxt").exists():
        muster.call([muster.BIN / "muster", "data", "digits", "--output", pictures, "--train", 10000])
    return muster.run_example("ssd-mobilenet-v1")["testAveragePrecision50"]
