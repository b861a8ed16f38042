# SPDX-License-Identifier: Apache-2.0
"""Small files for the tests of the models."""

import pathlib

import pytest
import tensorflow as tf

from modelzoo import data
from tensorflow_staging.python.testing import test_util

# A test needs up to 15 seconds of a core, which on a busy machine take long.
_TIMEOUT_SECONDS = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
  """Limits the time of every test in this folder."""
  folder = pathlib.Path(__file__).parent
  for item in items:
    if item.path.is_relative_to(folder):
      item.add_marker(pytest.mark.timeout(_TIMEOUT_SECONDS), append=False)


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> dict[tuple[str, str], pathlib.Path]:
  """The folders of the files, by data set and format."""
  result = {}
  for dataset, form, rows in (
      ("criteo", "csv", 20_000), ("taobao", "csv", 20_000), ("criteo", "tfrecord", 300), ("taobao", "tfrecord", 300)):
    folder = tmp_path_factory.mktemp(f"{dataset}_{form}")
    data.write(folder, data.Data(dataset=dataset, format=form, rows=rows, eval_rows=rows // 5, files=2))
    result[dataset, form] = folder
  return result


@pytest.fixture(autouse=True)
def quiet():
  """Lets TensorFlow log errors only, which programs do as well, and restores what tests of other folders expect."""
  before = tf.compat.v1.logging.get_verbosity()
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  yield
  tf.compat.v1.logging.set_verbosity(before)


@pytest.fixture(autouse=True)
def no_stage_left():
  """Fails a test that leaves a stage's thread running."""
  yield
  test_util.assert_no_stage_thread()
