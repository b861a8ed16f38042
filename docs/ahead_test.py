# SPDX-License-Identifier: Apache-2.0
"""The examples of ahead.md, and the first one of quick_start.md, run with TensorFlow 2's API."""

import inspect
import os
import re
import subprocess
import sys

import page_examples
import pytest
import tensorflow as tf


@pytest.mark.parametrize("code, shown", [
    *page_examples.examples("docs/ahead.md"), page_examples.examples("docs/quick_start.md")[0]])
def test_an_example(code, shown, tmp_path):
  # AutoGraph reads the source of the program.
  (tmp_path / "example.py").write_text(code)
  done = subprocess.run(
      [sys.executable, "example.py"], cwd=tmp_path, env=os.environ | {"TF_API_VERSION": "2"}, capture_output=True,
      text=True, timeout=100, check=False)
  assert (done.returncode, done.stdout) == (0, shown), done.stderr
  assert "without a stage" not in done.stderr


def test_the_table_of_arguments_has_each_one_with_its_default():
  section = (page_examples.DOCS / "ahead.md").read_text().partition("\n## Arguments\n")[2].partition("\n## ")[0]
  listed = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", section, re.MULTILINE))
  parameters = inspect.signature(tf.staging.ahead).parameters
  defaults = {name: parameter.default for name, parameter in parameters.items()}
  written = {inspect.Parameter.empty: "required", tf.data.AUTOTUNE: "`tf.data.AUTOTUNE`"}
  assert {name: text.strip("`") for name, text in listed.items()} == {
      name: written.get(default, str(default)).strip("`") for name, default in defaults.items()}
  assert set(inspect.signature(tf.staging.SmartStage).parameters) == set(listed) - {"step", "name"}
