# SPDX-License-Identifier: Apache-2.0
"""`MultiWorkerMirroredStrategy` with stages, compared with the same without; run by ahead/ahead_test.py.

Two processes run the cases, each as a worker with data of its own.
"""

import contextlib
import json
import os
import pathlib
import shutil
import tempfile

import numpy as np
import tensorflow as tf
import worker_cases

from tensorflow_staging.python.backup import backup_files
from tensorflow_staging.python.backup import worker_files

tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.
layers = tf.keras.layers
_ONE_ELEMENT = "its data has one element, so there is nothing to read ahead"
_READ_IN_A_CALL = (
    "a function that it calls reads the iterator, and asks the other workers there whether they have data")
_ASKS_FOR_AN_OPTIONAL = "it asks the other workers whether there is an element, and goes on if there is none"


if "TF_CONFIG" in os.environ:
  # It must be the first thing of a program.
  STRATEGY = tf.distribute.MultiWorkerMirroredStrategy()
  INDEX = json.loads(os.environ["TF_CONFIG"])["task"]["index"]


def trained(dataset, wrap, *, loops=False, calls=False, epochs=2, steps=None):
  """Trains in a loop of one's own; returns its values, and the step.

  Args:
    dataset: The data of this worker.
    wrap: What is done to the step.
    loops: Whether a call of the step makes two.
    calls: Whether the step calls the function that reads.
    epochs: How often the data is read.
    steps: How many calls an epoch has; None for as many as there is data for.
  """
  with STRATEGY.scope():
    counts = tf.Variable(tf.zeros([50]))

  def train(words):
    ids = hashed(words)
    total = tf.distribute.get_replica_context().all_reduce("sum", tf.reduce_sum(tf.one_hot(ids, 50), 0))
    counts.assign_add(total)
    return tf.reduce_sum(counts * tf.range(50.0)), tf.size(words)

  def one_step(iterator):
    return STRATEGY.run(train, args=(next(iterator),))

  def two_steps(iterator):
    for _ in tf.range(2):
      one_step(iterator)
    return counts.read_value(), tf.constant(0)

  called = tf.function(one_step)
  step = wrap(tf.function(two_steps if loops else lambda iterator: called(iterator) if calls else one_step(iterator)))
  distributed = STRATEGY.distribute_datasets_from_function(lambda _: dataset)
  values = []
  for _ in range(epochs):
    iterator = iter(distributed)
    with contextlib.suppress(tf.errors.OutOfRangeError):
      while steps is None or len(values) < steps:
        loss, size = step(iterator)
        values.append((loss.numpy().tolist(), int(size)))
  return values, counts.numpy().tolist(), step


def hashed(words):
  return tf.strings.to_hash_bucket_fast(words, 50)


def letters(number):
  return tf.data.Dataset.from_tensor_slices(tf.constant(list("abcdefghi")[:number], tf.string, [number])).batch(2)


def compare(dataset, *, why_not=None, **options):
  """Trains without a stage and with one, unless `why_not` says why not; returns the values of both."""
  *expected, _ = trained(dataset, lambda step: step, **options)
  *got, step = trained(dataset, tf.staging.ahead, **options)
  assert got == expected, (got, expected)
  assert step.why_not == why_not, step.why_not
  for _, division in step._divisions.values():
    if why_not is None:
      assert "StringToHashBucketFast" in division.definition_ahead
      assert "Collective" not in division.definition_ahead
  return got[0]


def case_a_loop_is_staged():
  values = compare(letters(8))
  assert len(values) == 8


def case_workers_end_when_none_has_data():
  values = compare(letters(4 if INDEX else 9))
  # The last step of the worker that has more is not full; the other one has none left.
  assert [size for _, size in values] == 2 * ([2, 2, 0, 0, 0] if INDEX else [2, 2, 2, 2, 1])


def case_a_worker_without_data_takes_part():
  # It has nothing to read ahead, so only the other one has a stage.
  values = compare(letters(4 if INDEX else 0), why_not=None if INDEX else _ONE_ELEMENT)
  assert [size for _, size in values] == 2 * ([2, 2] if INDEX else [0, 0])


def case_endless_data_is_staged():
  values = compare(letters(6).repeat(), epochs=1, steps=7)
  assert len(values) == 7


def case_several_steps_in_a_call_are_staged():
  compare(letters(8), loops=True)


def case_a_read_in_a_call_is_not_staged():
  compare(letters(8), calls=True, why_not=_READ_IN_A_CALL)


