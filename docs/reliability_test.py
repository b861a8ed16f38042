# SPDX-License-Identifier: Apache-2.0
"""The programs that reliability.md names exist, and run at night."""

import pathlib
import re

_FOLDER = pathlib.Path(__file__).parent
_TEXT = (_FOLDER / "reliability.md").read_text()
_NIGHTLY = (_FOLDER.parent / "ci/nightly.sh").read_text()


def test_the_files_of_the_commands_exist():
  files = re.findall(r"(?:benchmarks|tests)/[\w/]+\.py", _TEXT)
  assert len(files) >= 4
  assert [file for file in files if not (_FOLDER.parent / file).exists()] == []


def test_the_nightly_tests_run_what_takes_long():
  tried = re.findall(r"`(?:STAGING_\w+=\d+ pytest|\.venv/bin/python) [\w/.]+`", _TEXT)
  assert tried
  for command in tried:
    setting, _, file = command.strip("`").partition(" ")
    assert file.rpartition(" ")[2] in _NIGHTLY, command
    assert not setting.startswith("STAGING_") or setting in _NIGHTLY, command
