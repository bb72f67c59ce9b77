#!/usr/bin/env python3
"""Writes tests/fixtures/keras/*.json: what Keras's EarlyStopping and ModelCheckpoint(save_best_only) make of
series of values, and what its learning-rate schedules give at some steps. The format is in the README beside
them.

    deploy/setup/python.sh && build/venv/bin/python tests/python/make_keras_fixtures.py
"""

import json
import os
import pathlib
import random

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
METRICS = {"validationLoss": ("val_loss", "min"), "validationAccuracy": ("val_accuracy", "max")}
STEPS = [0, 1, 2, 4, 5, 6, 9, 10, 11, 19, 20, 21, 50, 99, 100, 101, 1000]


class Model:
    """As much of a model as the callbacks ask for: its weights are the number of its epochs."""

    def __init__(self):
        self.stop_training = False
        self.epochs = 0
        self.saved = []

    def get_weights(self):
        return self.epochs

    def set_weights(self, weights):
        self.epochs = weights

    def save_weights(self, path, overwrite):
        self.saved.append(self.epochs)


def stopping_case(metric, patience, min_delta, values):
    monitor, mode = METRICS[metric]
    model = Model()
    stopping = keras.callbacks.EarlyStopping(monitor=monitor, min_delta=min_delta, patience=patience, mode=mode,
                                             restore_best_weights=True)
    saving = keras.callbacks.ModelCheckpoint("best.weights.h5", monitor=monitor, mode=mode, save_best_only=True,
                                             save_weights_only=True)
    for callback in (stopping, saving):
        callback.set_model(model)
        callback.on_train_begin()
    for value in values:
        model.epochs += 1
        for callback in (saving, stopping):
            callback.on_epoch_end(model.epochs - 1, {monitor: value})
        if model.stop_training:
            break
    epochs = model.epochs
    stopping.on_train_end()
    return {"metric": metric, "patience": patience, "minDelta": min_delta, "values": values, "epochs": epochs,
            "stopped": model.stop_training, "restored": model.epochs, "saved": model.saved}


def stopping_cases():
    yield stopping_case("validationLoss", 2, 0.0, [1.0, 0.5, 0.5, 0.5, 0.4])
    yield stopping_case("validationLoss", 2, 0.25, [1.0, 0.75, 0.74, 0.5, 0.3])
    yield stopping_case("validationAccuracy", 1, 0.0, [0.5, 0.6, 0.6, 0.9])
    yield stopping_case("validationAccuracy", 0, 0.0, [0.5, 0.6, 0.6, 0.9])
    yield stopping_case("validationLoss", 3, 0.0, [5.0, 4.0, 3.0, 2.0, 1.0])
    source = random.Random(1)
    for metric in METRICS:
        for patience in (0, 1, 2, 3, 5):
            for min_delta in (0.0, 0.015625, 0.125):
                values = [source.randrange(64) / 64 for _ in range(16)]
                yield stopping_case(metric, patience, min_delta, values)


def schedule_case(name, schedule, manifest):
    return {"name": name, "training": manifest, "steps": STEPS, "rates": [float(schedule(step)) for step in STEPS]}


def schedule_cases():
    schedules = keras.optimizers.schedules
    rate = {"optimizer": {"name": "sgd", "learningRate": 0.125}}
    yield schedule_case("constant", lambda step: 0.125, rate)
    yield schedule_case("piecewise", schedules.PiecewiseConstantDecay([5, 10, 20], [1.0, 0.5, 0.25, 0.125]),
                        {**rate, "learningRateSchedule": {"piecewise": {
                            "boundaries": [5, 10, 20], "values": [1.0, 0.5, 0.25, 0.125]}}})
    for staircase in (False, True):
        yield schedule_case(f"exponential{'-staircase' if staircase else ''}",
                            schedules.ExponentialDecay(0.125, 10, 0.9, staircase=staircase),
                            {**rate, "learningRateSchedule": {"exponential": {
                                "decaySteps": 10, "rate": 0.9, "staircase": staircase}}})
    yield schedule_case("cosine", schedules.CosineDecay(0.125, 100, alpha=0.1),
                        {**rate, "learningRateSchedule": {"cosine": {"decaySteps": 100, "alpha": 0.1}}})
    yield schedule_case("cosine-warm-up", schedules.CosineDecay(0.0, 100, alpha=0.1, warmup_target=0.125,
                                                                warmup_steps=10),
                        {**rate, "learningRateSchedule": {"cosine": {"decaySteps": 100, "alpha": 0.1},
                                                          "warmupSteps": 10}})


def write(name, cases):
    path = ROOT / "tests/fixtures/keras" / f"{name}.json"
    lines = ",\n  ".join(json.dumps(case) for case in cases)
    path.write_text(f'{{"format": 1, "keras": "{keras.__version__}", "cases": [\n  {lines}\n]}}\n')
    print(path.relative_to(ROOT))


def main():
    write("early-stopping", stopping_cases())
    write("schedules", schedule_cases())


if __name__ == "__main__":
    main()
