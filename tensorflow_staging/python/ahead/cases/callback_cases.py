# SPDX-License-Identifier: Apache-2.0
"""What people do with the callback `tf.staging.SmartStage()` beside one `fit`; run by ahead/ahead_test.py."""

import copy
import gc
import pickle
import subprocess
import sys
from unittest import mock

import cases
import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python.ahead import iterator_stage
from tensorflow_staging.python.api_name import API

tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.
layers = tf.keras.layers
ROWS = 24
NUMBERS = np.random.RandomState(0).rand(ROWS, 3).astype(np.float32)
TEXTS = NUMBERS.astype(str)
TARGETS = NUMBERS.sum(1, keepdims=True)
EARLY_STOPPING = tf.keras.callbacks.EarlyStopping("loss", patience=9)


def data(texts=TEXTS):
  return tf.data.Dataset.from_tensor_slices((texts, TARGETS)).batch(4)


def hashing():
  return compiled(layers.Hashing(8, output_mode="multi_hot"))


def compiled(*preparing, **options):
  tf.keras.backend.clear_session()
  tf.keras.utils.set_random_seed(5)
  model = tf.keras.Sequential([*preparing, layers.Dense(1)])
  model.compile("sgd", "mse", **options)
  return model


def fit(callbacks, build=hashing, **options):
  """Returns the losses of a new model, and its weights."""
  model = build()
  history = model.fit(data(), **{"epochs": 2, "verbose": 0, **options}, callbacks=callbacks).history
  return history, [weight.tolist() for weight in model.get_weights()]


class NamedStage(type(tf.staging.SmartStage())):
  """A callback of a program's own."""

  def __init__(self, label, **options):
    super().__init__(**options)
    self.label = label


def _copies():
  yield "copy", copy.copy
  yield "deepcopy", copy.deepcopy
  for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    yield f"pickle {protocol}", lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol))


def case_the_callback_is_copied_before_and_after_a_fit():
  expected = fit([])
  for callback in (tf.staging.SmartStage(3, num_threads=2), NamedStage(["a"], capacity=4)):
    for _ in range(2):
      for how, make in _copies():
        made = make(callback)
        assert type(made) is type(callback) and made is not callback, how
        assert (made._options, made._steps, made.model) == (callback._options, {}, None), how
        assert getattr(made, "label", None) == getattr(callback, "label", None), how
      assert fit([callback]) == expected
    assert callback.steps() and fit([copy.deepcopy(callback)]) == expected
    assert fit(copy.deepcopy([EARLY_STOPPING, callback])) == expected


def case_the_callback_is_copied_within_a_fit():
  stage, copies = tf.staging.SmartStage(), []
  each = tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda *_: copies.append(copy.deepcopy(stage)))
  assert fit([stage, each]) == fit([])
  assert all(not made.steps() for made in copies)


def case_another_process_reads_a_pickled_callback_first():
  written = pickle.dumps(tf.staging.SmartStage(capacity=3))
  program = f"import pickle; print(pickle.loads({written!r})._options['capacity'])"
  done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
  assert done.stdout.strip() == "3", done.stderr


def case_arguments_of_a_callback_of_ones_own_are_checked():
  try:
    NamedStage("a", capacity=0)
  except ValueError as error:
    assert "capacity" in str(error) and "got 0" in str(error), error
  else:
    raise AssertionError("A capacity of 0 was taken.")


class Centered(layers.Layer):
  """Its variable begins with the mean of the first batch."""

  mean = None

  def call(self, texts):
    numbers = tf.strings.to_number(texts)
    if self.mean is None:
      self.mean = tf.Variable(tf.reduce_mean(numbers, 0))
    return numbers - self.mean


class CenteredModel(tf.keras.Model):

  def __init__(self, *also):
    super().__init__()
    self.parts = [Centered(), *also, layers.Dense(1)]

  def call(self, values, training=None):
    for part in self.parts:
      values = part(values, training=training) if isinstance(part, layers.Dropout) else part(values)
    return values


def case_the_first_step_makes_variables_from_the_data():
  def build(*also):
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(5)
    model = CenteredModel(*also)
    model.compile("sgd", "mse")
    return model

  for make in (build, lambda: build(layers.Dropout(0.3))):
    callback = tf.staging.SmartStage()
    assert fit([callback], make, validation_data=data()) == fit([], make, validation_data=data())
    step = callback._steps["train_function"]
    assert step.why_not is None and step.counts().buffer["taken"] > 0, step.why_not


def case_models_that_are_dropped_leave_no_functions():

  def functions():
    gc.collect()
    return set(context.context().list_function_names())

  fit([tf.staging.SmartStage()])
  before = functions()
  for _ in range(2):
    fit([tf.staging.SmartStage()])
  assert len(functions()) == len(before), functions() - before


def case_nothing_is_read_after_the_steps_of_the_epoch_in_which_variables_were_made():
  def run(callbacks):
    taken = []

    def rows():
      while True:
        taken.append(len(taken))
        yield TEXTS[:4], TARGETS[:4]

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    options.autotune.enabled = False
    endless = tf.data.Dataset.from_generator(rows, output_signature=(
        tf.TensorSpec([4, 3], tf.string), tf.TensorSpec([4, 1], tf.float32))).with_options(options)
    model, at_end = CenteredModel(), []
    model.compile("sgd", "mse")
    note = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: at_end.append(len(taken)))
    model.fit(endless, steps_per_epoch=5, epochs=2, verbose=0, callbacks=[*callbacks, note])
    return at_end

  callback = tf.staging.SmartStage(capacity=20)
  assert run([callback]) == run([]) == [5, 10]
  # All but the first.
  assert callback._steps["train_function"].counts().buffer["taken"] == 9


