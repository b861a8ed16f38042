# SPDX-License-Identifier: Apache-2.0
"""command_line.md lists every option."""

import argparse
import pathlib
import re

import pytest

from tensorflow_staging.python.command_line import compare_command
from tensorflow_staging.python.command_line import explain_command

_TEXT = (pathlib.Path(__file__).parent / "command_line.md").read_text()


@pytest.mark.parametrize("name,command", [("explain", explain_command), ("compare", compare_command)])
def test_the_page_lists_every_option(name, command):
  parser = argparse.ArgumentParser(add_help=False)
  command.add_arguments(parser)
  options = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
  section = _TEXT.partition(f"## `{name}`: ")[2].partition("\n## ")[0]
  assert set(re.findall(r"`(--\w+)[=`]", section)) == options
