# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a file in several processes, the workers of a `tf.distribute` strategy.

Such a file ends with `worker_cases.main(globals())` where others have `cases.main(globals())`. Each worker runs all
cases, and a case fails if it fails in one of them.
"""

import json
import os
import pathlib
import sys
from typing import Any

import cases
import loopback

# For all cases of a file.
_SECONDS = 450 * cases.REPEATS


def main(namespace: dict[str, Any], number: int = 2) -> None:
  """Runs the cases in so many workers, and prints what came of each as `cases.main` does."""
  if "TF_CONFIG" in os.environ:
    # The others may wait for the case that has failed.
    cases.main(namespace, goes_on=False)
    return
  printed = [cases.outcomes(output) for _, output in loopback.run_workers(sys.argv, number, _SECONDS)]
  for name in sys.argv[1:] or cases.names_in(pathlib.Path(sys.argv[0])):
    errors = [f"Worker {i}: {error}" for i, by_name in enumerate(printed)
              if (error := by_name.get(name, "It has ended before."))]
    print(json.dumps([name, "\n".join(errors)]), flush=True)
