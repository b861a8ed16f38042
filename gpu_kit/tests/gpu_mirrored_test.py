# SPDX-License-Identifier: Apache-2.0
"""Replicas of `tf.distribute.MirroredStrategy` on two GPUs of one machine."""

import os
import pathlib
import subprocess
import sys

_PROGRAM = pathlib.Path(__file__).with_name("mirrored_steps.py")
_TIMEOUT_SECONDS = 100


def test_a_mirrored_step_looks_words_up_ahead(devices):
  done = subprocess.run(
      [sys.executable, "-s", _PROGRAM, devices[1]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
      env=os.environ | {"TF_API_VERSION": "2"}, timeout=_TIMEOUT_SECONDS, check=False)
  assert done.returncode == 0, done.stdout
