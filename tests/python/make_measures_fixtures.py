#!/usr/bin/env python3
"""Writes tests/fixtures/measures: outputs of models, and what scikit-learn measures of them.

deploy/setup/python.sh bench installs scikit-learn. Keras's AUC is written out."""

import json
from pathlib import Path

import numpy as np
from sklearn import metrics

ROOT = Path(__file__).resolve().parents[2]
ROWS = 150


def keras_auc(positive, probabilities):
    """keras.metrics.AUC() with its defaults: 200 thresholds, curve ROC, interpolation."""
    thresholds = np.array([-1e-7, *(np.arange(1, 199) / 199), 1 + 1e-7])
    above = probabilities[None, :] > thresholds[:, None]
    x = (above & ~positive).sum(1) / (~positive).sum()
    y = (above & positive).sum(1) / positive.sum()
    return float(((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2).sum())


def decisions(rng, width, settings):
    # Some outputs are equal, and some lie between the same two thresholds.
    outputs = (rng.normal(0, 3, (ROWS, width)).round(2)).astype(np.float32)
    targets = (outputs + rng.normal(-2, 4, outputs.shape) > 0).astype(np.float32)
    p = 1 / (1 + np.exp(-outputs.astype(np.float64)))
    decided, true = p > settings.get("threshold", 0.5), targets > 0.5
    each = [{"auc": metrics.roc_auc_score(true[:, i], outputs[:, i]),
             "aucAt200Thresholds": keras_auc(true[:, i], p[:, i]),
             "precision": metrics.precision_score(true[:, i], decided[:, i]),
             "recall": metrics.recall_score(true[:, i], decided[:, i]),
             "f1": metrics.f1_score(true[:, i], decided[:, i])} for i in range(width)]
    flat = decided.ravel(), true.ravel()
    expected = {name: float(np.mean([one[name] for one in each])) for name in ("auc", "aucAt200Thresholds")}
    expected |= {"logLoss": metrics.log_loss(true.ravel(), p.ravel()),
                 "precision": metrics.precision_score(flat[1], flat[0]),
                 "recall": metrics.recall_score(flat[1], flat[0]), "f1": metrics.f1_score(flat[1], flat[0])}
    case = {"outputs": outputs.tolist(), "targets": targets.tolist(), "expected": expected,
            "confusion": metrics.confusion_matrix(flat[1], flat[0]).tolist()}
    if width > 1:
        case["by_class"] = {name + "ByClass": [one[name] for one in each]
                            for name in ("auc", "precision", "recall", "f1")}
    return case


def classes(rng, width):
    labels = rng.integers(0, width, ROWS)
    outputs = rng.normal(0, 1, (ROWS, width))
    outputs[np.arange(ROWS), labels] += 1
    outputs = outputs.astype(np.float32)
    shares = np.exp(outputs.astype(np.float64))
    shares /= shares.sum(1, keepdims=True)
    chosen = outputs.argmax(1)
    by_class = {"precisionByClass": metrics.precision_score, "recallByClass": metrics.recall_score,
                "f1ByClass": metrics.f1_score}
    auc = (metrics.roc_auc_score(labels, shares[:, 1]) if width == 2
           else metrics.roc_auc_score(labels, shares, multi_class="ovr", average="macro"))
    return {"outputs": outputs.tolist(), "labels": labels.tolist(),
            "expected": {"balancedAccuracy": metrics.balanced_accuracy_score(labels, chosen),
                         "macroF1": metrics.f1_score(labels, chosen, average="macro"), "auc": auc},
            "by_class": {name: measure(labels, chosen, average=None).tolist()
                         for name, measure in by_class.items()},
            "confusion": metrics.confusion_matrix(labels, chosen).tolist()}


def numbers(rng, width, loss):
    targets = (rng.poisson(3, (ROWS, width)) + 1000 * (loss != "poisson")).astype(np.float32)
    predictions = (targets + rng.normal(0, 1, targets.shape)).clip(0.1).astype(np.float32)
    outputs = np.log(predictions).astype(np.float32) if loss == "poisson" else predictions
    if loss == "poisson":
        predictions = np.exp(outputs.astype(np.float64))
    return {"outputs": outputs.tolist(), "targets": targets.tolist(),
            "expected": {"rmse": metrics.root_mean_squared_error(targets, predictions),
                         "mae": metrics.mean_absolute_error(targets, predictions),
                         "r2": metrics.r2_score(targets, predictions)}}


def average_precision(relevant, order, at):
    """Of the ordered rows, as in the documentation: the mean of the precisions at the relevant rows."""
    found, total = 0, 0.0
    for place, row in enumerate(order[:at], 1):
        if relevant[row]:
            found += 1
            total += found / place
    return total / min(at, int(relevant.sum()))


def ranking(rng, grades, at):
    groups = rng.integers(0, 12, ROWS)
    # Some outputs are equal, and the groups 0 and 1 have no relevant rows.
    outputs = rng.normal(0, 2, (ROWS, 1)).round(grades).astype(np.float32)
    targets = rng.integers(0, grades + 1, (ROWS, 1)) * (groups > 1)[:, None]
    each = []
    for group in np.unique(groups):
        scores, gains = outputs[groups == group, 0], targets[groups == group, 0]
        if gains.max() == 0:
            continue
        order = np.argsort(-scores, kind="stable")
        each.append([metrics.ndcg_score([gains], [scores], k=at), average_precision(gains > 0, order, at),
                     float((gains[order[:at]] > 0).any())])
    means = np.mean(each, axis=0)
    return {"outputs": outputs.tolist(), "targets": targets.astype(float).tolist(), "groups": groups.tolist(),
            "expected": {"ndcg": means[0], "meanAveragePrecision": means[1], "hitRate": means[2]}}


def main():
    rng = np.random.default_rng(1)
    cases = {"decisions": ("binaryCrossEntropy", {}, decisions(rng, 1, {})),
             "decisions-of-three": ("binaryCrossEntropy", {"threshold": 0.3}, decisions(rng, 3, {"threshold": 0.3})),
             "two-classes": ("softmaxCrossEntropy", {}, classes(rng, 2)),
             "five-classes": ("softmaxCrossEntropy", {}, classes(rng, 5)),
             "numbers": ("meanSquaredError", {}, numbers(rng, 1, "meanSquaredError")),
             "two-numbers": ("huber", {}, numbers(rng, 2, "huber")),
             "counts": ("poisson", {}, numbers(rng, 1, "poisson")),
             "ranked-clicks": ("binaryCrossEntropy", {"at": 3}, ranking(rng, 1, 3)),
             "ranked-grades": ("meanSquaredError", {"at": 5}, ranking(rng, 2, 5))}
    for name, (loss, settings, case) in cases.items():
        text = json.dumps({"loss": loss, **settings, **case}, default=float)
        (ROOT / "tests/fixtures/measures" / (name + ".json")).write_text(text.replace(', "', ',\n "') + "\n")


if __name__ == "__main__":
    main()
