# SPDX-License-Identifier: Apache-2.0
"""`python -m tensorflow.staging doctor` finds nothing wrong with this installation, and says what it checked."""

import os
import re
import subprocess
import sys

import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def test_the_doctor(tmp_path):
  environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_CPP_")}
  done = subprocess.run(
      [sys.executable, "-m", "tensorflow.staging", "doctor"], cwd=tmp_path, capture_output=True, text=True,
      env=environment, timeout=test_util.PROGRAM_SECONDS, check=False)
  assert (done.returncode, done.stderr) == (0, ""), done.stdout
  *lines, last = done.stdout.splitlines()
  assert last == "No problem found."
  assert all(line.startswith("ok      ") for line in lines)
  assert [re.match(r"ok +([^:]+):", line)[1] for line in lines] == [
      "version", "build", "API", "other distributions", "files", "loaded libraries", "order of libraries", "session",
      "GPUs", "tf.staged", "SmartStage", "stage thread pool"
  ]
  assert f"version: tensorflow {tf.staging.build_info().version}." in done.stdout
