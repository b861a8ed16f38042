# SPDX-License-Identifier: Apache-2.0
"""Tests of what build_plugin.sh refuses before it begins, and of the requirements that it installs."""

import pathlib
import re
import subprocess

import pytest

_BUILD_PLUGIN = pathlib.Path(__file__).with_name("build_plugin.sh")
_REQUIREMENTS = sorted((_BUILD_PLUGIN.parent.parent / "plugin/requirements").glob("*/*.txt"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tensorflow=2.14"], r"--tensorflow=2\.14: the plugin can be built for TensorFlow 2\.16 .*2\.21\."),
        (["--tensorflow="], r"--tensorflow=: the plugin can be built for .*"),
        (["--tensorflow=2.16", "--python=3.8"],
         r"--python=3\.8: for TensorFlow 2\.16, the plugin can be built for Python .*3\.11.*\."),
        (["--fast"], "'--fast' is no option. Usage: .*"),
    ],
)
def test_what_cannot_be_built_is_refused(arguments, message):
  done = subprocess.run([_BUILD_PLUGIN, *arguments], capture_output=True, text=True, timeout=30)
  assert done.returncode == 1
  assert re.fullmatch(f"error: {message}\n", done.stderr)
  assert done.stdout == ""


@pytest.mark.parametrize("path", _REQUIREMENTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_requirements_are_those_of_their_folder(path):
  text = path.read_text()
  for package in ("tensorflow", "tf-keras"):
    assert re.search(rf"^{package}=={re.escape(path.parent.name)}\.\d+ --hash=sha256:\w{{64}}$", text, re.MULTILINE)
  assert all(" --hash=sha256:" in line for line in text.splitlines() if not line.startswith("#"))
