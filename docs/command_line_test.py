# SPDX-License-Identifier: Apache-2.0
"""command_line.md lists every option."""

import argparse
import pathlib
import re

from tensorflow_staging.python.command_line import explain_command

_TEXT = (pathlib.Path(__file__).parent / "command_line.md").read_text()


def test_the_page_lists_every_option_of_explain():
  parser = argparse.ArgumentParser(add_help=False)
  explain_command.add_arguments(parser)
  options = {option for action in parser._actions for option in action.option_strings}
  assert set(re.findall(r"`(--\w+)[=`]", _TEXT)) - {"--version"} == options
