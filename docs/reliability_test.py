# SPDX-License-Identifier: Apache-2.0
"""The tests and the programs that reliability.md names exist."""

import pathlib
import re

import named_tests

_FOLDER = pathlib.Path(__file__).parent
_TEXT = (_FOLDER / "reliability.md").read_text()
_NIGHTLY = (_FOLDER.parent / "ci/nightly.sh").read_text()


def test_named_tests_exist():
  assert len(named_tests.python_tests(_TEXT)) > 30
  assert named_tests.missing_python_tests(_TEXT) == []
  assert named_tests.missing_cpp_tests(_TEXT) == []


def test_the_files_of_the_commands_exist():
  files = re.findall(r"(?:benchmarks|tensorflow_staging)/[\w/]+\.py", _TEXT)
  assert len(files) >= 4
  assert [file for file in files if not (_FOLDER.parent / file).exists()] == []


def test_the_nightly_tests_run_what_takes_long():
  tried = re.findall(r"`(?:STAGING_\w+=\d+ pytest|\.venv/bin/python) [\w/.]+`", _TEXT)
  assert len(tried) == 6
  for command in tried:
    setting, _, file = command.strip("`").partition(" ")
    assert file.rpartition(" ")[2] in _NIGHTLY, command
    assert not setting.startswith("STAGING_") or setting in _NIGHTLY, command
