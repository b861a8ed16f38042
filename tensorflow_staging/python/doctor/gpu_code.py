# SPDX-License-Identifier: Apache-2.0
"""Checks that the wheel has machine code for the machine's GPUs."""

import ctypes
from collections.abc import Iterable
from typing import NamedTuple

from tensorflow_staging.python.doctor import finding

_CHECK = "GPU code"
# The oldest chip for which drivers can compile the wheel's PTX.
_OLDEST_OF_PTX = (8, 0)
# CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
_MAJOR, _MINOR = 75, 76


class Gpu(NamedTuple):
  """A GPU: its name, and its compute capability, such as (9, 0)."""
  name: str
  capability: tuple[int, int]

  def __str__(self) -> str:
    return f"{self.name}, which is {_chip(self.capability)}"


def find(driver: str) -> list[Gpu]:
  """Asks a driver for its GPUs; returns none if it does not answer.

  Args:
    driver: The driver's library, which the loader looks for.
  """
  try:
    library = ctypes.CDLL(driver)
    count = ctypes.c_int()
    if library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count)):
      return []
    return [_gpu(library, number) for number in range(count.value)]
  except (OSError, AttributeError):
    return []


def _gpu(library: ctypes.CDLL, number: int) -> Gpu:
  device, name, major, minor = ctypes.c_int(), ctypes.create_string_buffer(100), ctypes.c_int(), ctypes.c_int()
  library.cuDeviceGet(ctypes.byref(device), number)
  library.cuDeviceGetName(name, len(name), device)
  library.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device)
  library.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device)
  return Gpu(name.value.decode(errors="replace"), (major.value, minor.value))


def check_gpu_code(chips: Iterable[str], gpus: Iterable[Gpu]) -> list[finding.Finding]:
  """Checks that GPUs find machine code.

  Args:
    chips: The chips for which all code of the wheel is machine code, such as "sm_90".
    gpus: The GPUs.

  Returns:
    A finding for each kind of GPU.
  """
  chips = tuple(chips)
  return [_finding(chips, gpu) for gpu in dict.fromkeys(gpus)]


def _finding(chips: tuple[str, ...], gpu: Gpu) -> finding.Finding:
  if any(_runs(_capability(chip), gpu.capability) for chip in chips):
    return finding.Finding(_CHECK, f"This wheel has machine code for {gpu}.")
  lacking = f"This wheel has machine code for {', '.join(chips)}, and not for {gpu}"
  build = f"ci/build_wheel.sh --config=cuda --chip={_chip(gpu.capability)}"
  if gpu.capability < _OLDEST_OF_PTX:
    return finding.Finding(_CHECK, f"{lacking}.", f"Build a wheel for it: {build}")
  return finding.Finding(
      _CHECK,
      f"{lacking}: the driver compiles each kernel when it is first used, so the first step on each new machine takes a"
      f" minute or more. `{build}` builds a wheel whose first step takes seconds.")


def _runs(code: tuple[int, int], capability: tuple[int, int]) -> bool:
  """Whether machine code for one chip runs on another: one of its generation that is not older."""
  return code[0] == capability[0] and code <= capability


def _capability(chip: str) -> tuple[int, int]:
  number = int(chip[len("sm_"):])
  return number // 10, number % 10


def _chip(capability: tuple[int, int]) -> str:
  return f"sm_{capability[0]}{capability[1]}"