class TrainsOnBatches(tf.keras.callbacks.Callback):
  """Uses the model on single batches within a `fit`."""

  def __init__(self):
    super().__init__()
    self.values = []

  def on_train_batch_end(self, batch, logs=None):
    self.values.append(self.model.train_on_batch(TEXTS[:3], TARGETS[:3]))
    self.values.append(self.model.test_on_batch(TEXTS[:3], TARGETS[:3]))
    self.values.append(self.model.predict_on_batch(TEXTS[:3]).tolist())


def case_single_batches_within_a_fit_make_no_stages():
  def run(callbacks):
    other = TrainsOnBatches()
    return fit([*callbacks, other]), other.values

  expected = run([])
  stages = mock.Mock(side_effect=iterator_stage.IteratorStage)
  with mock.patch.object(iterator_stage, "IteratorStage", stages):
    assert run([tf.staging.SmartStage()]) == expected
  assert stages.call_count == 2, stages.call_count  # One for each epoch.


def case_the_statistics_say_why_there_is_no_stage():
  callback = tf.staging.SmartStage()
  assert str(tf.staging.stats(callback)) == "no stage has run: no fit, evaluate or predict with the callback."
  fit([callback], lambda: compiled(layers.Hashing(8, output_mode="multi_hot"), run_eagerly=True))
  assert str(tf.staging.stats(callback)) == (
      "no stage has run: 'train' runs without one: it is no tf.function, so it runs eagerly.")


def case_a_callback_that_another_replaces_says_so():
  for use in (fit, _evaluated):
    first, second = tf.staging.SmartStage(), tf.staging.SmartStage()
    with mock.patch.object(tf_logging, "warning") as warning:
      assert use([first, second]) == use([])
    assert warning.call_count == 1, warning.mock_calls
    told = (
        f"another callback {API}.SmartStage() after it in the same list stages the model; give one of them alone")
    assert str(tf.staging.stats(first)) == f"no stage has run: {told}."
    assert str(tf.staging.explain(first)) == f"'fit' runs without a stage: {told}."
    assert tf.staging.stats(second)
    assert use([first]) == use([]) and tf.staging.stats(first)


def case_the_callback_without_parentheses_says_so():
  for callbacks in ([tf.staging.SmartStage], tf.staging.SmartStage):
    for use in (fit, _evaluated):
      try:
        use(callbacks)
      except TypeError as error:
        assert f"Write {API}.SmartStage()" in str(error), error
      else:
        raise AssertionError("It was taken.")


def case_what_has_no_stage_itself_says_what_has_one():
  model = hashing()
  for ask in (tf.staging.explain, tf.staging.stats):
    for value, expected in (
        (tf.function(lambda: 1), f"call step = {API}.ahead(step)"),
        (tf.function(lambda: 1).get_concrete_function(), f"call step = {API}.ahead(step)"),
        (model, f"then call {API}.{ask.__name__}(callback)")):
      try:
        ask(value)
      except TypeError as error:
        assert expected in str(error), error
      else:
        raise AssertionError(f"{value} was taken.")


def case_fit_calls_no_batch_hooks_for_the_callback():
  class Quiet(tf.keras.callbacks.Callback):
    """Has a batch hook, but needs no call of it, as TensorBoard."""

    calls = 0

    def on_train_batch_begin(self, batch, logs=None):
      self.calls += 1

    def _implements_train_batch_hooks(self):
      return False

  class Counts(type(tf.staging.SmartStage())):
    calls = 0

    def on_train_batch_end(self, batch, logs=None):
      self.calls += 1

  read = []

  def train(callbacks):
    model = hashing()
    elements = tf.data.Dataset.from_generator(
        lambda: (read.append(0) or (TEXTS[:4], TARGETS[:4]) for _ in range(100)),
        output_signature=(tf.TensorSpec([4, 3], tf.string), tf.TensorSpec([4, 1], tf.float32)))
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    del read[:]
    history = model.fit(
        elements.with_options(options), epochs=2, steps_per_epoch=3, verbose=0, callbacks=callbacks).history
    return history, len(read)

  quiet, counts = Quiet(), Counts()
  expected = train([])
  assert train([quiet, tf.staging.SmartStage()]) == expected
  assert quiet.calls == 0
  assert train([counts, quiet]) == expected
  assert counts.calls == quiet.calls == 6


def _evaluated(callbacks):
  return hashing().evaluate(data(), verbose=0, callbacks=callbacks)


def case_asynchronous_execution_trains_without_a_stage():
  def run(callbacks):
    tf.config.experimental.set_synchronous_execution(False)
    try:
      model = hashing()
      history = model.fit(data(), epochs=2, verbose=0, validation_data=data(), callbacks=callbacks).history
      return history, model.evaluate(data(), verbose=0, callbacks=callbacks)
    finally:
      tf.config.experimental.set_synchronous_execution(True)

  callback = tf.staging.SmartStage()
  assert run([callback]) == run([])
  assert "asynchronously" in callback._steps["train_function"].why_not


if __name__ == "__main__":
  cases.main(globals())
