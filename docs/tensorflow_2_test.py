# SPDX-License-Identifier: Apache-2.0
"""The example of tensorflow_2.md runs under TensorFlow 2's API as well."""

import os
import subprocess
import sys

import page_examples


def test_the_full_example_under_the_root_of_version_2(tmp_path):
  (code, shown), _ = page_examples.examples("docs/tensorflow_2.md")
  done = subprocess.run(
      [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"TF_API_VERSION": "2"}, capture_output=True,
      text=True, timeout=100, check=False)
  assert (done.returncode, done.stdout) == (0, shown), done.stderr
