# SPDX-License-Identifier: Apache-2.0
"""The package: what it refuses, and what it says."""

import subprocess
import sys

import pytest

_IMPORT = """
import tensorflow as tf
from tensorflow.python.framework import versions
versions.VERSION = "2.19.1"
import tensorflow_staging
"""


def test_import_beside_another_tensorflow_names_both_and_the_command():
  done = subprocess.run([sys.executable, "-B", "-c", _IMPORT], capture_output=True, text=True, timeout=100, check=False)
  assert done.returncode != 0
  message = done.stderr.strip().splitlines()[-1]
  assert "was built for TensorFlow 2.21" in message and "2.19.1" in message
  assert "pip install 'tensorflow==2.21.*'" in message


@pytest.mark.parametrize("name", ["explain", "stats"])
def test_wrong_type(name):
  import tensorflow_staging

  with pytest.raises(TypeError, match="step of tensorflow_staging.ahead"):
    getattr(tensorflow_staging, name)(3)


def test_no_message_of_protobuf_is_in_the_library():
  import tensorflow_staging

  library = sys.modules[f"{tensorflow_staging.__name__}.python.pywrap._pywrap_staging"].__file__
  with open(library, "rb") as file:
    assert b"buffer_stats.proto" not in file.read()
