# SPDX-License-Identifier: Apache-2.0
"""Keras's `fit` with `tf.staging.SmartStage`, compared with `fit` without; run by ahead/ahead_test.py."""

import logging

import cases
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.
layers = tf.keras.layers
ROWS = 40
_RANDOM = np.random.RandomState(0)
WORDS = _RANDOM.choice(list("abcdefg"), [ROWS, 3])
NUMBERS = _RANDOM.rand(ROWS, 4).astype(np.float32)
IMAGES = _RANDOM.rand(ROWS, 8, 8, 3).astype(np.float32)
TEXTS = np.array([" ".join(_RANDOM.choice(["red", "green", "blue"], n % 5 + 1)) for n in range(ROWS)])
TARGETS = NUMBERS.sum(1, keepdims=True)


def hashing(**options):
  words = tf.keras.Input((3,), dtype=tf.string)
  embedded = layers.Flatten()(layers.Embedding(50, 4)(layers.Hashing(50)(words)))
  return compiled(words, embedded, **options), WORDS


def compiled(inputs, features, **options):
  model = tf.keras.Model(inputs, layers.Dense(1)(features))
  model.compile("adam", "mse", metrics=["mae"], **options)
  return model


def data(x, rows=ROWS, batch=7):
  return tf.data.Dataset.from_tensor_slices((x[:rows], TARGETS[:rows])).shuffle(16, seed=3).batch(batch)


def weights(model):
  return [w.numpy().tolist() for w in model.weights if hasattr(w, "numpy")]


def run(build, train, callbacks):
  tf.keras.backend.clear_session()
  tf.keras.utils.set_random_seed(5)
  model, x = build()
  return train(model, x, callbacks), weights(model), model


def two_fits(model, x, callbacks):
  one = model.fit(data(x), epochs=3, validation_data=data(x, 20), verbose=0, callbacks=callbacks).history
  stopping = tf.keras.callbacks.EarlyStopping("loss", patience=0)
  return one, model.fit(data(x), epochs=2, verbose=0, callbacks=[*callbacks, stopping]).history


def compare(build, train=two_fits, staged=True, restores=True, **options):
  expected = run(build, train, [])
  callback = tf.staging.SmartStage(capacity=3, **options)
  got = run(build, train, [callback])
  assert got[0] == expected[0], f"{got[0]} != {expected[0]}"
  assert got[1] == expected[1]
  steps = callback._steps
  assert (steps["train_function"].why_not is None) == staged, steps["train_function"].why_not
  # The model has its own functions again, unless draws would not go on in them, and no thread is left.
  is_own = type(got[2].train_function).__module__.startswith("tensorflow.python.eager")
  assert is_own == restores, got[2].train_function
  assert not any(step.stages() for step in steps.values())
  return steps


def case_hashing():
  steps = compare(hashing)
  assert steps["test_function"].why_not is None
  callback = tf.staging.SmartStage()
  run(hashing, two_fits, [callback])
  assert "model/hashing/hash" in str(tf.staging.explain(callback))


def case_lookup_that_was_adapted():
  def build():
    lookup = layers.StringLookup()
    lookup.adapt(WORDS)
    words = tf.keras.Input((3,), dtype=tf.string)
    return compiled(words, layers.Flatten()(layers.Embedding(50, 4)(lookup(words)))), WORDS

  compare(build)


def case_text_vectorization():
  def build():
    layer = layers.TextVectorization(20)
    layer.adapt(TEXTS)
    texts = tf.keras.Input((), dtype=tf.string)
    return compiled(texts, layers.GlobalAveragePooling1D()(layers.Embedding(50, 4)(layer(texts)))), TEXTS

  compare(build)


def case_normalization_and_discretization():
  def build():
    normalization = layers.Normalization()
    normalization.adapt(NUMBERS)
    numbers = tf.keras.Input((4,))
    bins = layers.CategoryEncoding(4, "multi_hot")(layers.Discretization([0.2, 0.5, 0.8])(numbers))
    return compiled(numbers, layers.Concatenate()([normalization(numbers), bins])), NUMBERS

  compare(build)


