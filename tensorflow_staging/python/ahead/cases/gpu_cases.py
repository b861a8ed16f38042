# SPDX-License-Identifier: Apache-2.0
"""`tf.distribute` strategies on GPUs with stages, compared with CPUs without; run by ahead/ahead_test.py.

The GPUs are those of fake_gpus.py, which compute on the CPU and so give its values.
"""

import contextlib
import tempfile

import cases
import fake_gpus
import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

fake_gpus.load(2)
tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
layers = tf.keras.layers
Dataset = tf.data.Dataset
_RANDOM = np.random.RandomState(0)
LETTERS = list("abcdefg")
WORDS = _RANDOM.choice(LETTERS, [41, 3])
SIZES = _RANDOM.rand(41, 2).astype(np.float32)
TARGETS = _RANDOM.rand(41, 1).astype(np.float32)
GPUS = tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"], tf.distribute.ReductionToOneDevice())
CPUS = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
ONE_GPU = tf.distribute.OneDeviceStrategy("/gpu:1")
ONE_CPU = tf.distribute.OneDeviceStrategy("/cpu:0")


def data(rows, drop):
  features = WORDS[:rows], SIZES[:rows], [" ".join(words) for words in WORDS[:rows]]
  return Dataset.from_tensor_slices((features, TARGETS[:rows])).shuffle(16, seed=3).batch(8, drop_remainder=drop)


def trained(strategy, callbacks, drop, **options):
  """Trains a model with layers that look words up; returns its values."""
  tf.keras.backend.clear_session()
  tf.keras.utils.set_random_seed(5)
  with strategy.scope():
    words, text = tf.keras.Input((3,), dtype=tf.string), tf.keras.Input((), dtype=tf.string)
    sizes = tf.keras.Input((2,))
    known = layers.StringLookup(vocabulary=LETTERS, output_mode="multi_hot")(words)
    counts = layers.TextVectorization(vocabulary=LETTERS, output_mode="count")(text)
    scaled = layers.Normalization(mean=[0.5, 0.5], variance=[0.1, 0.1])(sizes)
    model = tf.keras.Model([words, sizes, text], layers.Dense(1)(layers.Concatenate()([known, counts, scaled])))
    model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"], **options)
  values = [model.fit(data(41, drop), epochs=2, validation_data=data(17, drop), verbose=0, callbacks=callbacks).history]
  values.append(model.predict(data(19, drop), verbose=0, callbacks=callbacks).tolist())
  return values, [w.numpy().tolist() for w in model.weights]


def looped(strategy, wrap, dataset, prepare, peek=False):
  """Trains in a loop of one's own; returns its values and the step."""
  with strategy.scope():
    counts = tf.Variable(tf.zeros([50]), aggregation=tf.VariableAggregation.MEAN)

  def train(element):
    counts.assign_add(prepare(element, counts))
    return tf.reduce_sum(counts * tf.range(50.0))

  step = wrap(tf.function(lambda iterator: strategy.run(train, args=(next(iterator),))))
  distributed = strategy.distribute_datasets_from_function(lambda _: dataset)
  values, devices = [], []
  for _ in range(2):
    iterator = iter(distributed)
    if peek:
      next(iterator)
    with contextlib.suppress(tf.errors.OutOfRangeError):
      while True:
        values.append([v.numpy().tolist() for v in strategy.experimental_local_results(step(iterator))])
    devices.append([tf.DeviceSpec.from_string(name).device_type for name in iterator._iterators[0]._iterator._devices])
  return values, step, devices


def counted(words, _):
  flat = words.values if isinstance(words, tf.RaggedTensor) else words
  return tf.reduce_sum(tf.one_hot(tf.strings.to_hash_bucket_fast(flat, 50), 50), 0)


def explained(step):
  """Returns the parts of the records of a step by device, with the number of their tensors, and the report as text."""
  report, = tf.staging.explain(step).steps
  return {part.device[-5:]: len(part.tensors) for part in report.parts}, str(report)


