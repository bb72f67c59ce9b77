"""Trains a line asynchronously, as scripts did before there was TF_CONFIG: who there is, and who it is itself, it is told
by options."""
import argparse
import random

import tensorflow.compat.v1 as tf

STEPS, BATCH, LEARNING_RATE = 400, 64, 0.05

options = argparse.ArgumentParser()
options.add_argument("--ps_hosts", required=True, help="host:port of each ps, with commas between them")
options.add_argument("--worker_hosts", required=True, help="the same of the workers")
options.add_argument("--job_name", required=True, choices=["ps", "worker"])
options.add_argument("--task_index", required=True, type=int)
told = options.parse_args()

cluster = tf.train.ClusterSpec({"ps": told.ps_hosts.split(","), "worker": told.worker_hosts.split(",")})
tf.disable_eager_execution()
server = tf.train.Server(cluster, job_name=told.job_name, task_index=told.task_index)
if told.job_name == "ps":
    server.join()  # until it is stopped

here = f"/job:worker/task:{told.task_index}"
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=here)):
    x = tf.placeholder(tf.float32, [BATCH])
    slope = tf.get_variable("slope", [], initializer=tf.zeros_initializer())
    intercept = tf.get_variable("intercept", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(slope * x + intercept - (2 * x + 10)))
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(LEARNING_RATE).minimize(loss, global_step=step)

stop = tf.train.StopAtStepHook(last_step=STEPS)
with tf.train.MonitoredTrainingSession(master=server.target, is_chief=told.task_index == 0, hooks=[stop]) as session:
    while not session.should_stop():
        batch = [random.gauss(0, 1) for _ in range(BATCH)]
        _, last, a, b = session.run([train, loss, slope, intercept], feed_dict={x: batch})

print(f"worker-{told.task_index}: loss {last:.2g}, y = {a:.2f} x + {b:.2f}")
