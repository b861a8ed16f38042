# SPDX-License-Identifier: Apache-2.0
"""Keras trains under both API roots as on stock TensorFlow, and in graph mode on the records of stages."""

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_model_learns_a_line(tmp_path, version):
  output = test_util.run_program(
      """
      import numpy as np
      import tensorflow as tf

      x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
      model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="zeros")])
      model.compile(optimizer=tf.keras.optimizers.SGD(0.5), loss="mse")
      losses = model.fit(x, 3 * x + 1, epochs=20, batch_size=16, verbose=0).history["loss"]
      print(losses[-1] < 0.01 * losses[0], model.predict(x, verbose=0).shape)
      """, tmp_path, api_version=version)
  assert output == "True (64, 1)\n"


def test_a_keras_model_trains_on_staged_features():
  dataset = tf.data.Dataset.from_tensor_slices(np.ones([20, 4], np.float32)).batch(2)
  x = tf.staged({"x": tf.data.make_one_shot_iterator(dataset).get_next()}, capacity=2)["x"]
  y = tf.keras.layers.Dense(1, kernel_initializer="zeros")(x)
  loss = tf.reduce_mean(tf.square(y - 1.0))
  train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
    losses = [value for value, _ in test_util.drain(sess, [loss, train_op])]
  assert len(losses) == 10
  assert losses[-1] < 0.1 * losses[0]


@contextlib.contextmanager
def _keras_session(smart_stage: bool = False) -> Iterator[tf.Session]:
  """Opens a session, in which Keras runs its models until the block ends."""
  with tf.Session(config=smart_stage_sessions.smart_stage_config() if smart_stage else None) as sess:
    tf.keras.backend.set_session(sess)
    try:
      yield sess
    finally:
      tf.keras.backend.set_session(None)


def _line(source: test_util.Source) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns batches of points on a line: float32 tensors of shape [4, 1]. Each batch asks the source once."""
  with tf.control_dependencies([test_util.dataset_record(1000)]):
    number = source.tensor()
  x = tf.reshape((tf.range(4.0) + tf.cast(number, tf.float32) % 5) / 8, [4, 1])
  return x, 3 * x + 1


def _losses(model: tf.keras.Model, source: test_util.Source, sess: tf.Session, *data) -> list[float]:
  """Fits a model to 3 epochs of 5 batches while the stages run, and checks that they run ahead of the batches."""
  with tf.make_prefetch_hook().running(sess):
    losses = model.fit(*data, steps_per_epoch=5, epochs=3, verbose=0).history["loss"]
    source.wait_until_asked(16)
  return losses


def _unstaged_losses() -> list[float]:
  with tf.Graph().as_default(), _keras_session():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="ones")])
    model.compile(optimizer="sgd", loss="mse")
    return model.fit(*_line(test_util.Source()), steps_per_epoch=5, epochs=3, verbose=0).history["loss"]


def test_fit_takes_staged_tensors():
  source = test_util.Source()
  x, y = tf.staged(_line(source))
  with _keras_session() as sess:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="ones")])
    model.compile(optimizer="sgd", loss="mse")
    losses = _losses(model, source, sess, x, y)
  assert losses == _unstaged_losses()


def test_evaluate_and_predict_take_staged_tensors():
  x, y = tf.staged(_line(test_util.Source()), capacity=2)
  with _keras_session() as sess:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="ones")])
    model.compile(optimizer="sgd", loss="mse")
    with tf.make_prefetch_hook().running(sess):
      first = model.predict(x, steps=2)
      # The second record follows the first; the loss of a record is the mean of (3 x + 1 - x)^2.
      loss = model.evaluate(x, y, steps=1, verbose=0)
  points = np.arange(8.0) % 4 / 8 + np.repeat([0, 1], 4) / 8
  np.testing.assert_allclose(first[:, 0], points)
  assert loss == pytest.approx(np.mean((2 * (np.arange(4.0) + 2) / 8 + 1) ** 2))


@pytest.mark.parametrize("smart_stage", [False, True], ids=["tf.staged", "SmartStage"])
def test_fit_takes_records_of_a_model_that_is_built_on_them(smart_stage):
  source = test_util.Source()
  x, y = _line(source) if smart_stage else tf.staged(_line(source))
  with _keras_session(smart_stage) as sess:
    features = tf.keras.Input(tensor=x)
    model = tf.keras.Model(features, tf.keras.layers.Dense(1, kernel_initializer="ones")(features))
    model.compile(optimizer="sgd", loss="mse", target_tensors=[y])
    losses = _losses(model, source, sess)
  assert losses == _unstaged_losses()


def test_smart_stage_finds_no_stage_in_tensors_that_fit_connects_itself():
  config = smart_stage_sessions.smart_stage_config()
  with _keras_session(smart_stage=True) as sess:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="ones")])
    model.compile(optimizer="sgd", loss="mse")
    x, y = _line(test_util.Source())
    with tf.make_prefetch_hook().running(sess):
      losses = model.fit(x, y, steps_per_epoch=5, epochs=3, verbose=0).history["loss"]
    assert not tf.staging.explain(config=config).stages
  assert losses == _unstaged_losses()


def test_fit_ends_with_the_data():
  source = test_util.Source(end=7)
  x, y = tf.staged(_line(source))
  batches = []
  count = tf.keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: batches.append(batch))
  with _keras_session() as sess:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile(optimizer="sgd", loss="mse")
    with tf.make_prefetch_hook().running(sess):
      model.fit(x, y, steps_per_epoch=5, epochs=3, verbose=0, callbacks=[count])
  assert batches == [0, 1, 2, 3, 4, 0, 1]


def test_fit_needs_graph_mode_under_the_root_of_version_2(tmp_path):
  output = test_util.run_program(
      """
      import tensorflow as tf

      tf.compat.v1.disable_eager_execution()
      dataset = tf.data.Dataset.from_tensor_slices(([[1.0], [2.0]], [[4.0], [7.0]])).repeat().batch(2)
      x, y = tf.staged(tf.compat.v1.data.make_one_shot_iterator(dataset).get_next())
      model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="zeros")])
      model.compile(optimizer="sgd", loss="mse")
      with tf.make_prefetch_hook().running(tf.compat.v1.keras.backend.get_session()):
        losses = model.fit(x, y, steps_per_epoch=10, epochs=5, verbose=0).history["loss"]
      print(losses[-1] < 0.01 * losses[0])
      """, tmp_path, api_version="2")
  assert output == "True\n"
