#!/usr/bin/env python3
"""784-256-256-10, Adam 0.001, batch 32 by TensorFlow 1's parameter servers: one ps and two workers on
loopback, MonitoredTrainingSession, asynchronous or with SyncReplicasOptimizer. Answers with global
steps a second, as worker 0 (the chief) sees the global step advance."""

import argparse
import os
import socket
import subprocess
import sys
import time

import common

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
WORKERS = 2
WARM_UP = 200  # global steps before the clock starts


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def launch(arguments):
    """The parent: starts the three replicas, passes on the chief's answer and ends the others."""
    ports = ",".join(map(str, free_ports(1 + WORKERS)))
    command = [sys.executable, __file__, "--mode", arguments.mode, "--steps", str(arguments.steps),
               "--ports", ports]
    replicas = [subprocess.Popen([*command, "--role", role, "--index", str(index)])
                for role, index in [("ps", 0), ("worker", 1), ("worker", 0)]]
    try:
        return replicas[-1].wait(timeout=300)
    finally:
        for replica in replicas:
            replica.kill()
            replica.wait()


def model(tf, features, labels):
    x = features
    for inputs, units in [(784, 256), (256, 256)]:
        x = tf.nn.relu(x @ tf.Variable(tf.random_normal([inputs, units], stddev=(2 / inputs) ** 0.5))
                       + tf.Variable(tf.zeros([units])))
    x = x @ tf.Variable(tf.random_normal([256, 10], stddev=0.06)) + tf.Variable(tf.zeros([10]))
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x))


def replica(arguments):
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    tf.disable_resource_variables()
    addresses = [f"127.0.0.1:{port}" for port in arguments.ports.split(",")]
    cluster = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
    server = tf.train.Server(cluster, job_name=arguments.role, task_index=arguments.index)
    if arguments.role == "ps":
        server.join()
    is_chief = arguments.index == 0
    worker = f"/job:worker/task:{arguments.index}"
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=worker)):
        features = tf.placeholder(tf.float32, [None, 784])
        labels = tf.placeholder(tf.int32, [None])
        loss = model(tf, features, labels)
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.AdamOptimizer(0.001)
        hooks = []
        if arguments.mode == "sync":
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=WORKERS,
                                                       total_num_replicas=WORKERS)
        update = optimizer.minimize(loss, global_step=step)
        if arguments.mode == "sync":
            hooks.append(optimizer.make_session_run_hook(is_chief))
    images, targets = common.mnist()
    batches = len(images) // common.BATCH
    number = arguments.index
    first = begin = None
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=is_chief, hooks=hooks,
                                           log_step_count_steps=0) as session:
        while True:
            at = number % batches * common.BATCH
            number += WORKERS
            _, now = session.run([update, step], feed_dict={
                features: images[at : at + common.BATCH], labels: targets[at : at + common.BATCH]})
            if first is None and now >= WARM_UP:
                first, begin = now, time.perf_counter()
            elif is_chief and first is not None and now >= first + arguments.steps:
                common.report((now - first) / (time.perf_counter() - begin))
                sys.stdout.flush()
                os._exit(0)  # the others wait for nobody: the parent ends them


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=["async", "sync"], required=True)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--role", choices=["ps", "worker"])
    parser.add_argument("--index", type=int)
    parser.add_argument("--ports")
    arguments = parser.parse_args()
    return replica(arguments) if arguments.role else launch(arguments)


if __name__ == "__main__":
    sys.exit(main())
