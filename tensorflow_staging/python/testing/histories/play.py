# SPDX-License-Identifier: Apache-2.0
"""Plays random histories, and says which of them differ from the same program without a stage.

  play.py model FIRST [COUNT]       to the model of the ledgers; needs no TensorFlow
  play.py sessions FIRST [COUNT]    to sessions with stages
  play.py functions FIRST [COUNT]   to `tf.staging.ahead`, in a process that has TensorFlow 2's API

FIRST is the seed of the first history. Each history that differs is a line with its seed; a single one is printed in
full. A history that hangs ends the process: the last line of stderr that begins with "seed" names it.
"""

import argparse
import faulthandler
import os
import pathlib
import sys
import tempfile
import time

_ROOT = pathlib.Path(__file__).resolve().parents[4]
_SECONDS_PER_HISTORY = 60


def _find_package() -> None:
  """Lets Python find the modules beside this file, and the installed wheel, which lacks them."""
  folder = pathlib.Path(__file__).resolve().parent
  sys.path[:] = [entry for entry in sys.path if pathlib.Path(entry).resolve() not in (_ROOT, folder)]
  try:
    import tensorflow_staging.python as package
  except ImportError:
    sys.path.insert(0, str(_ROOT))
    return
  package.__path__.append(str(_ROOT / "tensorflow_staging" / "python"))


def main() -> int:
  """Plays the histories that the arguments name; returns the exit status."""
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("player", choices=["model", "sessions", "functions"])
  parser.add_argument("first", type=int)
  parser.add_argument("count", type=int, nargs="?", default=1)
  arguments = parser.parse_args()
  if arguments.player == "functions":
    os.environ["TF_API_VERSION"] = "2"
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  _find_package()
  from tensorflow_staging.python.testing.histories import tries  # pylint: disable=import-outside-toplevel

  begin, different = time.monotonic(), 0
  with tempfile.TemporaryDirectory() as folder:
    attempt = tries.Tries(arguments.player, pathlib.Path(folder), tells=arguments.count == 1)
    for seed in range(arguments.first, arguments.first + arguments.count):
      print(f"seed {seed} begins", file=sys.stderr, flush=True)
      faulthandler.dump_traceback_later(_SECONDS_PER_HISTORY, exit=True)
      difference = attempt.play(seed)
      if difference:
        different += 1
        print(f"seed {seed}: {difference}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    attempt.close()
  print(f"{different} of {arguments.count} histories differ, after {time.monotonic() - begin:.0f} s. {attempt.notes()}")
  return 1 if different else 0


if __name__ == "__main__":
  sys.exit(main())
