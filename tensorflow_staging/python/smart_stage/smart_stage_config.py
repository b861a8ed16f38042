# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.smart_stage_config`: the configuration of a session that has SmartStage."""

from typing import Any
from typing import Optional

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import messages


@tf_export("staging.smart_stage_config")
def smart_stage_config(
    config: Optional[config_pb2.ConfigProto] = None,
    options: Optional[Any] = None) -> config_pb2.ConfigProto:
  """Returns the configuration of a session that finds by itself what can run ahead of the step.

  It is that of `config` with `graph_options.optimizer_options.do_smart_stage` and `smart_stage_options`. Beside an
  official TensorFlow, whose `ConfigProto` does not show these fields, this is the only way to set them.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default():
    numbers = tf.compat.v1.data.make_one_shot_iterator(tf.compat.v1.data.Dataset.range(3)).get_next()
    weight = tf.compat.v1.get_variable("weight", initializer=2.0)
    loss = weight * tf.cast(numbers * 10, tf.float32)
    train = tf.compat.v1.train.GradientDescentOptimizer(0.0).minimize(loss)
    config = tf.staging.smart_stage_config(options=tf.SmartStageOptions(capacity=2))
    with tf.compat.v1.train.MonitoredTrainingSession(config=config, hooks=[tf.make_prefetch_hook()]) as sess:
      print(sess.run([loss, train])[0])  # 0.0
  ```

  Args:
    config: A `tf.compat.v1.ConfigProto`, which stays as it is. None stands for the default one.
    options: What `tf.SmartStageOptions` has returned; None for its defaults.

  Returns:
    A new `tf.compat.v1.ConfigProto`.

  Raises:
    TypeError: If an argument has another type.
  """
  if not isinstance(config, (config_pb2.ConfigProto, type(None))):
    raise TypeError(
        f"config must be None or a tf.compat.v1.ConfigProto, got {config!r} of type {type(config).__name__}.")
  if not isinstance(options, (messages.SmartStageOptions, type(None))):
    raise TypeError(
        f"options must be None or what tf.SmartStageOptions returns, got {options!r} of type {type(options).__name__}.")
  changed = config_pb2.ConfigProto()
  if config is not None:
    changed.CopyFrom(config)
  fields = messages.OptimizerFields(do_smart_stage=True, smart_stage_options=options)
  changed.graph_options.optimizer_options.MergeFromString(fields.SerializeToString())
  return changed
