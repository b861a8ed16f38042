# SPDX-License-Identifier: Apache-2.0
"""The new names are in both API roots, in `tf.compat.v1` and in `tf.compat.v2`."""

import pytest

from tensorflow_staging.python.testing import test_util

_NAMES = [
    "staged", "prefetch_join", "make_prefetch_hook", "SmartStageOptions", "train.mark_target_node", "staging.explain"
]


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("root", ["tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2"])
def test_each_name_is_the_function_of_its_module(tmp_path, version, root):
  output = test_util.run_program(
      f"""
      import operator
      import {root} as tf

      for name in {_NAMES}:
        print(name, operator.attrgetter(name)(tf).__module__.split(".")[0])
      """, tmp_path, api_version=version)
  assert output.splitlines() == [f"{name} tensorflow_staging" for name in _NAMES]
