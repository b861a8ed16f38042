# SPDX-License-Identifier: Apache-2.0
"""`tf.distribute` strategies with stages, compared with the same without; run by ahead/ahead_test.py."""

import contextlib
import logging
import sys
import tempfile

import cases
import interrupts
import loopback
import numpy as np
import tensorflow as tf

from tensorflow_staging.python.backup import backup_files

tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
layers = tf.keras.layers
_RANDOM = np.random.RandomState(0)
WORDS = _RANDOM.choice(list("abcdefg"), [40, 3])
TARGETS = _RANDOM.rand(40, 1).astype(np.float32)


def data(rows=40):
  return tf.data.Dataset.from_tensor_slices((WORDS[:rows], TARGETS[:rows])).shuffle(16, seed=3).batch(8)


def model_of(strategy, **options):
  tf.keras.backend.clear_session()
  tf.keras.utils.set_random_seed(5)
  with strategy.scope():
    words = tf.keras.Input((3,), dtype=tf.string)
    embedded = layers.Flatten()(layers.Embedding(50, 4)(layers.Hashing(50)(words)))
    model = tf.keras.Model(words, layers.Dense(1)(embedded))
    model.compile("adam", "mse", metrics=["mae"], **options)
  return model


def trained(strategy, callbacks, **options):
  model = model_of(strategy, **options)
  values = [model.fit(data(), epochs=3, validation_data=data(16), verbose=0, callbacks=callbacks).history]
  values.append(model.evaluate(data(), verbose=0, callbacks=callbacks))
  values.append(model.predict(data(), verbose=0, callbacks=callbacks).tolist())
  return values, [w.numpy().tolist() for w in model.weights]


def looped(strategy, wrap):
  """Trains in a loop of one's own; returns its values and the step."""
  with strategy.scope():
    counts = tf.Variable(tf.zeros([50]), aggregation=tf.VariableAggregation.MEAN)

  def train(words):
    ids = tf.strings.to_hash_bucket_fast(words, 50)
    counts.assign_add(tf.reduce_sum(tf.one_hot(ids, 50), 0))
    return tf.reduce_sum(counts * tf.range(50.0))

  step = wrap(tf.function(lambda iterator: strategy.run(train, args=(next(iterator),))))
  distributed = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(list("abcdabcd")).batch(2))
  values = []
  for _ in range(2):
    iterator = iter(distributed)
    with contextlib.suppress(tf.errors.OutOfRangeError):
      while True:
        values.append([v.numpy().tolist() for v in strategy.experimental_local_results(step(iterator))])
  return values, step


@contextlib.contextmanager
def lines():
  """The lines that TensorFlow's logger gets meanwhile."""
  got = []
  handler = logging.Handler()
  handler.emit = lambda record: got.append(record.getMessage())
  tf.get_logger().addHandler(handler)
  try:
    yield got
  finally:
    tf.get_logger().removeHandler(handler)


def compare(strategy, **options):
  expected = trained(strategy, [], **options)
  callback = tf.staging.SmartStage()
  assert trained(strategy, [callback], **options) == expected
  reasons = {attribute: step.why_not for attribute, step in callback._steps.items()}
  assert reasons == dict.fromkeys(("train_function", "test_function", "predict_function")), reasons
  expected, _ = looped(strategy, lambda step: step)
  values, step = looped(strategy, tf.staging.ahead)
  assert values == expected, (values, expected)
  assert step.why_not is None, step.why_not


def fit_with_moving_averages(strategy, callbacks):
  """Trains with ragged and sparse data, of which one replica has no part in the last step of an epoch."""
  tf.keras.backend.clear_session()
  tf.keras.backend.experimental.enable_tf_random_generator()
  tf.keras.utils.set_random_seed(5)
  with strategy.scope():
    words, counts = tf.keras.Input((None,), ragged=True, dtype=tf.string), tf.keras.Input((4,), sparse=True)
    known = layers.StringLookup(vocabulary=list("abcdefg"), output_mode="multi_hot")(words)
    joined = layers.Concatenate()([known, layers.Dense(2)(counts)])
    outputs = layers.Dense(1)(layers.Dropout(0.3)(layers.BatchNormalization()(joined)))
    model = tf.keras.Model([words, counts], outputs)
    model.compile("adam", "mse", metrics=["mae"])
  ragged = tf.RaggedTensor.from_row_lengths(WORDS[:, 0], [1, 3, 0, 4] * 5)
  rows = tf.data.Dataset.from_tensor_slices(((ragged, tf.sparse.from_dense(tf.eye(20, 4))), TARGETS[:20]))
  history = model.fit(rows.shuffle(9, seed=3).batch(6), epochs=3, verbose=0, callbacks=callbacks).history
  return {name: values[-1] for name, values in history.items()}, [w.numpy().tolist() for w in model.weights]


