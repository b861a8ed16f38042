# SPDX-License-Identifier: Apache-2.0
"""Reads the files of the models with the latency of remote storage.

The latency is a sleep of tf.data itself for each chunk of a file. A server would take CPU time from the few cores
whose use the benchmark measures, TensorFlow's reader of `gs://` asks a cloud for credentials first, and a reader in
Python would measure the interpreter's lock. The sleep takes no CPU time, like a wait for a network, and keeps a thread
of tf.data, like a blocking read.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf
from tensorflow.python.data.experimental.ops import testing

from modelzoo.base import formats
from modelzoo.base import model as models

# Of a chunk. SleepDataset sleeps before each of its elements and before it says that there are no more, so twice.
_SECONDS = 0.1
_SLEEPS = 2
_ROWS = 1024

DESCRIPTION = f"""The latency of remote storage is {_SECONDS * 1e3:.0f} ms, in which tf.data's reader sleeps, for each
chunk of {_ROWS:,} rows of a file: about 270 KB of Criteo's lines, and 150 KB of Taobao's. Plain `tf.data` waits
for one chunk after the other, and reads no other meanwhile."""


def reading(model: models.Model) -> models.Model:
  """Returns a model that reads lines of text with latency."""
  reader = model.format.csv

  def late(rows: tf.Tensor) -> tf.data.Dataset:
    # SleepDataset reads its input with the lock that a closing session waits for, so its input must not call a
    # function: that would wait for the session.
    return tf.data.Dataset.from_tensors(rows).apply(testing.sleep(round(_SECONDS / _SLEEPS * 1e6))).unbatch()

  def lines(file: tf.Tensor) -> tf.data.Dataset:
    return reader.open(file).batch(_ROWS).flat_map(late)

  return dataclasses.replace(model, format=model.format._replace(csv=formats.Reader(lines, reader.parse)))
