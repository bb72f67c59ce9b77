#!/usr/bin/env python3
"""784-100-10 sigmoid, unit-normal weights, SGD 0.001, batch 100, as TensorFlow 1 tutorials write it: a
graph, a session, and a feed_dict in every step. Batches are slices of a shuffled array in memory."""

import argparse
import os

import common
import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
BATCH = 100


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=common.SECONDS)
    arguments = parser.parse_args()
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    x = tf.placeholder(tf.float32, [None, 784])
    y = tf.placeholder(tf.float32, [None, 10])
    hidden = tf.sigmoid(x @ tf.Variable(tf.random_normal([784, 100])) + tf.Variable(tf.zeros([100])))
    logits = hidden @ tf.Variable(tf.random_normal([100, 10])) + tf.Variable(tf.zeros([10]))
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits))
    update = tf.train.GradientDescentOptimizer(0.001).minimize(loss)

    images, labels = common.mnist()
    order = np.random.default_rng(1).permutation(len(images))
    images, one_hot = images[order], np.eye(10, dtype=np.float32)[labels[order]]
    batches = len(images) // BATCH
    settings = tf.ConfigProto(intra_op_parallelism_threads=arguments.threads,
                              inter_op_parallelism_threads=arguments.threads)
    with tf.Session(config=settings) as session:
        session.run(tf.global_variables_initializer())

        def step(number):
            begin = number % batches * BATCH
            session.run(update, feed_dict={x: images[begin : begin + BATCH],
                                           y: one_hot[begin : begin + BATCH]})

        common.report(common.steps_per_second(step, arguments.seconds), threads=arguments.threads)


if __name__ == "__main__":
    main()