def case_one_device_is_staged():
  compare(tf.distribute.OneDeviceStrategy("/cpu:0"))


def case_an_interrupted_fit_goes_on_with_what_each_replica_has():
  # Without collective ops, whose groups of devices would be in the way of the other cases.
  strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"], tf.distribute.ReductionToOneDevice())
  expected = fit_with_moving_averages(strategy, [])
  for callbacks in ([], [tf.staging.SmartStage()]):
    with tempfile.TemporaryDirectory() as folder:
      for after in (6, 3):
        with contextlib.suppress(InterruptedError):
          fit_with_moving_averages(
              strategy, [tf.staging.BackupAndRestore(folder, save_freq=1), *callbacks, interrupts.Interrupts(after)])
          raise AssertionError("It was not interrupted.")
      got = fit_with_moving_averages(strategy, [tf.staging.BackupAndRestore(folder, save_freq=1), *callbacks])
    assert got == expected, (got, expected)


def case_one_device_with_several_steps_per_execution_is_staged():
  compare(tf.distribute.OneDeviceStrategy("/cpu:1"), steps_per_execution=2)


def case_the_threads_of_one_device_end_with_its_iterator():
  strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
  step = tf.staging.ahead(tf.function(lambda iterator: tf.strings.length(next(iterator))))
  # A generator, which must live as long as the threads.
  dataset = tf.data.Dataset.from_generator(
      lambda: iter("abc" * 1000), output_signature=tf.TensorSpec([], tf.string))
  for _ in range(3):
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    assert int(step(iterator)) == 1
    assert len(step.stages()) == 1
    del iterator
    assert not step.stages()


def case_mirrored_strategies_are_staged():
  compare(tf.distribute.MirroredStrategy(["/cpu:0"]))
  compare(tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]))


def case_a_mirrored_strategy_with_several_steps_per_execution_is_staged():
  compare(tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]), steps_per_execution=2)


def case_a_fit_does_not_go_on_without_the_other_workers():
  with tempfile.TemporaryDirectory() as folder:
    of_worker = backup_files.BackupFiles(f"{folder}/worker-0-of-2")
    of_worker.write(value=tf.Variable(1))
    of_worker.commit()
    model = model_of(tf.distribute.get_strategy())
    try:
      model.fit(data(), verbose=0, callbacks=[tf.staging.BackupAndRestore(folder)])
      raise AssertionError("It trains.")
    except ValueError as error:
      assert "another number of workers than 1" in str(error), error


def case_a_multi_worker_strategy_with_one_worker_is_staged():
  # Such a strategy must be the first thing of a program.
  (status, _), = loopback.run_workers([__file__, "case__multi_worker"], 1, seconds=200)
  assert status == 0


def case_parameter_servers_train_unstaged():
  worker, ps = loopback.free_ports(2)
  cluster = tf.train.ClusterSpec({"worker": [f"127.0.0.1:{worker}"], "ps": [f"127.0.0.1:{ps}"]})
  servers = [tf.distribute.Server(cluster, job_name=job, task_index=0, protocol="grpc") for job in ("worker", "ps")]
  strategy = tf.distribute.ParameterServerStrategy(
      tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc"))

  def train(callbacks, **options):
    model = model_of(strategy, **options)
    endless = data().repeat()
    history = model.fit(
        endless, epochs=2, steps_per_epoch=4, validation_data=endless, validation_steps=2, verbose=0,
        callbacks=callbacks).history
    return history, [w.numpy().tolist() for w in model.weights]

  for options in ({}, {"steps_per_execution": 2}):
    expected = train([], **options)
    with lines() as got:
      assert train([tf.staging.SmartStage()], **options) == expected
    told = [line for line in got if "a ParameterServerStrategy runs its steps in the processes of its workers" in line]
    assert len(told) == 2, got
  # Its coordinator takes only a tf.function.
  coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
  step = tf.staging.ahead(tf.function(lambda: tf.constant(3)))
  with contextlib.suppress(TypeError):
    coordinator.schedule(step)
    raise AssertionError("It took a step with a stage.")
  assert coordinator.schedule(step.step).fetch() == 3
  del servers


def case_the_position_in_data_that_others_deal_is_not_saved():
  strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
  dealt = strategy.distribute_datasets_from_function(lambda _: data().repeat())
  with tempfile.TemporaryDirectory() as folder:
    try:
      model_of(strategy).fit(dealt, steps_per_epoch=2, verbose=0, callbacks=[tf.staging.BackupAndRestore(folder)])
      raise AssertionError("It trains.")
    except ValueError as error:
      assert "that a tf.distribute strategy deals" in str(error), error


if __name__ == "__main__":
  if sys.argv[1:] == ["case__multi_worker"]:
    compare(tf.distribute.MultiWorkerMirroredStrategy())
  else:
    cases.main(globals())
