# SPDX-License-Identifier: Apache-2.0
"""A program is ended with all that it has started. Runs in a process of its own, which adopts orphans."""

import pytest

from tensorflow_staging.python.testing import test_util

_PROGRAM = """
import os, pathlib, sys, time
from tensorflow_staging.python.command_line import process_tree

process_tree.adopt_orphans()
starts = '''
import os, subprocess, sys, time
# A child with a session of its own, whose parent ends, and one with the same group.
subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(1000)"], start_new_session=True)
subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(1000)"])
while open("output").read().count("1") < 2: time.sleep(0.01)
%s
'''
output = pathlib.Path("output")
print(process_tree.run([sys.executable, "-c", starts % sys.argv[1]], os.environ, output, float(sys.argv[2])))
print(process_tree._children())
"""


@pytest.mark.parametrize("end,seconds,status", [
    ("sys.exit(3)", 60, "3"),
    ("time.sleep(1000)", 3, "None"),
    ("os.kill(os.getpid(), 9)", 60, "-9"),
])
def test_nothing_is_left(tmp_path, end, seconds, status):
  output = test_util.run(
      [test_util.sys.executable, "-c", _PROGRAM, end, str(seconds)], tmp_path)
  assert output.splitlines() == [status, "set()"]
