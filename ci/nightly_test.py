# SPDX-License-Identifier: Apache-2.0
"""Tests of what nightly.sh does before it begins."""

import pathlib
import re
import subprocess

_NIGHTLY = pathlib.Path(__file__).with_name("nightly.sh")


def test_a_part_that_does_not_exist_is_an_error():
  process = subprocess.run([_NIGHTLY, "kills", "naps"], capture_output=True, text=True, timeout=60)
  assert process.returncode == 1
  parts = re.search(r"^all_parts=\((.*)\)$", _NIGHTLY.read_text(), re.MULTILINE)[1]
  assert process.stderr == f"error: 'naps' is no part; there are: {parts}.\n"
  assert process.stdout == ""


def test_the_usage_describes_each_part():
  text = _NIGHTLY.read_text()
  parts = re.search(r"^all_parts=\((.*)\)$", text, re.MULTILINE)[1].split()
  described = [name for line in re.findall(r"^#   ([a-z_, ]+?)   ", text, re.MULTILINE) for name in line.split(", ")]
  assert sorted(described) == sorted(parts)