def check_fit(gpus, cpus, **options):
  expected = trained(cpus, [], **options)
  callback = tf.staging.SmartStage()
  assert trained(gpus, [callback], **options) == expected
  assert {attribute: step.why_not for attribute, step in callback._steps.items()} == dict.fromkeys(
      ("train_function", "test_function", "predict_function"))


def case_models_that_look_words_up_train_on_several_gpus():
  check_fit(GPUS, CPUS, drop=False)
  check_fit(GPUS, CPUS, drop=True)


def case_several_steps_per_execution_on_several_gpus():
  check_fit(GPUS, CPUS, drop=False, steps_per_execution=2)


def case_models_that_look_words_up_train_on_one_gpu():
  check_fit(ONE_GPU, ONE_CPU, drop=False)


def case_backups_change_nothing_on_several_gpus():
  expected = trained(CPUS, [], drop=False)
  for callbacks in ([], [tf.staging.SmartStage()]):
    with tempfile.TemporaryDirectory() as folder:
      assert trained(GPUS, [tf.staging.BackupAndRestore(folder, save_freq=2), *callbacks], drop=False) == expected


def case_a_loop_of_ones_own_has_its_records_made_on_the_host():
  words = Dataset.from_tensor_slices(LETTERS)
  for dataset in (words.batch(2), words.batch(2, drop_remainder=True), words.repeat(3).ragged_batch(3)):
    expected, _, _ = looped(CPUS, lambda step: step, dataset, counted)
    values, step, devices = looped(GPUS, tf.staging.ahead, dataset, counted)
    assert values == expected, (values, expected)
    assert step.why_not is None, step.why_not
    assert devices == [["CPU", "CPU"]] * 2, devices
    divisions = [division for _, division in step._divisions.values()]
    nodes = [node for division in divisions for node in context.context().get_function_def(division.ahead).node_def]
    assert nodes
    assert [node.name for node in nodes if "GPU" in node.device] == []


def case_ragged_strings_fail_on_gpus_without_a_stage_and_train_with_it():
  pieces = Dataset.from_tensor_slices(["ab", "c", "def", "gh", "i"]).map(tf.strings.bytes_split).ragged_batch(1)
  expected, _, _ = looped(CPUS, lambda step: step, pieces, counted)
  values, step, _ = looped(GPUS, tf.staging.ahead, pieces, counted)
  assert values == expected, (values, expected)
  assert step.why_not is None, step.why_not
  with contextlib.suppress(tf.errors.InvalidArgumentError):
    looped(GPUS, lambda step: step, pieces, counted)
    raise AssertionError("TensorFlow trains with ragged strings on GPUs; docs/ahead.md says that it fails.")


def case_a_step_on_gpus_may_make_its_variables_from_the_data():

  def made(strategy, wrap):
    variables = []

    def train(words):
      if not variables:
        variables.append(tf.Variable(counted(words, None), aggregation=tf.VariableAggregation.MEAN))
      variables[0].assign_add(counted(words, None))
      return tf.reduce_sum(variables[0] * tf.range(50.0))

    step = wrap(tf.function(lambda iterator: strategy.run(train, args=(next(iterator),))))
    dataset = Dataset.from_tensor_slices(LETTERS).batch(1)
    iterator = iter(strategy.distribute_datasets_from_function(lambda _: dataset))
    values = [[float(v) for v in strategy.experimental_local_results(step(iterator))] for _ in range(4)]
    return values, step

  expected, _ = made(CPUS, lambda step: step)
  values, step = made(GPUS, tf.staging.ahead)
  assert values == expected, (values, expected)
  assert step.why_not is None, step.why_not


def case_an_iterator_that_was_read_before_stays_on_the_gpus():
  words = Dataset.from_tensor_slices(LETTERS * 3).batch(2)
  expected, _, _ = looped(CPUS, lambda step: step, words, counted, peek=True)
  values, step, devices = looped(GPUS, tf.staging.ahead, words, counted, peek=True)
  assert values == expected, (values, expected)
  assert "has read its iterator before" in step.why_not, step.why_not
  assert devices == [["GPU", "GPU"]] * 2, devices


