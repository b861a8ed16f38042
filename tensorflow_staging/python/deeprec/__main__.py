# SPDX-License-Identifier: Apache-2.0
"""Runs a script that is written for DeepRec: `python -m tensorflow_staging.python.deeprec script.py ...`.

The script and its arguments are as for `python script.py ...`.
"""

import os
import runpy
import sys

from tensorflow_staging.python.deeprec import names


def main() -> None:
  if len(sys.argv) < 2:
    sys.exit("usage: python -m tensorflow_staging.python.deeprec SCRIPT [ARGUMENT ...]")
  del sys.argv[0]
  script = sys.argv[0]
  if not os.path.isfile(script):
    sys.exit(f"python -m tensorflow_staging.python.deeprec: error: there is no file {script!r}.")
  names.use_deeprec_names()
  sys.path[0] = os.path.dirname(os.path.abspath(script))
  runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
  main()
