# SPDX-License-Identifier: Apache-2.0
"""Adapts the extra `and-cuda`, which installs CUDA's libraries beside TensorFlow, to our wheel.

Both official wheels offer the extra, and on Python 3.11 pip can install neither with it: the extra requires a version
of TensorRT that has no build for Python 3.11. TensorFlow loads TensorRT at run time, and only for TF-TRT, so the wheels
for other Pythons do without it, too.
"""

from __future__ import annotations

import email.message
import re

EXTRA = "and-cuda"
_REQUIREMENT = re.compile(rf"""(?P<name>[\w.-]+).*;.*\bextra\s*==\s*["']{EXTRA}["']""")


def adapt(metadata: email.message.Message, cuda: bool) -> None:
  """Changes the extra in a wheel's METADATA; all other headers stay as they are, in their order.

  In a CUDA wheel the extra does not require TensorRT. A CPU wheel cannot use CUDA's libraries, so it loses the extra;
  pip then warns about it and installs the wheel alone.

  Args:
    metadata: The METADATA, changed in place.
    cuda: Whether the wheel has CUDA kernels.
  """
  headers = metadata.items()
  for name in set(metadata.keys()):
    del metadata[name]
  for name, value in headers:
    if not _is_dropped(name, value, cuda):
      metadata[name] = value


def _is_dropped(name: str, value: str, cuda: bool) -> bool:
  if name == "Provides-Extra":
    return value == EXTRA and not cuda
  required = _REQUIREMENT.match(value) if name == "Requires-Dist" else None
  return required is not None and (not cuda or required["name"].lower() == "tensorrt")
