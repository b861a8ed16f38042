# SPDX-License-Identifier: Apache-2.0
"""`python -m tensorflow.staging` explains itself."""

import importlib.metadata
import subprocess
import sys

import pytest
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python.build_info import build_info
from tensorflow_staging.python.command_line import main
from tensorflow_staging.python.testing import test_util


def test_the_help_names_the_commands(capsys):
  with pytest.raises(SystemExit) as end:
    main.main(["--help"])
  assert end.value.code == 0
  output = capsys.readouterr().out
  assert all(command in output for command in ("run", "compare", "explain", "doctor"))


def test_the_version_is_that_of_the_wheel(capsys):
  with pytest.raises(SystemExit) as end:
    main.main(["--version"])
  assert end.value.code == 0
  info = build_info.build_info()
  line, = capsys.readouterr().out.splitlines()
  assert line.startswith(f"tensorflow {importlib.metadata.version('tensorflow')} ({info.base})")
  assert (info.commit or "") in line


@pytest.mark.parametrize("arguments, message", [
    ([], "error: the following arguments are required: COMMAND"),
    (["explode"], "invalid choice: 'explode' (choose from 'run', 'compare', 'explain', 'doctor')"),
    (["doctor", "--colour"], "error: unrecognized arguments: --colour"),
])
def test_a_wrong_command_is_refused_in_one_line(capsys, arguments, message):
  with pytest.raises(SystemExit) as end:
    main.main(arguments)
  assert end.value.code == 2
  line, = capsys.readouterr().err.splitlines()
  assert line.startswith("python -m tensorflow.staging") and message in line


def test_a_program_that_calls_it_keeps_what_it_logs(capsys):
  before = tf_logging.get_verbosity()
  assert main.main(["explain", "no_such_file.pb"]) == 2
  assert "no_such_file.pb" in capsys.readouterr().err
  assert tf_logging.get_verbosity() == before


def test_a_reader_that_has_enough_is_no_error(tmp_path):
  graph = tmp_path / "graph.pbtxt"
  graph.write_text('node { name: "a" op: "NoOp" }')
  program = subprocess.Popen(
      [sys.executable, "-m", "tensorflow.staging", "explain", graph],
      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
  program.stdout.close()
  assert program.stderr.read() == ""
  assert program.wait(test_util.WAIT_SECONDS) == 0
