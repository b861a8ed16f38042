# SPDX-License-Identifier: Apache-2.0
"""Steps on a GPU get the same values with a stage as without one."""

import numpy as np
import pytest
import staged_runs
import tensorflow as tf

_BATCH = 16


def _training_step(way: str, device: str) -> dict[str, tf.Tensor]:
  """Adds a step that trains a small model on the device. All numbers are small and whole, so results are exact."""
  numbers = tf.data.Dataset.range(10_000).batch(_BATCH, drop_remainder=True)
  number = tf.compat.v1.data.make_one_shot_iterator(numbers).get_next()
  with tf.device("/cpu:0"):
    words = tf.strings.join(["word", tf.as_string(number)])
    ids = tf.strings.to_hash_bucket_fast(words, 13)
    dense = tf.cast(number % 5, tf.float32)
  staged = staged_runs.staged(way, {"ids": ids, "dense": dense, "words": words})
  with tf.device(device):
    table = tf.get_variable("table", initializer=np.arange(26, dtype=np.float32).reshape(13, 2) % 7)
    weights = tf.get_variable("weights", initializer=np.array([[1.0], [2.0]], np.float32))
    rows = tf.nn.embedding_lookup(table, staged["ids"])
    output = tf.matmul(rows, weights)[:, 0] + staged["dense"]
    # The update keeps the numbers whole and small.
    delta = tf.floormod(tf.reduce_sum(output), 3.0)
    with tf.control_dependencies([output]):
      update = tf.assign(weights, tf.floormod(weights + delta, 5.0))
    with tf.control_dependencies([update]):
      output = tf.identity(output, name="output")
  return {"output": output, "words": staged["words"], "ids": staged["ids"]}


@pytest.fixture(scope="module")
def expected(device) -> list[dict[str, np.ndarray]]:
  """The values without a stage, on the CPU."""
  with tf.Graph().as_default():
    return staged_runs.values(_training_step("none", "/cpu:0"), staged_runs.config("none", False))


@pytest.mark.parametrize("on_cpu", [False, True], ids=["", "stage_subgraph_on_cpu"])
@pytest.mark.parametrize("way", ["none", *staged_runs.WAYS])
def test_a_training_step_has_the_values_of_the_cpu_without_a_stage(device, expected, way, on_cpu):
  values = staged_runs.values(_training_step(way, device), staged_runs.config(way, on_cpu))
  for number, (got, wanted) in enumerate(zip(values, expected, strict=True)):
    for name, value in wanted.items():
      np.testing.assert_array_equal(got[name], value, err_msg=f"step {number}: {name}")


def test_the_step_is_on_the_gpu_and_the_region_on_the_cpu(device):
  step = _training_step("SmartStage", device)
  metadata = tf.RunMetadata()
  with tf.Session(config=staged_runs.config("SmartStage", True)) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      sess.run(step, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
  devices = {node.op: node.device.lower() for graph in metadata.partition_graphs for node in graph.node}
  # Grappler may have fused the product with other ops.
  product, = (op for op in devices if "MatMul" in op)
  assert devices[product].endswith(device.lstrip("/"))
  assert devices["TensorBufferTake"].endswith(device.lstrip("/"))
  # The region left the step.
  assert "StringToHashBucketFast" not in devices
  assert "IteratorGetNext" not in devices


@pytest.mark.parametrize("way", staged_runs.WAYS)
def test_records_of_many_tensors_arrive_whole(device, way):
  """A record goes to the GPU in one copy, whose parts have many types and sizes, also none."""
  types = [tf.float32, tf.int64, tf.float64, tf.uint8, tf.float16]
  number = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(10_000)).get_next()
  with tf.device("/cpu:0"):
    parts = [
        tf.fill([index * 37 % 300 + tf.cast(number % 4, tf.int32)], tf.cast((number + index) % 100, types[index % 5]))
        for index in range(60)
    ]
  parts = staged_runs.staged(way, parts)
  with tf.device(device):
    # Cast, which has GPU kernels for all of the types, makes the step use the tensors there.
    used = [tf.cast(part, tf.float32) * 2 for part in parts]
  for number, values in enumerate(staged_runs.values(used, staged_runs.config(way, True))):
    for index, value in enumerate(values):
      wanted = np.full(index * 37 % 300 + number % 4, (number + index) % 100 * 2, np.float32)
      np.testing.assert_array_equal(value, wanted, err_msg=f"step {number}: tensor {index}")