def case_random_layers_and_dropout():
  def build():
    images = tf.keras.Input((8, 8, 3))
    features = layers.RandomContrast(0.2)(layers.RandomRotation(0.2)(layers.RandomFlip()(images)))
    return compiled(images, layers.Flatten()(layers.Dropout(0.1)(features))), IMAGES

  compare(build, restores=False)
  compare(build, restores=False, num_threads=3)


def case_a_model_that_prepares_nothing():
  def build():
    numbers = tf.keras.Input((4,))
    return compiled(numbers, layers.Dropout(0.3)(layers.Dense(4)(layers.BatchNormalization()(numbers)))), NUMBERS

  compare(build, restores=False)


def case_several_steps_per_execution():
  compare(lambda: hashing(steps_per_execution=3))


def case_predictions_of_several_steps_per_execution():
  def train(model, x, callbacks):
    values = [model.fit(data(x), epochs=1, verbose=0, callbacks=callbacks).history]
    # The last execution is shorter.
    values += [model.predict(x[:rows], batch_size=4, verbose=0, callbacks=callbacks).tolist() for rows in (40, 30, 3)]
    return values

  steps = compare(lambda: hashing(steps_per_execution=3), train)
  assert steps["predict_function"].why_not is None, steps["predict_function"].why_not


def case_ragged_inputs():
  def build():
    texts = tf.keras.Input((None,), dtype=tf.string, ragged=True)
    embedded = layers.Embedding(50, 4)(layers.Hashing(50)(texts))
    return compiled(texts, layers.Lambda(lambda r: tf.reduce_sum(r, 1))(embedded)), tf.strings.split(TEXTS)

  compare(build)


def case_mixed_precision():
  tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
  try:
    compare(hashing)
  finally:
    tf.keras.mixed_precision.set_global_policy("float32")


class Subclassed(tf.keras.Model):
  """A model whose training step calls a tf.function."""

  def __init__(self):
    super().__init__()
    self.hashing, self.embedding, self.dense = layers.Hashing(50), layers.Embedding(50, 4), layers.Dense(1)

  def call(self, x):
    return self.dense(tf.reduce_mean(self.embedding(self.hashing(x)), 1))

  @tf.function
  def inner(self, x, y):
    with tf.GradientTape() as tape:
      loss = tf.reduce_mean((self(x, training=True) - y)**2)
    self.optimizer.minimize(loss, self.trainable_variables, tape)
    return loss

  def train_step(self, batch):
    return {"loss": self.inner(*batch)}


def case_a_subclassed_model_with_its_own_step():
  def build():
    model = Subclassed()
    model.compile("adam", "mse")
    return model, WORDS

  def train(model, x, callbacks):
    return model.fit(data(x), epochs=3, verbose=0, callbacks=callbacks).history

  compare(build, train)


def case_arrays_and_weights_of_classes():
  def train(model, x, callbacks):
    return model.fit(
        x, (TARGETS > 2).astype(np.int64), batch_size=7, epochs=2, class_weight={0: 1.0, 1: 3.0}, verbose=0,
        callbacks=callbacks).history

  compare(hashing, train)


def case_generators():
  def train(model, x, callbacks):
    def batches():
      while True:
        for i in range(0, ROWS, 8):
          yield x[i:i + 8], TARGETS[i:i + 8]

    return model.fit(batches(), steps_per_epoch=4, epochs=3, verbose=0, callbacks=callbacks).history

  compare(hashing, train)


def case_single_batches_and_evaluate_in_between():
  def train(model, x, callbacks):
    values = [model.fit(data(x), epochs=1, verbose=0, callbacks=callbacks).history]
    values.append(model.train_on_batch(x[:8], TARGETS[:8]))
    values.append(model.evaluate(data(x), verbose=0, callbacks=callbacks))
    values.append(model.predict(x[:5], verbose=0, callbacks=callbacks).tolist())
    values.append(model.fit(data(x), epochs=1, verbose=0, callbacks=callbacks).history)
    return values

  compare(hashing, train)


def dropping_out():
  words = tf.keras.Input((3,), dtype=tf.string)
  return compiled(words, layers.Dropout(0.4)(layers.Hashing(9, output_mode="multi_hot")(words))), WORDS


