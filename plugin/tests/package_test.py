# SPDX-License-Identifier: Apache-2.0
"""The package: what it refuses, and what it says."""

import importlib.metadata
import subprocess
import sys

import pytest

_MINOR = importlib.metadata.version("tensorflow").rpartition(".")[0]
_OTHER = "2.14.1"
_IMPORT = f"""
import tensorflow as tf
from tensorflow.python.framework import versions
versions.VERSION = "{_OTHER}"
import tensorflow_staging
"""


def test_import_beside_another_tensorflow_names_both_and_the_command():
  done = subprocess.run([sys.executable, "-B", "-c", _IMPORT], capture_output=True, text=True, timeout=100, check=False)
  assert done.returncode != 0
  message = done.stderr.strip().splitlines()[-1]
  assert f"was built for TensorFlow {_MINOR}," in message and _OTHER in message
  assert "ci/build_plugin.sh --tensorflow=2.14" in message
  assert f"pip install 'tensorflow=={_MINOR}.*'" in message


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