def case_a_loop_over_the_iterator_is_staged_if_it_has_no_end():

  def totals(wrap, dataset):

    @wrap
    @tf.function
    def some(iterator):
      total, steps = tf.constant(0, tf.int64), tf.constant(0)
      for words in iterator:
        for ids in STRATEGY.experimental_local_results(STRATEGY.run(hashed, args=(words,))):
          total += tf.reduce_sum(ids)
        steps += 1
        if steps == 2:
          break
      return total, steps

    iterator = iter(STRATEGY.distribute_datasets_from_function(lambda _: dataset))
    return [tuple(value.numpy().tolist() for value in some(iterator)) for _ in range(3)], some

  for dataset, why_not in (letters(5).repeat(), None), (letters(5 if INDEX else 3), _ASKS_FOR_AN_OPTIONAL):
    expected, _ = totals(lambda step: step, dataset)
    got, step = totals(tf.staging.ahead, dataset)
    assert got == expected, (got, expected)
    assert step.why_not == why_not, step.why_not


def data(rows):
  """Returns the data of all workers, of which Keras gives each every other row."""
  random = np.random.RandomState(0)
  words, targets = random.choice(list("abcdefg"), [rows, 3]), random.rand(rows, 1).astype(np.float32)
  return tf.data.Dataset.from_tensor_slices((words, targets)).shuffle(16, seed=3).batch(8)


def fitted(callbacks, **options):
  """Trains a model with data of which the first worker has a step more; returns its values."""
  tf.keras.backend.clear_session()
  tf.keras.utils.set_random_seed(5)
  with STRATEGY.scope():
    words = tf.keras.Input((3,), dtype=tf.string)
    embedded = layers.Flatten()(layers.Embedding(50, 4)(layers.Hashing(50)(words)))
    model = tf.keras.Model(words, layers.Dense(1)(embedded))
    model.compile("adam", "mse", metrics=["mae"], **options)
  history = model.fit(data(41), epochs=2, validation_data=data(17), verbose=0, callbacks=callbacks).history
  scores = model.evaluate(data(25), verbose=0, callbacks=callbacks)
  return history, scores, [w.numpy().tolist() for w in model.weights]


def compare_fits(**options):
  expected = fitted([], **options)
  callback = tf.staging.SmartStage()
  assert fitted([callback], **options) == expected
  reasons = {attribute: step.why_not for attribute, step in callback._steps.items()}
  assert reasons == {"train_function": None, "test_function": None}, reasons


def case_fit_and_evaluate_are_staged():
  compare_fits()


def case_fit_and_evaluate_are_staged_with_several_steps_per_execution():
  compare_fits(steps_per_execution=2)


def backups(folder):
  """Returns the files of the backups of a `fit` that begins, and the backup that it goes on with."""
  files = worker_files.files_of(folder, STRATEGY)
  return files, files.begin()


def fails(error_type, function):
  """Returns the message of the error with which a call fails for all workers."""
  try:
    function()
  except error_type as error:
    return str(error)
  raise AssertionError("It does not fail.")


def case_workers_go_on_with_the_latest_backup_that_one_of_them_has_committed():
  # Each worker has a folder that the other one does not see.
  with tempfile.TemporaryDirectory() as folder:
    files, path = backups(folder)
    assert path is None
    value = tf.Variable(1)
    files.write(value=value)
    files.commit()
    value.assign(2)
    files.write(value=value)
    if INDEX == 0:
      # The other one is killed here.
      files.commit()
    value.assign(3)
    files, path = backups(folder)
    backup_files.read(path, value=value)
    assert int(value) == 2
    if INDEX == 0:
      # This one is killed while they delete their backups.
      files.uncommit()
    files, path = backups(folder)
    value.assign(3)
    backup_files.read(path, value=value)
    assert int(value) == 2
    files.delete()
    assert backups(folder)[1] is None
    assert os.listdir(folder) == []


def case_all_workers_fail_if_one_lacks_its_backup():
  with tempfile.TemporaryDirectory() as folder:
    files, _ = backups(folder)
    files.write(value=tf.Variable(1))
    files.commit()
    if INDEX == 1:
      shutil.rmtree(files.folder)
    error = fails(ValueError, lambda: backups(folder))
    assert "The workers [1] lack the backup" in error, error


def case_all_workers_fail_if_one_has_a_backup_of_another_number_of_workers():
  with tempfile.TemporaryDirectory() as folder:
    if INDEX == 1:
      alone = worker_files.files_of(folder, tf.distribute.get_strategy())
      alone.write(value=tf.Variable(1))
      alone.commit()
    error = fails(ValueError, lambda: backups(folder))
    assert "another number of workers than 2" in error, error


def case_all_workers_fail_if_one_cannot_write_its_backup():
  with tempfile.TemporaryDirectory() as folder:
    files, _ = backups(folder)
    if INDEX == 1:
      # In the place of the folder.
      pathlib.Path(files.folder).touch()
    error = fails(RuntimeError, lambda: files.write(value=tf.Variable(1)))
    assert error == "The workers [1] could not write their backups.", error


if __name__ == "__main__":
  worker_cases.main(globals())