def case_a_gpu_has_its_records_ahead_of_the_step():
  ctx = context.context()
  with tf.device("/gpu:1"):
    counts = tf.Variable(tf.zeros([50]))

  @tf.staging.ahead
  @tf.function
  def step(iterator):
    added = counted(next(iterator), None)
    with tf.device("/gpu:1"):
      counts.assign_add(added)

  iterator = iter(Dataset.from_tensor_slices(LETTERS * 3).batch(2))
  ctx.enable_run_metadata()
  placed = {}
  try:
    with contextlib.suppress(tf.errors.OutOfRangeError):
      while True:
        step(iterator)
        placed |= {
            node.op: node.device[-5:] for graph in ctx.export_run_metadata().partition_graphs for node in graph.node}
  finally:
    ctx.disable_run_metadata()
  assert step.why_not is None, step.why_not
  assert counts.numpy().tolist() == (3 * counted(tf.constant(LETTERS), None)).numpy().tolist()
  # What the step adds comes out of the buffer on the GPU: only the iterator itself crosses from the host.
  assert placed["StepBufferPut"] == "CPU:0" and placed["StepBufferTake"] == "GPU:1", placed
  assert "_Recv" not in placed, placed


def case_a_loop_over_the_iterator_is_delivered():
  ctx = context.context()
  with tf.device("/gpu:1"):
    counts = tf.Variable(tf.zeros([50]))

  @tf.staging.ahead
  @tf.function
  def all_of(iterator):
    for words in iterator:
      added = counted(words, None)
      with tf.device("/gpu:1"):
        counts.assign_add(added)

  ctx.enable_run_metadata()
  placed = {}
  try:
    for _ in range(2):
      all_of(iter(Dataset.from_tensor_slices(LETTERS * 3).batch(2)))
      placed |= {
          node.op: node.device[-5:] for graph in ctx.export_run_metadata().partition_graphs for node in graph.node}
  finally:
    ctx.disable_run_metadata()
  assert all_of.why_not is None, all_of.why_not
  assert counts.numpy().tolist() == (6 * counted(tf.constant(LETTERS), None)).numpy().tolist()
  # The record is taken in the loop on the host, and its tensors in the branch on the GPU.
  assert placed["StepBufferTakeIfAny"] == "CPU:0" and placed["StepBufferTake"] == "GPU:1", placed


def case_each_replica_has_its_share_ahead_of_the_step():
  ctx = context.context()
  with GPUS.scope():
    counts = tf.Variable(tf.zeros([50]), aggregation=tf.VariableAggregation.MEAN)

  @tf.staging.ahead
  @tf.function
  def step(iterator):
    GPUS.run(lambda words: counts.assign_add(counted(words, None), read_value=False), args=(next(iterator),))

  iterator = iter(GPUS.distribute_datasets_from_function(
      lambda _: Dataset.from_tensor_slices(LETTERS[:6] * 3).batch(2, drop_remainder=True)))
  ctx.enable_run_metadata()
  ops = {}
  try:
    with contextlib.suppress(tf.errors.OutOfRangeError):
      while True:
        step(iterator)
        for graph in ctx.export_run_metadata().partition_graphs:
          for node in graph.node:
            ops.setdefault(node.device[-5:], set()).add(node.op)
  finally:
    ctx.disable_run_metadata()
  assert step.why_not is None, step.why_not
  # One replica has the Take, and the other its share: only iterators cross from the host.
  on_gpus = ops["GPU:0"], ops["GPU:1"]
  assert sorted("StepBufferTake" in of_gpu for of_gpu in on_gpus) == [False, True], ops
  assert sorted("RecordShare" in of_gpu for of_gpu in on_gpus) == [False, True], ops
  assert not any("_Recv" in of_gpu for of_gpu in on_gpus), ops
  devices, text = explained(step)
  assert {"GPU:0": 1, "GPU:1": 1}.items() <= devices.items(), text