def case_draws_go_on_whatever_trains():
  def train(model, x, callbacks):
    class Fail(tf.keras.callbacks.Callback):

      def on_train_batch_end(self, batch, logs=None):
        if batch == 2:
          raise ValueError("a callback fails")

    values = []
    for epochs in (1, 2):
      given = [tf.staging.SmartStage()] if callbacks else []
      values.append(model.fit(data(x), epochs=epochs, verbose=0, callbacks=given).history)
      values.append(model.train_on_batch(x[:8], TARGETS[:8]))
      values.append(model.fit(data(x), verbose=0, callbacks=callbacks).history)
      try:
        model.fit(data(x), verbose=0, callbacks=[*callbacks, Fail()])
      except ValueError:
        pass
      values.append(model.fit(data(x), verbose=0).history)
    return values

  compare(dropping_out, train, restores=False)


def case_training_without_a_stage_before_is_told():
  def train(model, x, callbacks):
    return [model.fit(data(x), verbose=0, callbacks=given).history for given in ([], callbacks)]

  line, = told(dropping_out, train)
  assert "draws with a seed of its own, and has drawn without a stage before" in line, line
  compare(hashing, train)


def case_predict_and_train_in_a_callback():
  def train(model, x, callbacks):
    values = []

    class Trains(tf.keras.callbacks.Callback):

      def on_train_batch_end(self, batch, logs=None):
        values.append(model.predict(x[:3], verbose=0).tolist())
        values.append(model.train_on_batch(x[:8], TARGETS[:8]))

    values.append(model.fit(data(x), epochs=2, verbose=0, callbacks=[Trains(), *callbacks]).history)
    return values

  compare(hashing, train)
  compare(dropping_out, train, restores=False)


def case_a_random_layer_that_a_callback_calls():
  def build():
    images = tf.keras.Input((8, 8, 3))
    return compiled(images, layers.Flatten()(layers.RandomRotation(0.2, seed=3)(images))), IMAGES

  def train(model, x, callbacks):
    values = []

    class Draws(tf.keras.callbacks.Callback):

      def on_train_batch_end(self, batch, logs=None):
        if batch == 2:
          values.append(model.layers[1](x[:1], training=True).numpy().tolist())

    values.append(model.fit(data(x), epochs=3, verbose=0, callbacks=[Draws(), *callbacks]).history)
    return values

  compare(build, train)


def case_evaluate_in_a_callback():
  def train(model, x, callbacks):
    class Evaluates(tf.keras.callbacks.Callback):

      def on_train_batch_end(self, batch, logs=None):
        if batch == 1:
          model.evaluate(data(x), verbose=0)

      def on_epoch_begin(self, epoch, logs=None):
        model.predict(x[:3], verbose=0)

    return model.fit(data(x), epochs=2, verbose=0, callbacks=[Evaluates(), *callbacks]).history

  compare(hashing, train)


def case_compiled_again_between_fits():
  def train(model, x, callbacks):
    values = [model.fit(data(x), epochs=1, verbose=0, callbacks=callbacks).history]
    model.compile("sgd", "mae")
    values.append(model.fit(data(x), epochs=2, verbose=0, callbacks=callbacks).history)
    return values

  compare(hashing, train)


def case_endless_data_is_read_as_far_as_it_is_used():
  def train(model, x, callbacks):
    # A repeated shuffle draws a seed when it begins anew: whoever reads too far changes what follows.
    reads = tf.Variable(0)

    def count(*row):
      with tf.control_dependencies([reads.assign_add(1)]):
        return tuple(tf.identity(t) for t in row)

    options = tf.data.Options()  # Without what tf.data reads ahead by itself.
    options.experimental_optimization.apply_default_optimizations = False
    endless, validation = (
        rows.repeat().map(count).with_options(options) for rows in (data(x), data(x, 20)))
    stopping = tf.keras.callbacks.EarlyStopping("loss", patience=0, min_delta=100)
    values = []
    for _ in range(2):
      values.append(
          model.fit(
              endless, steps_per_epoch=5, epochs=4, validation_data=validation, validation_steps=2, verbose=0,
              callbacks=[stopping, *callbacks]).history)
      values.append(reads.numpy())
    return values

  compare(hashing, train)


