# SPDX-License-Identifier: Apache-2.0
"""Finds the NVIDIA driver and the GPUs of this machine, and says what keeps a kit from running on them.

As a program, it prints what it finds as JSON. It is one of its own because a broken driver can hang or crash it.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import pathlib
import platform
import re
from collections.abc import Iterable
from typing import Any

import chips

# Where drivers put libcuda.so.1 on machines whose loader does not find it.
_FOLDERS = (
    "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64/nvidia", "/usr/lib64",
    "/usr/lib/wsl/lib", "/run/opengl-driver/lib")
_NO_DEVICE = 100
_MAJOR, _MINOR = 75, 76


@dataclasses.dataclass
class Gpu:
  """A GPU: its name, its chip as in "sm_90", and its memory in bytes."""

  name: str
  chip: str
  memory: int


@dataclasses.dataclass
class Machine:
  """What a machine has.

  Attributes:
    driver: The path with which libcuda.so.1 was loaded, or None.
    version: The version of the driver's kernel module, as in "580.159.04"; empty if it is not known.
    cuda: The newest version of CUDA that the driver knows, as 13000 for 13.0; 0 if there is no driver.
    status: What cuInit returned; 0 is success.
    gpus: The GPUs.
    system: The operating system and its kernel.
    processor: The processor's name.
    cores: The number of cores that this process may use.
    memory: The memory in bytes.
  """

  driver: str | None = None
  version: str = ""
  cuda: int = 0
  status: int = 0
  gpus: list[Gpu] = dataclasses.field(default_factory=list)
  system: str = ""
  processor: str = ""
  cores: int = 0
  memory: int = 0

  @classmethod
  def from_json(cls, text: str) -> Machine:
    """Reads what `to_json` wrote."""
    fields = json.loads(text)
    return cls(**{**fields, "gpus": [Gpu(**gpu) for gpu in fields["gpus"]]})

  def to_json(self) -> str:
    """Returns all attributes as a JSON object in one line."""
    return json.dumps(dataclasses.asdict(self))


def find() -> Machine:
  """Looks at this machine."""
  machine = Machine(
      version=_driver_version(),
      system=f"{platform.freedesktop_os_release().get('PRETTY_NAME', 'Linux') if _has_release() else 'Linux'},"
             f" kernel {platform.release()}",
      processor=_processor(),
      cores=len(os.sched_getaffinity(0)),
      memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
  for path in ("libcuda.so.1", *(f"{folder}/libcuda.so.1" for folder in _FOLDERS)):
    try:
      library = ctypes.CDLL(path)
    except OSError:
      continue
    machine.driver = path
    _ask(library, machine)
    break
  return machine


def problem(machine: Machine, cuda: str | None, code: dict[str, list[list[str]]]) -> str | None:
  """Says why a kit cannot run on a machine, and what to do.

  Args:
    machine: The machine.
    cuda: The version of CUDA that TensorFlow was compiled with, as in "11.8", or None. An older driver cannot compile
      its PTX.
    code: For each library with GPU code, the combinations of code that its containers have.

  Returns:
    One or more sentences, or None if it can.
  """
  if cuda is None:
    return "TensorFlow was compiled without CUDA, so it cannot use a GPU."
  if machine.driver is None:
    return (f"There is no NVIDIA driver: libcuda.so.1 was not found. Install one that knows CUDA {cuda}; in a"
            " container, pass the GPU and the driver on, as `--gpus all` does.")
  if machine.cuda < _number(cuda):
    return (f"The NVIDIA driver knows CUDA {_version(machine.cuda)}, and the kit needs {cuda}. Install a newer one:"
            " `nvidia-smi` shows which CUDA a driver knows.")
  if machine.status == _NO_DEVICE or (machine.status == 0 and not machine.gpus):
    return ("The NVIDIA driver finds no GPU. Check that `nvidia-smi` lists one, that /dev/nvidia0 can be opened, and"
            " that CUDA_VISIBLE_DEVICES does not hide it.")
  if machine.status:
    return (f"The NVIDIA driver does not start: cuInit returned {machine.status}. Check that `nvidia-smi` works, and"
            " that the kernel module and libcuda.so.1 are of the same version.")
  chip = chips.parse_chip(machine.gpus[0].chip)
  lacking = without_code(code, chip)
  if lacking:
    return (f"The kit has no code for the GPU, {machine.gpus[0].name}, which is {chip}: {', '.join(lacking)} cannot run"
            f" there. Pack a kit for it: gpu_kit/pack.sh --chip {chip}")
  return None


def without_code(code: dict[str, list[list[str]]], chip: chips.Chip) -> list[str]:
  """Returns the libraries that have code, but for some containers none that runs on a chip."""
  return sorted(
      name for name, combinations in code.items()
      if not all(_runs(combination, chip) for combination in combinations))


def _runs(combination: Iterable[str], chip: chips.Chip) -> bool:
  return any(chips.parse_code(code).runs_on(chip) for code in combination)


def _version(number: int) -> str:
  return f"{number // 1000}.{number % 1000 // 10}"


def _number(version: str) -> int:
  major, minor = version.split(".")
  return int(major) * 1000 + int(minor) * 10


def _ask(library: Any, machine: Machine) -> None:
  version, count = ctypes.c_int(), ctypes.c_int()
  # This works without a GPU.
  library.cuDriverGetVersion(ctypes.byref(version))
  machine.cuda = version.value
  machine.status = library.cuInit(0)
  if machine.status or library.cuDeviceGetCount(ctypes.byref(count)):
    return
  for number in range(count.value):
    device, name, memory = ctypes.c_int(), ctypes.create_string_buffer(100), ctypes.c_size_t()
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.cuDeviceGet(ctypes.byref(device), number)
    library.cuDeviceGetName(name, len(name), device)
    library.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    library.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device)
    library.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device)
    machine.gpus.append(Gpu(name.value.decode(), str(chips.Chip(major.value, minor.value)), memory.value))


def _driver_version() -> str:
  sources = {"/sys/module/nvidia/version": r"^([\d.]+)$", "/proc/driver/nvidia/version": r"  ([\d.]+)  "}
  for path, pattern in sources.items():
    try:
      if match := re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE):
        return match[1]
    except OSError:
      continue
  return ""


def _has_release() -> bool:
  return any(pathlib.Path(path).exists() for path in ("/etc/os-release", "/usr/lib/os-release"))


def _processor() -> str:
  try:
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
  except OSError:
    return platform.machine()
  return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
  print(find().to_json())
