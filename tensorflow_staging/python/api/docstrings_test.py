# SPDX-License-Identifier: Apache-2.0
"""The docstrings of the public API document every argument, and their examples run unchanged."""

import inspect
import re

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

_DOCUMENTED = {
    "tf.staged": tf.staged,
    "tf.prefetch_join": tf.prefetch_join,
    "tf.make_prefetch_hook": tf.make_prefetch_hook,
    "tf.make_prefetch_hook().running": type(tf.make_prefetch_hook()).running,
    "tf.SmartStageOptions": tf.SmartStageOptions,
    "tf.train.mark_target_node": tf.train.mark_target_node,
    "tf.staging.explain": tf.staging.explain,
}


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("documented", _DOCUMENTED.values(), ids=_DOCUMENTED)
def test_example(tmp_path, documented, version):
  examples = re.findall(r"```python\n(.*?)```", inspect.getdoc(documented), re.DOTALL)
  assert examples
  for example in examples:
    test_util.run_program(example, tmp_path, api_version=version)


def test_the_example_of_staged_prints_the_documented_output(tmp_path):
  example, = re.findall(r"```python\n(.*?)```", inspect.getdoc(tf.staged), re.DOTALL)
  assert test_util.run_program(example, tmp_path).split() == ["0", "10", "20"]


@pytest.mark.parametrize("documented", _DOCUMENTED.values(), ids=_DOCUMENTED)
def test_every_argument_is_documented(documented):
  text = inspect.getdoc(documented)
  for argument in inspect.signature(documented).parameters:
    assert argument == "self" or f"\n  {argument}: " in text, argument
