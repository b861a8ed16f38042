# SPDX-License-Identifier: Apache-2.0
"""Runs one of TensorFlow's test files as upstream's build does: with TensorFlow 2's behaviour off.

usage: run_as_v1.py [--stage-pools] SOURCE TEST_FILE

SOURCE is TensorFlow's source tree, from which a test imports the few helper modules that wheels do not have. With
--stage-pools, every local session has a stage thread pool, and all its runs use that pool.
"""

import contextlib
import importlib.machinery
import importlib.util
import pathlib
import runpy
import sys

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
  stage_pools = sys.argv[1] == "--stage-pools"
  if stage_pools:
    del sys.argv[1]
  source, test = map(pathlib.Path, sys.argv[1:3])
  from tensorflow.python.compat import v2_compat

  v2_compat.disable_v2_behavior()
  sys.meta_path.append(_HelperFinder(source))
  sessions = contextlib.nullcontext()
  if stage_pools:
    import stage_pools as pools

    sessions = pools.everywhere()
  sys.argv[:] = [str(test), *sys.argv[3:]]
  sys.path[0] = str(test.parent)
  with sessions:
    runpy.run_path(str(test), run_name="__main__")


if __name__ == "__main__":
  main()
