# SPDX-License-Identifier: Apache-2.0
"""Steps of a `tf.function` on a GPU get the records that `tf.staging.ahead` has copied there."""

import os
import pathlib
import subprocess
import sys

_PROGRAM = pathlib.Path(__file__).with_name("ahead_steps.py")
_TIMEOUT_SECONDS = 100


def test_steps_of_a_function_get_whole_records_in_order(device):
  done = subprocess.run(
      [sys.executable, "-s", _PROGRAM, device], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
      env=os.environ | {"TF_API_VERSION": "2"}, timeout=_TIMEOUT_SECONDS, check=False)
  assert done.returncode == 0, done.stdout
  # A step that is not staged says so.
  assert "runs without a stage" not in done.stdout
