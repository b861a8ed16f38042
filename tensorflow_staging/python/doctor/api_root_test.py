# SPDX-License-Identifier: Apache-2.0
"""The doctor says which API programs get, and names the variable that chooses it."""

import pytest

from tensorflow_staging.python.doctor import api_root

_IN_2 = "where Keras takes tf.staging.SmartStage(), and tf.staging.ahead() a tf.function"


@pytest.mark.parametrize("value, default, expected", [
    (None, 1, f"1: the default without TF_API_VERSION; TF_API_VERSION=2 gives that of TensorFlow 2, {_IN_2}."),
    ("1", 2, f"1: TF_API_VERSION=1; TF_API_VERSION=2 gives that of TensorFlow 2, {_IN_2}."),
    ("2", 1, f"2: TF_API_VERSION=2, {_IN_2}; TF_API_VERSION=1 gives that of TensorFlow 1."),
])
def test_the_api(monkeypatch, value, default, expected):
  monkeypatch.delenv("TF_API_VERSION", raising=False)
  if value is not None:
    monkeypatch.setenv("TF_API_VERSION", value)
  found, = api_root.check_root(default)
  assert str(found) == f"ok      API: import tensorflow gives that of TensorFlow {expected}"