def case_a_loop_over_the_iterator_of_several_gpus():

  def totals(strategy, wrap, dataset):
    with strategy.scope():
      counts = tf.Variable(tf.zeros([50]), aggregation=tf.VariableAggregation.MEAN)

    @wrap
    @tf.function
    def some(iterator):
      steps = tf.constant(0)
      for words in iterator:
        strategy.run(lambda words: counts.assign_add(counted(words, None), read_value=False), args=(words,))
        steps += 1
        if steps == 3:
          break
      return steps

    iterator = iter(strategy.distribute_datasets_from_function(lambda _: dataset))
    got = [int(some(iterator)) for _ in range(3)]
    return got, [of_replica.numpy().tolist() for of_replica in strategy.experimental_local_results(counts)], some

  for dataset in Dataset.from_tensor_slices(LETTERS).batch(2), Dataset.from_tensor_slices(LETTERS).batch(2).repeat():
    for gpus, cpus in (GPUS, CPUS), (ONE_GPU, ONE_CPU):
      *expected, _ = totals(cpus, lambda step: step, dataset)
      *got, step = totals(gpus, tf.staging.ahead, dataset)
      assert got == expected, (got, expected)
      assert step.why_not is None, step.why_not
      devices, text = explained(step)
      assert devices.keys() >= ({"GPU:0", "GPU:1"} if gpus is GPUS else {"GPU:1"}), text


def case_explain_says_what_waits_on_which_gpu():
  """The words are used on the host, their counts on one GPU or on both."""
  with tf.device("/gpu:0"):
    first = tf.Variable(tf.zeros([50]))
  with tf.device("/gpu:1"):
    second = tf.Variable(tf.zeros([50]))

  def step(iterator, on_both):
    words = next(iterator)
    added = counted(words, None)
    with tf.device("/gpu:1"):
      second.assign_add(added)
    if on_both:
      with tf.device("/gpu:0"):
        first.assign_add(added)
    return tf.strings.join([words, tf.strings.as_string(tf.cast(first[0], tf.int64))])

  for on_both, expected in (False, {"host": 1, "GPU:1": 1}), (True, {"host": 1, "GPU:0": 1, "GPU:1": 1}):
    wrapped = tf.staging.ahead(tf.function(lambda iterator, on_both=on_both: step(iterator, on_both)))
    iterator = iter(Dataset.from_tensor_slices(LETTERS * 3).batch(2))
    wrapped(iterator)
    devices, text = explained(wrapped)
    assert devices == expected, (devices, text)
    assert "on /device:GPU:1: " in text and "Sum:0 (float32, shape (50,))" in text, text
    # It is what the steps have taken, so it stays as it is when there is no stage any more.
    wrapped.stop()
    assert explained(wrapped)[0] == expected


def case_a_signature_may_name_the_gpus():
  dataset = Dataset.from_tensor_slices(LETTERS).batch(2, drop_remainder=True)
  distributed = GPUS.experimental_distribute_dataset(dataset)
  steps = tf.Variable(0)

  @tf.staging.ahead
  @tf.function(input_signature=[iter(distributed)._type_spec])
  def step(iterator):
    steps.assign_add(1)
    return GPUS.run(lambda words: counted(words, None), args=(next(iterator),))

  got = GPUS.experimental_local_results(step(iter(distributed)))
  assert [float(tf.reduce_sum(of_replica)) for of_replica in got] == [1.0, 1.0], got
  assert step.why_not is None, step.why_not


def case_iterators_of_what_cannot_be_staged_stay_on_the_gpus():
  numbers = Dataset.from_tensor_slices(tf.ones([7, 50])).batch(1, drop_remainder=True).map(lambda row: row[0])
  expected, _, _ = looped(CPUS, lambda step: step, numbers, lambda row, counts: row * (1 + counts))
  values, step, devices = looped(GPUS, tf.staging.ahead, numbers, lambda row, counts: row * (1 + counts))
  assert values == expected, (values, expected)
  assert "nothing that follows the data can run ahead" in step.why_not, step.why_not
  assert devices == [["GPU", "GPU"]] * 2, devices


if __name__ == "__main__":
  cases.main(globals())
