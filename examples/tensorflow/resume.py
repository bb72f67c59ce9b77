"""Trains a line on every replica of a job, saves a checkpoint every 100 steps, and goes on from the newest one when it
is started again. All replicas save, as TensorFlow demands; only worker 0 saves where the checkpoints are kept."""
import json
import os
import signal
import tempfile

import tensorflow as tf

STEPS, SAVE_EVERY, BATCH, LEARNING_RATE = int(os.environ.get("STEPS", 300)), 100, 64, 0.05
CHECKPOINTS = os.path.join(os.environ["MUSTER_STORAGE"], "tensorflow")  # every replica sees this folder

task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "worker", "index": 0})
here = f"{task['type']}-{task['index']}"
keeps = task["index"] == 0

strategy = tf.distribute.MultiWorkerMirroredStrategy()  # reads TF_CONFIG itself
signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the strategy ignores it, and would stay until it is killed
with strategy.scope():  # each replica keeps a copy of the weights
    aggregation = tf.VariableAggregation.ONLY_FIRST_REPLICA  # the copies get the same updates
    slope = tf.Variable(0.0, aggregation=aggregation)
    intercept = tf.Variable(0.0, aggregation=aggregation)
    done = tf.Variable(0, dtype=tf.int64, trainable=False, aggregation=aggregation)

checkpoint = tf.train.Checkpoint(slope=slope, intercept=intercept, done=done)
folder = CHECKPOINTS if keeps else tempfile.mkdtemp()
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
newest = tf.train.latest_checkpoint(CHECKPOINTS)
if newest:
    checkpoint.restore(newest).assert_consumed()
print(f"{here} begins at step {int(done.numpy())}", flush=True)


@tf.function
def train(number):
    def step():
        replicas = tf.distribute.get_replica_context()
        seed = [number, replicas.replica_id_in_sync_group]  # the data of a step are the same after a restart
        x = tf.random.stateless_normal([BATCH], seed=seed)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(slope * x + intercept - (2 * x + 10)))
        gradients = tape.gradient(loss, [slope, intercept])
        for weight, gradient in zip([slope, intercept], replicas.all_reduce(tf.distribute.ReduceOp.MEAN, gradients)):
            weight.assign_sub(LEARNING_RATE * gradient)
        return loss

    losses = strategy.run(step)
    return strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)


for number in range(int(done.numpy()), STEPS):
    loss = train(tf.constant(number))
    if (number + 1) % SAVE_EVERY == 0:
        done.assign(number + 1)
        manager.save()
        print(f"{here}: step {number + 1}, loss {float(loss):.2g}", flush=True)

print(f"{here}: y = {slope.numpy():.4f} x + {intercept.numpy():.4f}", flush=True)