def case_compiled_again_by_a_callback():
  def train(model, x, callbacks):
    class Compiles(tf.keras.callbacks.Callback):

      def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
          model.compile("sgd", "mae")
          model.make_train_function()

    values = []
    for order in (1, -1):
      given = [Compiles(), *callbacks][::order]
      values.append(model.fit(data(x).repeat(), steps_per_epoch=4, epochs=3, verbose=0, callbacks=given).history)
    return values

  compare(hashing, train)


def case_compiled_within_an_epoch():
  class Compiles(tf.keras.callbacks.Callback):

    def __init__(self, makes_function, **options):
      super().__init__()
      self.makes_function, self.options = makes_function, options

    def on_train_batch_end(self, batch, logs=None):
      if batch == 1:
        self.model.compile("sgd", "mse", **self.options)
        if self.makes_function:
          self.model.make_train_function()

  def train(makes_function, callbacks, **options):
    tf.keras.utils.set_random_seed(5)
    model, x = hashing()
    try:
      model.fit(data(x), epochs=1, verbose=0, callbacks=[*callbacks, Compiles(makes_function, **options)])
    except (RuntimeError, TypeError) as error:
      assert type(model.train_function).__name__ != "ModelStep", model.train_function
      return type(error), str(error)
    return [weight.tolist() for weight in model.get_weights()]

  def trained_with_another_rate(model, x, callbacks):
    class Change(tf.keras.callbacks.Callback):

      def on_train_batch_end(self, batch, logs=None):
        if batch == 1:
          model.compile(tf.keras.optimizers.Adam(0.1), "mse", metrics=["mae"])
          model.make_train_function()

    return model.fit(data(x), epochs=2, verbose=0, callbacks=[Change(), *callbacks]).history

  # What runs ahead is the same, so what waits is used.
  compare(hashing, trained_with_another_rate)
  # Keras fails by itself, if nobody makes the function.
  assert train(False, []) == train(False, [tf.staging.SmartStage()])
  # Records that wait do not fit another step, so they are made again.
  for options in ({}, {"run_eagerly": True}, {"metrics": ["mae"]}):
    assert train(True, [], **options) == train(True, [tf.staging.SmartStage()], **options)


def case_several_threads_train_on_each_record_once():
  class Count(tf.keras.callbacks.Callback):
    batches = 0

    def on_train_batch_end(self, batch, logs=None):
      Count.batches += 1

  model, x = hashing()
  history = model.fit(
      data(x), epochs=10, verbose=0, callbacks=[tf.staging.SmartStage(capacity=2, num_threads=3), Count()]).history
  assert Count.batches == 10 * 6, Count.batches
  assert len(history["loss"]) == 10


def case_after_an_exception_the_model_is_as_it_was():
  class Fail(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
      if batch == 2:
        raise ValueError("a callback fails")

  def train(model, x, callbacks):
    try:
      model.fit(data(x), epochs=1, verbose=0, callbacks=[*callbacks, Fail()])
    except ValueError:
      pass
    # Without the callback, it trains without a stage.
    return model.fit(data(x), epochs=2, verbose=0).history

  compare(hashing, train)


def told(build, train):
  """Returns what the callback has logged."""
  records = []
  handler = logging.Handler()
  handler.emit = lambda record: records.append(record.getMessage())
  tf.get_logger().addHandler(handler)
  try:
    compare(build, train, staged=False)
  finally:
    tf.get_logger().removeHandler(handler)
  return [record for record in records if "without a stage" in record]


def fit_twice(model, x, callbacks):
  return [model.fit(data(x), epochs=2, verbose=0, callbacks=callbacks).history for _ in range(2)]


def case_eager_training_is_told_in_one_line():
  def build():
    model, x = hashing()
    model.compile("adam", "mse", run_eagerly=True)
    return model, x

  tf.keras.backend.clear_session()
  callback = tf.staging.SmartStage()
  model, x = build()
  fit_twice(model, x, [callback])
  assert "eager" in callback._steps["train_function"].why_not


def case_a_model_that_xla_compiles_is_told_in_one_line():
  def build():
    numbers = tf.keras.Input((4,))
    return compiled(numbers, layers.Dense(4)(numbers), jit_compile=True), NUMBERS

  lines = told(build, fit_twice)
  assert len(lines) == 1, lines


if __name__ == "__main__":
  cases.main(globals())
