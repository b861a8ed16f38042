# SPDX-License-Identifier: Apache-2.0
"""Fails if the built wheel's requirements differ from its base wheel's, except for the extra `and-cuda`.

The extra of a CUDA wheel has the base wheel's requirements without TensorRT; a CPU wheel does not have the extra.
"""

from __future__ import annotations

import argparse
import email.message
import email.parser
import pathlib
import sys
import zipfile

_HEADERS = ("Requires-Python", "Requires-Dist", "Provides-Extra")
_OF_EXTRA = "; extra == 'and-cuda'"


def _metadata(wheel: pathlib.Path) -> email.message.Message:
  with zipfile.ZipFile(wheel) as archive:
    name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    return email.parser.Parser().parsestr(archive.read(name).decode())


def _requirements(wheel: pathlib.Path) -> list[str]:
  return [f"{name}: {value}" for name, value in _metadata(wheel).items() if name in _HEADERS]


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("wheel", type=pathlib.Path, help="the folder with the built wheel")
  parser.add_argument("base", type=pathlib.Path, help="the official wheel that it is built on")
  parser.add_argument("--cuda", action="store_true", help="the wheels are CUDA wheels")
  arguments = parser.parse_args()

  base = _requirements(arguments.base)
  of_extra = [line for line in base if line.endswith(_OF_EXTRA)]
  tensorrt = [line for line in of_extra if line.startswith("Requires-Dist: tensorrt ")]
  if len(of_extra) < 2 or not tensorrt:
    print("The base wheel's extra no longer requires TensorRT: change wheel/cuda_extra.py.", *base, sep="\n")
    return 1
  dropped = tensorrt if arguments.cuda else ["Provides-Extra: and-cuda", *of_extra]
  expected = [line for line in base if line not in dropped]
  (wheel,) = arguments.wheel.glob("*.whl")
  actual = _requirements(wheel)
  if actual == expected:
    return 0
  print(f"{wheel.name} should not have:", *(line for line in actual if line not in expected), sep="\n  ")
  print("and should have:", *(line for line in expected if line not in actual), sep="\n  ")
  return 1


if __name__ == "__main__":
  sys.exit(main())
