"""Trains a line on every replica of a job. TF_CONFIG, which Muster sets, is all it needs to know."""
import json
import os

import tensorflow as tf

STEPS, BATCH, LEARNING_RATE = int(os.environ.get("STEPS", 150)), 64, 0.05

task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "chief", "index": 0})

strategy = tf.distribute.MultiWorkerMirroredStrategy()  # reads TF_CONFIG itself
with strategy.scope():  # each replica keeps a copy of the weights
    aggregation = tf.VariableAggregation.ONLY_FIRST_REPLICA  # the copies get the same updates
    slope = tf.Variable(0.0, aggregation=aggregation)
    intercept = tf.Variable(0.0, aggregation=aggregation)


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(slope * x + intercept - y))
    gradients = tape.gradient(loss, [slope, intercept])
    replicas = tf.distribute.get_replica_context()
    gradients = replicas.all_reduce(tf.distribute.ReduceOp.MEAN, gradients)
    for weight, gradient in zip([slope, intercept], gradients):
        weight.assign_sub(LEARNING_RATE * gradient)
    return loss


@tf.function
def train(x, y):
    losses = strategy.run(step, args=(x, y))
    return strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)


def shard(context):  # the part of the data that this replica's input pipeline reads
    x = tf.random.stateless_normal([1024], seed=[1, 2])
    data = tf.data.Dataset.from_tensor_slices((x, 2 * x + 10))
    data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.repeat().batch(BATCH, drop_remainder=True)


batches = iter(strategy.distribute_datasets_from_function(shard))
for number in range(STEPS):
    loss = train(*next(batches))
    if number % 100 == 0:
        print(f"step {number}: loss {float(loss):.2g}", flush=True)

print(f"{task['type']}-{task['index']} of {strategy.num_replicas_in_sync}: loss {float(loss):.2g}, "
      f"y = {slope.numpy():.2f} x + {intercept.numpy():.2f}")
