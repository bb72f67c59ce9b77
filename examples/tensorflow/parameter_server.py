"""Trains a line asynchronously, as one does with TensorFlow 1: the parameters are the ps', and each of the others
computes gradients. All it needs to know is in TF_CONFIG."""
import json
import os
import random

import tensorflow.compat.v1 as tf

STEPS, BATCH, LEARNING_RATE = int(os.environ.get("STEPS", 400)), 64, 0.05

config = json.loads(os.environ["TF_CONFIG"])
role, index = config["task"]["type"], config["task"]["index"]
cluster = tf.train.ClusterSpec(config["cluster"])

tf.disable_eager_execution()
server = tf.train.Server(cluster, job_name=role, task_index=index)
if role == "ps":
    server.join()  # until it is stopped

here = f"/job:{role}/task:{index}"
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=here)):
    x = tf.placeholder(tf.float32, [BATCH])
    slope = tf.get_variable("slope", [], initializer=tf.zeros_initializer())
    intercept = tf.get_variable("intercept", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(slope * x + intercept - (2 * x + 10)))
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(LEARNING_RATE).minimize(loss, global_step=step)

stop = tf.train.StopAtStepHook(last_step=STEPS)
with tf.train.MonitoredTrainingSession(master=server.target, is_chief=role == "chief", hooks=[stop]) as session:
    done = 0  # by this replica alone
    while not session.should_stop():
        batch = [random.gauss(0, 1) for _ in range(BATCH)]
        _, number, last, a, b = session.run([train, step, loss, slope, intercept], feed_dict={x: batch})
        if done % 100 == 0:
            print(f"step {number}: loss {last:.2g}", flush=True)
        done += 1

print(f"{role}-{index}: loss {last:.2g}, y = {a:.2f} x + {b:.2f}")
