#!/usr/bin/env python3
"""Writes tests/fixtures/tensorflow/*.json: what TensorFlow 1's parameter servers make of a small model,
update by update: SyncReplicasOptimizer, with and without backup workers, and asynchronous updates in a
given order. The format is in the README beside them.

    deploy/setup/python.sh && build/venv/bin/python tests/python/make_tensorflow_fixtures.py
"""

import json
import os
import pathlib
import socket
import threading

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_eager_execution()
tf.disable_resource_variables()

ROOT = pathlib.Path(__file__).resolve().parents[2]
INPUTS, HIDDEN, CLASSES, BATCH = 5, 4, 3, 4
NAMES = ["hidden/kernel", "hidden/bias", "logits/kernel", "logits/bias"]
SHAPES = [[INPUTS, HIDDEN], [HIDDEN], [HIDDEN, CLASSES], [CLASSES]]
OPTIMIZERS = {
    "sgd": ({"name": "sgd", "learning_rate": 0.5}, lambda: tf.train.GradientDescentOptimizer(0.5)),
    "momentum": ({"name": "sgd", "learning_rate": 0.25, "momentum": 0.875},
                 lambda: tf.train.MomentumOptimizer(0.25, 0.875)),
}


class Worker:
    """A worker of a cluster in this process: its graph, and its session."""

    def __init__(self, cluster, server, index, initial, make_optimizer, sync):
        self.graph = tf.Graph()
        device = tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")
        with self.graph.as_default(), tf.device(device):
            self.features = tf.placeholder(tf.float32, [None, INPUTS])
            self.labels = tf.placeholder(tf.int32, [None])
            self.variables = [tf.get_variable(name, initializer=value)
                              for name, value in zip(NAMES, initial)]
            kernel, bias, out_kernel, out_bias = self.variables
            logits = tf.nn.relu(self.features @ kernel + bias) @ out_kernel + out_bias
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.labels, logits=logits))
            step = tf.train.get_or_create_global_step()
            optimizer, hooks = make_optimizer(), []
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=sync[0],
                                                           total_num_replicas=sync[1])
            pairs = optimizer.compute_gradients(loss, self.variables)
            self.gradients = [gradient for gradient, _ in pairs]
            if sync:
                self.update = optimizer.apply_gradients(pairs, global_step=step)
                # No tokens to begin with: with the default a worker's first steps wait for nobody.
                hooks = [optimizer.make_session_run_hook(index == 0, num_tokens=0)]
            else:
                self.fed = [tf.placeholder(tf.float32, shape) for shape in SHAPES]
                self.update = optimizer.apply_gradients(zip(self.fed, self.variables), global_step=step)
            self.session = tf.train.MonitoredTrainingSession(
                master=server.target, is_chief=index == 0, hooks=hooks, log_step_count_steps=0)

    def feed(self, batch):
        return {self.features: batch[0], self.labels: batch[1]}

    def values(self):
        # Without the hooks: they would take a part in the synchronization.
        return self.session.run_step_fn(
            lambda step_context: step_context.session.run(self.variables))


def make_workers(count, initial, make_optimizer, sync):
    servers, addresses = [], []
    for _ in range(count + 1):
        with socket.create_server(("127.0.0.1", 0)) as s:
            addresses.append(f"127.0.0.1:{s.getsockname()[1]}")
    cluster = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
    servers.append(tf.train.Server(cluster, job_name="ps", task_index=0))
    for index in range(count):
        servers.append(tf.train.Server(cluster, job_name="worker", task_index=index))
    return servers, [Worker(cluster, servers[1 + index], index, initial, make_optimizer, sync)
                     for index in range(count)]


def flat(values):
    return {name: [float(x) for x in np.ravel(value)] for name, value in zip(NAMES, values)}


def sync_case(orders, workers, batches):
    """`orders`: of each step, who pushes one after the other."""
    results, number = [], [0] * len(workers)
    for order in orders:
        threads = []
        for rank in order:
            batch = batches[rank][number[rank]]
            number[rank] += 1
            thread = threading.Thread(
                target=lambda w=workers[rank], b=batch: w.session.run(w.update, w.feed(b)))
            thread.start()
            threads.append(thread)
            # Whoever comes after the step was made must find it made.
            thread.join(timeout=1.5)
        for thread in threads:
            thread.join()
        results.append(flat(workers[0].values()))
    return results


def async_case(order, workers, batches):
    """`order`: who does something next; by turns it takes parameters and pushes a gradient."""
    results, held, number = [], {}, [0] * len(workers)
    for rank in order:
        worker = workers[rank]
        if rank not in held:
            feed = worker.feed(batches[rank][number[rank]])
            number[rank] += 1
            held[rank] = worker.session.run(worker.gradients, feed)
            continue
        worker.session.run(worker.update, dict(zip(worker.fed, held.pop(rank))))
        results.append(flat(worker.values()))
    return results


def write(name, optimizer, members, backups, order, seed):
    random = np.random.default_rng(seed)
    initial = [random.uniform(-0.5, 0.5, shape).astype(np.float32) for shape in SHAPES]
    batches = [[(random.uniform(-1, 1, (BATCH, INPUTS)).astype(np.float32),
                 random.integers(0, CLASSES, BATCH).astype(np.int32)) for _ in range(8)]
               for _ in range(members)]
    sync = None if backups is None else (members - backups, members)
    description, make_optimizer = OPTIMIZERS[optimizer]
    servers, workers = make_workers(members, initial, make_optimizer, sync)
    run = async_case if backups is None else sync_case
    case = {
        "format": 1, "name": name, "policy": "async" if backups is None else "sync",
        "members": members, "backup_workers": backups or 0, "optimizer": description,
        "input_shape": [INPUTS], "hidden": HIDDEN, "label_count": CLASSES, "batch_size": BATCH,
        "parameters": flat(initial), "order": order,
        "batches": [[{"features": [float(x) for x in np.ravel(features)],
                      "labels": [int(x) for x in labels]} for features, labels in of_member]
                    for of_member in batches],
        "after": run(order, workers, batches),
    }
    path = ROOT / "tests/fixtures/tensorflow" / f"{name}.json"
    path.write_text(json.dumps(case, indent=1) + "\n")
    print(path.relative_to(ROOT))
    return servers


def main():
    alive = []  # a server cannot be ended
    alive += write("sync", "momentum", 2, 0, [[0, 1], [1, 0], [0, 1], [0, 1], [1, 0]], 1)
    alive += write("backup", "momentum", 3, 1, [[0, 1, 2], [2, 0, 1], [0, 2, 1], [1, 0, 2]], 2)
    alive += write("async", "sgd", 2, None, [0, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1], 3)
    alive += write("async-momentum", "momentum", 3, None,
                   [0, 1, 2, 2, 0, 0, 2, 1, 1, 0, 2, 1, 0, 1, 2, 2], 4)
    os._exit(0)


if __name__ == "__main__":
    main()
