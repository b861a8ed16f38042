# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.BackupAndRestore`: the callback with which a `fit` that was killed goes on with the next record."""

import importlib
import os
from typing import Any
from typing import Union

from tensorflow.python.framework import ops
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import api_name
from tensorflow_staging.python import uncalled
from tensorflow_staging.python.ahead import eager_mode

_NAME = f"{api_name.API}.BackupAndRestore"


@tf_export("staging.BackupAndRestore")
def BackupAndRestore(
    backup_dir: Union[str, os.PathLike],
    save_freq: Union[str, int] = "epoch",
    delete_checkpoint: bool = True,
) -> Any:
  """Returns a callback with which a `fit` that was killed goes on with exactly the next record.

  It takes the place of `keras.callbacks.BackupAndRestore`, with its arguments. That one restores the model, the
  optimizer and the epoch, and begins the data of the epoch anew. This one also saves the position in the data, what a
  stage has read ahead, and the metrics of the epoch. It is a callback of its own, because a `fit` can be resumed
  without a stage, too; with `SmartStage`, give `fit` both.

  For example:

  ```python
  import tensorflow as tf

  model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
  model.compile("adam", "mse")
  rows = tf.data.Dataset.range(1000).map(lambda i: ([tf.cast(i, tf.float32)], [1.0])).shuffle(100, seed=1).batch(8)
  model.fit(rows, epochs=2, callbacks=[tf.staging.BackupAndRestore("/tmp/backup", save_freq=50)])
  ```

  If the process is killed, the same program continues. At any moment the latest backup is whole; so losses and weights
  are those of a `fit` that was never killed, to the bit, unless random ops draw with seeds of their own: only random
  generators that are variables can be saved. Of NumPy arrays, an epoch goes on in the order in which Keras has shuffled
  them. With `shuffle="batch"`, the batches that follow are shuffled anew, and with Keras 2 the epochs from the one
  after the next; each epoch still has each record once.

  `fit` returns the history of the epochs that it has run itself. What other callbacks count, such as `EarlyStopping`,
  begins anew.

  Args:
    backup_dir: The folder of the backups, which nothing else uses. Each worker of a `MultiWorkerMirroredStrategy` has a
      folder in it; `backup_dir` may be shared by them, or on a disk of each.
    save_freq: "epoch", for a backup after each epoch, or after how many batches to write one. A backup counts when the
      next batch, or the epoch, has ended.
    delete_checkpoint: Whether to delete the backup when `fit` has ended.

  Returns:
    A `tf.keras.callbacks.Callback`.

  Raises:
    TypeError: If an argument has the wrong type.
    ValueError: If an argument is out of range. `fit` raises it if the position in its data cannot be saved: that in
      Python generators, in a dataset whose functions have random ops or call Python, and in data of
      `tf.distribute` strategies other than `MirroredStrategy`, `MultiWorkerMirroredStrategy` and `OneDeviceStrategy`;
      and if a worker lacks the backup that the others have.
    RuntimeError: If eager execution is off, as in TensorFlow 1's root.
  """
  if not ops.executing_eagerly_outside_functions():
    eager_mode.raise_off(f"{_NAME}()", "For Keras in graph mode, see docs/tensorflow_2.md.")
  module = importlib.import_module("tensorflow_staging.python.backup.callback_class")
  return module.BackupAndRestoreCallback(backup_dir, save_freq, delete_checkpoint)


uncalled.refuse_methods(BackupAndRestore, _NAME, ("set_model", "set_params"))
