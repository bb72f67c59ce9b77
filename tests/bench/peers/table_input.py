#!/usr/bin/env python3
"""From a file of Criteo's shape to batches of floats in NumPy, one thread: 13 numbers as their logarithms, a missing one
as the mean, and of 26 categories an input for each of the 10 most frequent values and one for all others, as
tests/bench/tables.py asks of Muster. Timed is all from the opening of the file to the last batch of the first epoch.

`--make FOLDER` writes the file as CSV and as Parquet: the label, numbers and categories of which some are missing, and
categories with a power law over as many different values as Criteo's columns have."""

import argparse
import json
import os
import pathlib
import time

ROWS = 500_000
NUMBERS = [f"column{i}" for i in range(2, 15)]
CATEGORIES = [f"column{i}" for i in range(15, 41)]
NAMES = ["column1", *NUMBERS, *CATEGORIES]
MOST_VALUES = 10
BATCH = 256
# How many different values each category of Criteo's sample has.
SIZES = [1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306, 10, 5652,
         2173, 4, 7046547, 18, 15, 286181, 105, 142572]
EXPONENT = 1.1


def make(folder):
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    random = np.random.default_rng(1)
    columns = [pa.array(random.random(ROWS) < 0.25).cast(pa.int8())]
    for i in range(len(NUMBERS)):
        numbers = np.floor(random.lognormal(1 + i % 5, 1.5, ROWS)).astype(np.int32) - (2 if i == 1 else 0)
        columns.append(pa.array(numbers, mask=random.random(ROWS) < 0.04 * i))
    for i, size in enumerate(SIZES):
        # The ranks by the inverse of the distribution function of a continuous power law.
        low = size ** (1 - EXPONENT)
        ranks = ((low - 1) * random.random(ROWS) + 1) ** (1 / (1 - EXPONENT))
        codes = (ranks.astype(np.uint64) * 2654435761 + i * 40503) % 2**32
        digits = np.frombuffer(codes.astype(">u4").tobytes().hex().encode(), "S8").astype("U8")
        columns.append(pa.array(digits, mask=random.random(ROWS) < (0.05 if i % 3 == 0 else 0)))
    table = pa.table(columns, names=NAMES)
    folder.mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(table, folder / "criteo.parquet", row_group_size=65_536)
    options = pa.csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    pa.csv.write_csv(table, folder / "criteo.tmp", options)
    (folder / "criteo.tmp").rename(folder / "criteo.csv")


def through_batches(inputs, labels):
    """Returns how many rows its batches have."""
    return sum(len(inputs[begin : begin + BATCH]) for begin in range(0, len(labels), BATCH))


def by_pyarrow(file):
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    import pyarrow.parquet

    pa.set_cpu_count(1)
    begin = time.process_time()
    if file.suffix == ".csv":
        types = {name: pa.dictionary(pa.int32(), pa.string()) for name in CATEGORIES}
        table = pa.csv.read_csv(
            file, pa.csv.ReadOptions(use_threads=False, column_names=NAMES), pa.csv.ParseOptions(delimiter="\t"),
            pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True))
    else:
        table = pa.parquet.read_table(file, use_threads=False, read_dictionary=CATEGORIES)
    rows, width = table.num_rows, MOST_VALUES + 1
    inputs = np.zeros((rows, len(NUMBERS) + width * len(CATEGORIES)), np.float32)
    for i, name in enumerate(NUMBERS):
        numbers = table[name].to_numpy().astype(np.float64)
        numbers[np.isnan(numbers)] = np.nanmean(numbers)
        inputs[:, i] = np.copysign(np.log1p(np.abs(numbers)), numbers)
    every_row = np.arange(rows)
    for i, name in enumerate(CATEGORIES):
        column = table[name].unify_dictionaries().combine_chunks()
        codes = column.indices.fill_null(len(column.dictionary)).to_numpy()
        counts = np.bincount(codes, minlength=len(column.dictionary) + 1)[:-1]
        most = np.argsort(-counts, kind="stable")[:MOST_VALUES]
        places = np.full(len(column.dictionary) + 1, MOST_VALUES, np.int32)
        places[most] = np.arange(len(most))
        inputs[every_row, len(NUMBERS) + i * width + places[codes]] = 1
    labels = pc.cast(table["column1"], pa.float32()).to_numpy()
    return through_batches(inputs, labels) / (time.process_time() - begin)


def by_pandas(file):
    import numpy as np
    import pandas as pd

    begin = time.process_time()
    if file.suffix == ".csv":
        types = {name: "str" for name in CATEGORIES}
        table = pd.read_csv(file, sep="\t", header=None, names=NAMES, dtype=types)
    else:
        table = pd.read_parquet(file)
    width = MOST_VALUES + 1
    inputs = np.zeros((len(table), len(NUMBERS) + width * len(CATEGORIES)), np.float32)
    for i, name in enumerate(NUMBERS):
        numbers = table[name].fillna(table[name].mean()).to_numpy(np.float64)
        inputs[:, i] = np.copysign(np.log1p(np.abs(numbers)), numbers)
    every_row = np.arange(len(table))
    for i, name in enumerate(CATEGORIES):
        most = table[name].value_counts().index[:MOST_VALUES]
        places = table[name].map({value: place for place, value in enumerate(most)}).fillna(MOST_VALUES).to_numpy(np.int32)
        inputs[every_row, len(NUMBERS) + i * width + places] = 1
    return through_batches(inputs, table["column1"].to_numpy(np.float32)) / (time.process_time() - begin)


def by_tensorflow(file):
    """Of a CSV; in place of a vocabulary, which takes a pass of its own, a hash, and 0 for a missing number."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    defaults = [[0.0]] * (1 + len(NUMBERS)) + [[""]] * len(CATEGORIES)

    def sample(lines):
        columns = tf.io.decode_csv(lines, defaults, field_delim="\t", use_quote_delim=False)
        numbers = tf.stack(columns[1 : 1 + len(NUMBERS)], axis=1)
        hashes = tf.strings.to_hash_bucket_fast(tf.stack(columns[1 + len(NUMBERS) :], axis=1), MOST_VALUES + 1)
        ones = tf.reshape(tf.one_hot(hashes, MOST_VALUES + 1), [-1, (MOST_VALUES + 1) * len(CATEGORIES)])
        return tf.concat([tf.sign(numbers) * tf.math.log1p(tf.abs(numbers)), ones], axis=1), columns[0]

    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    begin = time.process_time()
    data = tf.data.TextLineDataset(str(file)).batch(BATCH).map(sample).with_options(options)
    return sum(len(labels) for _, labels in data) / (time.process_time() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--by", choices=["pyarrow", "pandas", "tensorflow"])
    parser.add_argument("path", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.make:
        make(arguments.path)
        return
    measure = {"pyarrow": by_pyarrow, "pandas": by_pandas, "tensorflow": by_tensorflow}[arguments.by]
    print(json.dumps({"samplesPerSecond": measure(arguments.path)}))


if __name__ == "__main__":
    main()
