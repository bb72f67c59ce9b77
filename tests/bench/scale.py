"""The row ps-scale: the time of a synchronous step against the number of members and ps, on one
machine, and the model that explains it."""

import json
import os
import pathlib
import tempfile

import events
import muster

POINTS = [(1, 1), (2, 1), (4, 1), (8, 1), (16, 1), (2, 2), (2, 4), (2, 8), (8, 2), (8, 8)]
BEGIN, END = "<!-- ps-scale -->\n", "<!-- end of ps-scale -->"


def _manifest(members, shards):
    training = {
        "model": {"name": "mnist-mlp"}, "batchSize": 32, "seed": 1,
        "data": {"train": {"syntheticClasses": {"samples": 4096, "shape": [784], "classes": 10}}},
        "steps": max(600, 4800 // (members + shards)), "optimizer": {"name": "adam"},
        "checkpoint": {"everySeconds": None}, "summary": {"everySteps": 10}}
    roles = {"ps": shards, "chief": 1, "worker": members - 1}
    return {"apiVersion": "muster.dev/v1alpha1", "kind": "TrainingJob",
            "metadata": {"name": "scale"},
            "spec": {"training": training,
                     "replicaSpecs": {role: {"replicas": n} for role, n in roles.items() if n}}}


def _step(members, shards):
    """Microseconds, over the last two thirds of the steps: at first processes are still starting."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        file = pathlib.Path(folder) / "job.yaml"
        file.write_text(json.dumps(_manifest(members, shards)))  # JSON is YAML
        muster.call([muster.BIN / "muster", "run", file, "--directory", folder + "/job"])
        points = events.commits(folder + "/job")
    (first, begin), (last, end) = points[len(points) // 3], points[-1]
    return 1e6 * (end - begin) / (last - first)


CPUS = len(os.sched_getaffinity(0))


def _terms(members, shards):
    """What a step consists of: something of its own, each member's turn on the CPUs (those who have
    one each compute at the same time), each ps, and each pair of the two."""
    return [1, max(members, CPUS), shards, members * shards]


def _fit(table):
    """Least squares of the relative errors, by the normal equations."""
    rows = [([term / time for term in _terms(*point)], 1.0) for point, time in table.items()]
    n = len(rows[0][0])
    matrix = [[sum(a[i] * a[j] for a, _ in rows) for j in range(n)] +
              [sum(a[i] * b for a, b in rows)] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda row: abs(matrix[row][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        for j in range(n):
            if j != i:
                factor = matrix[j][i] / matrix[i][i]
                matrix[j] = [a - factor * b for a, b in zip(matrix[j], matrix[i])]
    return [matrix[i][n] / matrix[i][i] for i in range(n)]


def measure(report):
    """The largest deviation from the model, as a share; writes the table into `report`."""
    table = {point: min(_step(*point) for _ in range(2)) for point in POINTS}
    weights = _fit(table)
    model = {point: sum(w * term for w, term in zip(weights, _terms(*point))) for point in table}
    lines = ["| members | ps | us a step | model | |", "|---|---|---|---|---|"]
    for point, time in table.items():
        lines.append(f"| {point[0]} | {point[1]} | {time:,.0f} | {model[point]:,.0f} | "
                     f"{100 * (time / model[point] - 1):+.0f} % |")
        print("   ", lines[-1], flush=True)
    lines.append("")
    lines.append("Model, for {} CPUs: {:.0f} us, {:.0f} a member, {:.0f} a ps, {:.1f} a pair of "
                 "them.".format(CPUS, *weights))
    print("   ", lines[-1], flush=True)
    text = report.read_text()
    if BEGIN in text:
        begin = text.index(BEGIN) + len(BEGIN)
        report.write_text(text[:begin] + "\n".join(lines) + "\n" + text[text.index(END):])
    return max(abs(time / model[point] - 1) for point, time in table.items())
