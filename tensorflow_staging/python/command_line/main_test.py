# SPDX-License-Identifier: Apache-2.0
"""`python -m tensorflow.staging` explains itself."""

import pytest

from tensorflow_staging.python.command_line import main


def test_the_help_names_the_commands(capsys):
  with pytest.raises(SystemExit) as end:
    main.main(["--help"])
  assert end.value.code == 0
  output = capsys.readouterr().out
  assert "explain" in output and "doctor" in output


@pytest.mark.parametrize("arguments, message", [
    ([], "error: the following arguments are required: COMMAND"),
    (["explode"], "invalid choice: 'explode' (choose from 'explain', 'doctor')"),
    (["doctor", "--colour"], "error: unrecognized arguments: --colour"),
])
def test_a_wrong_command_is_refused_in_one_line(capsys, arguments, message):
  with pytest.raises(SystemExit) as end:
    main.main(arguments)
  assert end.value.code == 2
  line, = capsys.readouterr().err.splitlines()
  assert line.startswith("python -m tensorflow.staging") and message in line
