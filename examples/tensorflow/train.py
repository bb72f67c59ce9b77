"""Trains a line on every replica of a job. TF_CONFIG, which Muster sets, is all it needs to know."""
import json
import os

import tensorflow as tf

task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "chief", "index": 0})

strategy = tf.distribute.MultiWorkerMirroredStrategy()  # reads TF_CONFIG itself
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.05), loss="mse")

x = tf.random.stateless_normal([1024, 1], seed=[1, 2])
data = tf.data.Dataset.from_tensor_slices((x, 2 * x + 10)).repeat().batch(64)
model.fit(data, epochs=3, steps_per_epoch=50, verbose=2)

slope, intercept = (float(value) for value in tf.concat([tf.reshape(w, [-1]) for w in model.weights], 0))
print(f"{task['type']}-{task['index']}: y = {slope:.2f} x + {intercept:.2f}")
