# SPDX-License-Identifier: Apache-2.0
"""command_line.md is true: the tests that it names exist, and it lists every option."""

import argparse
import pathlib
import re

import named_tests

from tensorflow_staging.python.command_line import explain_command

_TEXT = (pathlib.Path(__file__).parent / "command_line.md").read_text()


def test_named_tests_exist():
  assert len(named_tests.python_tests(_TEXT)) > 10
  assert named_tests.missing_python_tests(_TEXT) == []


def test_the_page_lists_every_option_of_explain():
  parser = argparse.ArgumentParser(add_help=False)
  explain_command.add_arguments(parser)
  options = {option for action in parser._actions for option in action.option_strings}
  assert set(re.findall(r"`(--\w+)[=`]", _TEXT)) == options
