# SPDX-License-Identifier: Apache-2.0
"""Runs TensorFlow's test files as upstream's build does: with TensorFlow 2's behaviour off, and each in its process.

usage: run_as_v1.py SESSIONS SOURCE

Forks for each test file that its input names (forks.py, which our own tests use as well).

SESSIONS is "plain", or the module beside this file that changes all sessions: "stage_pools" or "smart_sessions". SOURCE
is TensorFlow's source tree, from which a test imports the few helper modules that wheels do not have.
"""

import contextlib
import importlib
import importlib.machinery
import importlib.util
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tensorflow_staging/python/testing"))

import forks

_HELPERS = {
    "tensorflow.python.summary.writer.fake_summary_writer",
    "tensorflow.python.profiler.internal.model_analyzer_testlib",
    "tensorflow.python.profiler.profile_context",
}


class _HelperFinder:
  """Finds the helpers in the source tree. Comes last in `sys.meta_path`, so that the wheel's modules are preferred."""

  def __init__(self, source: pathlib.Path):
    self._source = source

  def find_spec(self, name: str, path=None, target=None) -> importlib.machinery.ModuleSpec | None:
    if name not in _HELPERS:
      return None
    return importlib.util.spec_from_file_location(name, self._source / (name.replace(".", "/") + ".py"))


def main() -> None:
  sessions, source = sys.argv[1:]
  from absl import flags
  from tensorflow.python.compat import v2_compat

  v2_compat.disable_v2_behavior()
  sys.meta_path.append(_HelperFinder(pathlib.Path(source)))
  changes = contextlib.nullcontext if sessions == "plain" else importlib.import_module(sessions).everywhere

  def run(test: str) -> None:
    # absl has read these variables when TensorFlow imported it.
    for flag in ("test_tmpdir", "test_srcdir"):
      flags.FLAGS.set_default(flag, os.environ[flag.upper()])
    with changes():
      forks.run_program(test)

  forks.serve(run)


if __name__ == "__main__":
  main()
