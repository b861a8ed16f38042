# SPDX-License-Identifier: Apache-2.0
"""One task of a cluster. Start it once with --job=ps, which runs until it is killed, and once for each worker.

A worker ends at the end of its data.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--job", choices=["ps", "worker"], required=True)
parser.add_argument("--task", type=int, default=0)
parser.add_argument("--ps", default="localhost:2220")
parser.add_argument("--workers", default="localhost:2221,localhost:2222")
args = parser.parse_args()

cluster = tf.train.ClusterSpec({"ps": [args.ps], "worker": args.workers.split(",")})
server = tf.train.Server(cluster, job_name=args.job, task_index=args.task)
if args.job == "ps":
  server.join()

with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{args.task}")):
  # Each worker reads its own share of the lines.
  lines = tf.data.TextLineDataset("test_data.csv").shard(cluster.num_tasks("worker"), args.task).batch(2)
  city, color = tf.decode_csv(tf.data.make_one_shot_iterator(lines).get_next(), record_defaults=[[""], [""]])
  # The nodes above run ahead of the step, in this process. The nodes below are the step.
  city, color = tf.staged([city, color], capacity=4)
  embedding = tf.get_variable("embedding", [10, 3])
  row = tf.nn.embedding_lookup(embedding, tf.string_to_hash_bucket_fast(city, 10))
  loss = tf.reduce_mean(tf.square(row))
  step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())

# With these filters, a worker does not wait for the other workers.
config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{args.task}"])
with tf.train.MonitoredTrainingSession(
    master=server.target, is_chief=args.task == 0, config=config, hooks=[tf.make_prefetch_hook()]) as sess:
  while not sess.should_stop():
    print(sess.run([color, loss, step])[:2], flush=True)
