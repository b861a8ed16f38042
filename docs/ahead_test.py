# SPDX-License-Identifier: Apache-2.0
"""The examples of ahead.md, and the first one of quick_start.md, run with TensorFlow 2's API."""

import os
import subprocess
import sys

import page_examples
import pytest


@pytest.mark.parametrize("code, shown", [
    *page_examples.examples("docs/ahead.md"), page_examples.examples("docs/quick_start.md")[0]])
def test_an_example(code, shown, tmp_path):
  done = subprocess.run(
      [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"TF_API_VERSION": "2"}, capture_output=True,
      text=True, timeout=100, check=False)
  assert (done.returncode, done.stdout) == (0, shown), done.stderr
  assert "without a stage" not in done.stderr
