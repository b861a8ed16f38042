# SPDX-License-Identifier: Apache-2.0
"""`tensorflow_staging.BackupAndRestore` with Keras 3, within one process."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tensorflow_staging
from tensorflow_staging.python.backup import backup_files
from tensorflow_staging.python.backup import iterator_state

_ROWS = 48


class _Stop(keras.callbacks.Callback):
  """Ends a `fit` with an exception after some steps."""

  def __init__(self, after: int):
    super().__init__()
    self._left = after

  def on_train_batch_end(self, batch, logs=None):
    self._left -= 1
    if self._left == 0:
      raise InterruptedError


def _fit(callbacks, several: int = 1, data=None, targets=None):
  keras.utils.set_random_seed(3)
  words = keras.Input((), dtype="string")
  ids = keras.layers.Hashing(20)(words)
  hidden = keras.layers.Dropout(0.2)(keras.layers.Flatten()(keras.layers.Embedding(20, 4)(ids)))
  model = keras.Model(words, keras.layers.Dense(1)(hidden))
  model.compile("adam", "mse", metrics=["mae", keras.metrics.AUC(name="auc")], steps_per_execution=several)
  rows = tf.data.Dataset.from_tensor_slices((np.arange(_ROWS).astype(str), np.arange(_ROWS) % 2))
  if data is None:
    data = rows.shuffle(20, seed=7).batch(4)
  history = model.fit(
      data, targets, batch_size=None if targets is None else 4, epochs=3, verbose=0, callbacks=callbacks,
      validation_data=rows.batch(4).take(2)).history
  return history, model.get_weights()


def _assert_same(one, other) -> None:
  (history, weights), (other_history, other_weights) = one, other
  assert history == other_history
  for mine, others in zip(weights, other_weights, strict=True):
    np.testing.assert_array_equal(mine, others)


@pytest.mark.parametrize("save_freq", [1, 5, "epoch"])
def test_backups_change_nothing(save_freq, tmp_path):
  _assert_same(_fit([tensorflow_staging.BackupAndRestore(tmp_path, save_freq)]), _fit([]))
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("several, save_freq, stops", [(1, "epoch", (15, 3)), (1, 1, (1, 2, 11, 1)), (4, 4, (2, 3, 3))])
@pytest.mark.parametrize("is_staged", [False, True])
def test_an_interrupted_fit_goes_on(several, save_freq, stops, is_staged, tmp_path):
  def callbacks():
    staged = [tensorflow_staging.SmartStage()] if is_staged else []
    return [*staged, tensorflow_staging.BackupAndRestore(tmp_path, save_freq)]

  for after in stops:
    with pytest.raises(InterruptedError):
      _fit([*callbacks(), _Stop(after)], several)
  history, weights = _fit(callbacks(), several)
  expected, expected_weights = _fit([], several)
  # Of the epochs that the last fit has ended.
  assert history == {name: values[-len(history["loss"]):] for name, values in expected.items()}
  _assert_same(({}, weights), ({}, expected_weights))


@pytest.mark.parametrize("is_staged", [False, True])
def test_the_epoch_of_shuffled_arrays_goes_on_in_its_order(is_staged, tmp_path):
  words, targets = tf.constant(np.arange(_ROWS).astype(str)), np.arange(_ROWS) % 2

  def callbacks():
    staged = [tensorflow_staging.SmartStage()] if is_staged else []
    return [*staged, tensorflow_staging.BackupAndRestore(tmp_path, 5)]

  with pytest.raises(InterruptedError):
    _fit([*callbacks(), _Stop(17)], data=words, targets=targets)
  history, weights = _fit(callbacks(), data=words, targets=targets)
  expected, expected_weights = _fit([], data=words, targets=targets)
  assert history == {name: values[-2:] for name, values in expected.items()}
  _assert_same(({}, weights), ({}, expected_weights))


def test_another_number_of_steps_in_a_call_is_refused(tmp_path):
  with pytest.raises(InterruptedError):
    _fit([tensorflow_staging.BackupAndRestore(tmp_path, 1), _Stop(3)])
  with pytest.raises(ValueError, match="the same steps_per_execution"):
    _fit([tensorflow_staging.BackupAndRestore(tmp_path)], several=4)


def test_another_model_is_refused(tmp_path):
  data = tf.data.Dataset.from_tensor_slices((np.ones((8, 1)), np.ones((8, 1)))).batch(2)
  model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
  model.compile("sgd", "mse")
  model.fit(data, verbose=0, callbacks=[tensorflow_staging.BackupAndRestore(tmp_path, delete_checkpoint=False)])
  with pytest.raises(ValueError, match="compile it as it was"):
    _fit([tensorflow_staging.BackupAndRestore(tmp_path)])


class _RateOfStep(keras.callbacks.Callback):
  """Sets what a step reads, as it begins."""

  def on_train_batch_begin(self, batch, logs=None):
    self.model.optimizer.learning_rate.assign(self.model.optimizer.learning_rate * (0.9 if batch % 2 else 1.1))


def _fit_halving(callbacks):
  """Trains two epochs, each of which halves the learning rate as it begins, and whose steps change it."""
  keras.utils.set_random_seed(3)
  rows = tf.data.Dataset.from_tensor_slices((np.random.rand(24, 2), np.random.rand(24, 1))).batch(2)
  model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
  model.compile(keras.optimizers.SGD(0.5), "mse")
  halving = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
  # Callbacks before and after the backup's.
  each_step = _RateOfStep()
  model.fit(rows, epochs=2, verbose=0, callbacks=[halving, each_step, *callbacks, halving, each_step])
  return {}, [*model.get_weights(), model.optimizer.learning_rate.numpy()]


def test_the_beginning_of_an_epoch_counts_once(tmp_path):
  backup = lambda: tensorflow_staging.BackupAndRestore(tmp_path, 1)
  for after in (15, 2):
    with pytest.raises(InterruptedError):
      _fit_halving([backup(), _Stop(after)])
  _assert_same(_fit_halving([backup()]), _fit_halving([]))


def _fit_once(data, callbacks, width: int = 2):
  model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(width), keras.layers.Dense(1)])
  model.compile("sgd", "mse")
  model.fit(data, verbose=0, callbacks=callbacks)


@pytest.mark.parametrize("change, width, message", [
    (lambda data: data.shuffle(3), 2, "written with other data"),
    (lambda data: data, 3, "that of another model"),
])
def test_a_backup_of_other_data_or_of_another_model_is_refused(change, width, message, tmp_path):
  data = tf.data.Dataset.from_tensor_slices((np.ones((16, 1)), np.ones((16, 1)))).batch(2)
  with pytest.raises(InterruptedError):
    _fit_once(data, [tensorflow_staging.BackupAndRestore(tmp_path, 1), _Stop(4)])
  with pytest.raises(ValueError, match=message):
    _fit_once(change(data), [tensorflow_staging.BackupAndRestore(tmp_path, 1)], width)


@pytest.mark.parametrize("rows, message", [
    (4, "step 3 .* give fit the same data"),
    (6, "step 3 of epoch 0, and the data of this fit has no further step"),
])
def test_a_backup_of_longer_data_is_refused(rows, message, tmp_path):
  data = lambda rows: tf.data.Dataset.from_tensor_slices((np.ones((rows, 1)), np.ones((rows, 1)))).batch(2)
  with pytest.raises(InterruptedError):
    _fit_once(data(16), [tensorflow_staging.BackupAndRestore(tmp_path, 1), _Stop(4)])
  with pytest.raises(ValueError, match=message):
    _fit_once(data(rows), [tensorflow_staging.BackupAndRestore(tmp_path, 1)])


def _rows():
  yield from ((str(i), i % 2) for i in range(_ROWS))


@pytest.mark.parametrize("data", [
    lambda: tf.data.Dataset.from_generator(
        _rows, output_signature=(tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.int64))).batch(4),
    lambda: tf.data.Dataset.range(_ROWS).map(lambda i: (tf.as_string(tf.random.uniform([])), i % 2)).batch(4)])
def test_data_whose_position_cannot_be_saved_is_refused_at_the_first_step(data, tmp_path):
  callback = tensorflow_staging.BackupAndRestore(tmp_path)
  with pytest.raises(ValueError, match="cannot save the position in the data of this fit"):
    _fit([callback], data=data())


def test_only_a_committed_backup_counts(tmp_path):
  files, number = backup_files.BackupFiles(str(tmp_path)), tf.Variable(1)
  files.write(number=number)
  assert files.latest() is None
  files.commit()
  first = files.latest()
  number.assign(2)
  files.write(number=number)
  # The process is killed here, and another one finds the first backup, and later deletes what the killed one has left.
  files = backup_files.BackupFiles(str(tmp_path))
  assert files.latest() == first
  backup_files.read(first, number=number)
  assert int(number) == 1
  files.write(number=number)
  files.commit()
  assert {path.name.partition(".")[0] for path in tmp_path.iterdir()} == {"checkpoint", "backup-2"}
  files.delete()
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments, error, text", [
    ((3,), TypeError, "backup_dir must be a path"), (("",), ValueError, "backup_dir must not be empty"),
    (("a", "batch"), TypeError, "save_freq must be 'epoch' or an integer"),
    (("a", 0), ValueError, "save_freq must be at least 1"), (("a", True), TypeError, "save_freq"),
    (("a", 1, 1), TypeError, "delete_checkpoint must be a bool")])
def test_wrong_arguments(arguments, error, text):
  with pytest.raises(error, match=text):
    tensorflow_staging.BackupAndRestore(*arguments)


def test_the_callback_without_parentheses():
  with pytest.raises(TypeError, match=r"Write tensorflow_staging.BackupAndRestore\(\)"):
    _fit([tensorflow_staging.BackupAndRestore])


def test_data_that_tf_data_does_not_read_is_an_error():
  with pytest.raises(ValueError, match="that tf.data does not read. Keras's backend must be TensorFlow"):
    iterator_state.IteratorState(iter([1, 2]))
