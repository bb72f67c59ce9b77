#!/usr/bin/env python3
"""784-256-256-10, ReLU, Adam 0.001, batch 32 by Keras `fit`, 50,000 images: the speed of the epochs after
the first, and with --epochs 2 the test accuracy a user gets."""

import argparse
import os
import time

import common

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--epochs", type=int, default=2)
    arguments = parser.parse_args()
    import keras

    class Clock(keras.callbacks.Callback):
        seconds = []

        def on_epoch_begin(self, epoch, logs=None):
            self.begin = time.perf_counter()

        def on_epoch_end(self, epoch, logs=None):
            self.seconds.append(time.perf_counter() - self.begin)

    keras.utils.set_random_seed(1)
    images, labels = common.mnist()
    dense = keras.layers.Dense
    model = keras.Sequential([keras.Input((784,)), dense(256, "relu"), dense(256, "relu"), dense(10)])
    model.compile(keras.optimizers.Adam(0.001),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"], jit_compile=arguments.jit)
    model.fit(images, labels, batch_size=common.BATCH, epochs=arguments.epochs, verbose=0,
              callbacks=[Clock()])
    steps = -(-len(images) // common.BATCH)
    _, accuracy = model.evaluate(*common.mnist("t10k", 10000), batch_size=256, verbose=0)
    timed = Clock.seconds[1:] or Clock.seconds
    common.report(steps * len(timed) / sum(timed), testAccuracy=accuracy)


if __name__ == "__main__":
    main()
