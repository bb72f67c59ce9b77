"""The rows of tables: how fast files become batches, a step, memory, and what `muster data suggest` is worth."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import muster

FOLDER = muster.ROOT / "build/bench/tables"
PEERS = muster.ROOT / "tests/bench/peers"


def peer(program, *arguments):
    """The line of JSON of a program of peers/."""
    return json.loads(muster.call([sys.executable, PEERS / program, *arguments]).splitlines()[-1])


def columns(first, last):
    return [f"column{i}" for i in range(first, last + 1)]


CRITEO = {"header": False, "target": {"column": "column1", "kind": "number"},
          "features": [{"columns": columns(2, 14), "kind": "number", "transform": "log"},
                       {"columns": columns(15, 40), "kind": "category", "mostValues": 10}]}


class Input:
    """Samples for each CPU second, from a file of Criteo's shape to batches; `by` ours or one of table_input.py's."""

    def __init__(self, ending, by=None):
        self.file, self.by = FOLDER / f"criteo.{ending}", by
        self.name = {"pyarrow": "pyarrow to NumPy", "tensorflow": "tf.data, hashed"}.get(by, by)

    def measure(self):
        if not self.file.exists():
            muster.call([sys.executable, PEERS / "table_input.py", "--make", FOLDER])
        if self.by:
            return peer("table_input.py", "--by", self.by, self.file)["samplesPerSecond"]
        table = {**CRITEO, "files": str(self.file)}
        if self.file.suffix == ".parquet":
            del table["header"]
        answer = muster.call([muster.BIN / "bench_input", json.dumps({"table": table})])
        return json.loads(answer.splitlines()[-1])["samplesPerSecond"]


def numbers_file(rows, row_group):
    """A Parquet file of 30 random numbers and a target of 0 and 1, which the first of them decide."""
    file = FOLDER / f"numbers-{rows}.parquet"
    if not file.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        muster.call([sys.executable, PEERS / "torch_table.py", "--make", file, "--rows", rows, "--row-group", row_group])
    return file


def training(file, rows, epochs, **data):
    return {"model": {"layers": [{"dense": {"units": 128, "activation": "relu"}},
                                 {"dense": {"units": 64, "activation": "relu"}}, {"dense": {"units": 1}}],
                      "loss": "binaryCrossEntropy"},
            "data": {"train": {"table": {"files": str(file), "target": {"column": "target", "kind": "number"}},
                               "take": rows, **data}},
            "batchSize": 256, "epochs": epochs, "optimizer": {"name": "adam", "learningRate": 0.001},
            "checkpoint": {"everySeconds": None}, "seed": 1}


def steps_per_second():
    return muster.steps_per_second(training(numbers_file(51_200, 8_192), 51_200, 100))


# A file of four times as many bytes as the trainer may have of its own.
MEMORY_ROWS = 2_000_000
MEMORY_BOUND = 120_000_000


def peak_megabytes():
    """The peak of the memory that a training has of its own: RssAnon, which is all but pages of files, and those the
    system takes back. A limit of addresses (RLIMIT_DATA) would count what Arrow reserves and never uses."""
    file = numbers_file(MEMORY_ROWS, 65_536)
    if file.stat().st_size < 4 * MEMORY_BOUND:
        raise muster.Failed(f"{file}: expected at least {4 * MEMORY_BOUND} bytes, found {file.stat().st_size}")
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        manifest = pathlib.Path(folder) / "training.yaml"
        manifest.write_text(json.dumps(training(file, MEMORY_ROWS, 1, cache=False)))
        with open(pathlib.Path(folder) / "log", "w+") as log:
            trainer = subprocess.Popen(
                [muster.BIN / "muster-trainer", "--standalone", manifest, "--storage", folder], stdout=log, stderr=log)
            peak, status = 0, pathlib.Path(f"/proc/{trainer.pid}/status")
            while trainer.poll() is None:
                found = re.search(r"RssAnon:\s*(\d+) kB", status.read_text())
                peak = max(peak, int(found[1]) if found else 0)
                time.sleep(0.01)
            if trainer.returncode != 0:
                log.seek(0)
                raise muster.Failed(f"{manifest}: exit {trainer.returncode}\n{log.read()[-2000:]}")
    return peak * 1024 / 1e6


class Suggested:
    """The mean score of what `muster data suggest` writes, or of scikit-learn's regression."""

    def __init__(self, table, ours):
        self.table, self.ours, self.name = table, ours, "scikit-learn"

    def measure(self):
        return peer("table_suggest.py", self.table, *(["--muster", muster.BIN / "muster"] if self.ours else []))["score"]
