# SPDX-License-Identifier: Apache-2.0
"""Says what is wrong where TensorFlow cannot be imported. Needs no TensorFlow."""

import pathlib

from tensorflow_staging.python.doctor import finding
from tensorflow_staging.python.doctor import installed_files

_SITE_PACKAGES = pathlib.Path(__file__).parents[3]


def report(error: ImportError) -> int:
  """Prints why TensorFlow cannot be imported.

  Args:
    error: What importing it raised.

  Returns:
    1, the exit status.
  """
  findings = [
      *installed_files.check_version(_SITE_PACKAGES),
      *installed_files.check_other_distributions(_SITE_PACKAGES),
      *installed_files.check_files(_SITE_PACKAGES),
      finding.Finding("import", f"import tensorflow fails: {_reason(error)}", installed_files.REINSTALL),
  ]
  for found in findings:
    print(found)
  return finding.exit_status(findings)


def _reason(error: ImportError) -> str:
  """Returns the line of the message that says why; TensorFlow puts a traceback before it."""
  lines = [line.strip() for line in str(error).splitlines() if line.strip()]
  reason = next((line for line in lines if line.startswith("ImportError: ")), lines[0] if lines else "unknown")
  return reason.removeprefix("ImportError: ") + "."
