#!/usr/bin/env python3
"""Five-fold cross-validation, five times, of one of scikit-learn's tables: breast_cancer (AUC), wine (accuracy) or
diabetes (R2). `--muster BIN`: by what `muster data suggest` writes, without any change; else by scikit-learn's
logistic or ridge regression of standardized columns. Prints the mean of the 25 scores."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import numpy as np
from sklearn import datasets, linear_model, metrics, model_selection, pipeline, preprocessing


def by_sklearn(name, train, target, test):
    model = (linear_model.Ridge() if name == "diabetes" else linear_model.LogisticRegression(max_iter=1000))
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), model).fit(train, target)
    return model.predict_proba(test)[:, 1] if name == "breast_cancer" else model.predict(test)


def by_muster(program, columns, train, target, test):
    """Writes the rows as CSV, and runs the three commands of docs/guides/tables.md."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:

        def write(file, rows, targets):
            lines = [",".join(columns), *(",".join(map(repr, map(float, row))) + f",{value:g}"
                                          for row, value in zip(rows, targets))]
            (pathlib.Path(folder) / file).write_text("\n".join(lines) + "\n")

        def call(*arguments):
            done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"muster {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
            return done.stdout

        write("train.csv", train, target)
        write("test.csv", test, np.zeros(len(test)))
        call("data", "suggest", "train.csv", "--target", "target", "--output", "job.yaml")
        call("run", "job.yaml")
        lines = call("predict", "--checkpoint", "runs/train", "test.csv").splitlines()
        values = [dict(zip(lines[0].split(","), line.split(","))) for line in lines[1:]]
        chosen = "probability of 1" if len(set(target)) == 2 else "target"
        return np.array([float(value[chosen]) for value in values])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--muster")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("table", choices=["breast_cancer", "wine", "diabetes"])
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    table = getattr(datasets, f"load_{arguments.table}")()
    columns = [str(name).replace(" ", "_").replace("/", "_") for name in table.feature_names] + ["target"]
    score = {"breast_cancer": metrics.roc_auc_score, "wine": metrics.accuracy_score,
             "diabetes": metrics.r2_score}[arguments.table]
    split = model_selection.RepeatedKFold if arguments.table == "diabetes" else model_selection.RepeatedStratifiedKFold
    scores = []
    for train, test in split(n_splits=5, n_repeats=arguments.times, random_state=1).split(table.data, table.target):
        data = table.data[train], table.target[train], table.data[test]
        predicted = (by_muster(arguments.muster, columns, *data) if arguments.muster
                     else by_sklearn(arguments.table, *data))
        scores.append(score(table.target[test], predicted))
    print(json.dumps({"score": statistics.mean(scores)}))


if __name__ == "__main__":
    main()
