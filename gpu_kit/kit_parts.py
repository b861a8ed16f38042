# SPDX-License-Identifier: Apache-2.0
"""The parts of a kit's run, in their order. A part that is cut off loses nothing that it has printed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_DEVICE = "{device}"


class Part(NamedTuple):
  """A program that measures or tests something on a GPU.

  Attributes:
    name: Its name, with which `run.sh --only` chooses it.
    seconds: How long it may take.
    command: Its program and arguments, for the kit's Python; {device} stands for "gpu" or "cpu".
    is_test: Whether it is files of tests for pytest.
    prints_markdown: Whether what it prints belongs into the report.
    trial: More arguments on a CPU, where a part only tries itself.
    environment: Variables that it needs besides those of all parts.
  """

  name: str
  seconds: float
  command: tuple[str, ...]
  is_test: bool = False
  prints_markdown: bool = True
  trial: tuple[str, ...] = ()
  environment: tuple[tuple[str, str], ...] = ()

  def arguments(self, device: str) -> list[str]:
    """Returns the command for a device: "gpu" or "cpu"."""
    command = (*self.command, *self.trial) if device == "cpu" else self.command
    return [argument.replace(_DEVICE, device) for argument in command]


def _test(name: str, seconds: float, *files: str) -> Part:
  return Part(name, seconds, tuple(f"gpu_kit/tests/{file}_test.py" for file in files), is_test=True)


def _model(name: str, seconds: float) -> Part:
  return Part(name, seconds, ("benchmarks/gpu_models.py", "--models", name, "--device", _DEVICE), trial=("--quick",))


# What answers most in the least time comes first. Without the driver's compiler, a kernel without machine code is an
# error.
PARTS = (
    Part("libraries", 15, ("gpu_kit/load_libraries.py", "packages/nvidia")),
    Part("native", 40, ("gpu_kit/warm_up.py", "--device", _DEVICE), environment=(("CUDA_DISABLE_PTX_JIT", "1"),)),
    _test("values", 60, "gpu_values", "gpu_streams"),
    _test("function", 45, "gpu_ahead"),
    Part("overlap", 30, ("benchmarks/gpu_overlap.py", "--device", _DEVICE)),
    Part("copies", 40, ("benchmarks/gpu_copies.py", "--device", _DEVICE)),
    Part("random", 40, ("gpu_kit/compare_random_graphs.py",)),
    _model("dlrm", 40),
    _model("deepfm", 30),
    _model("dssm", 30),
    _model("din", 30),
    _model("dien", 35),
    _test("two_gpus", 60, "two_gpus"),
    Part("streams", 25, ("benchmarks/gpu_streams.py", "--device", _DEVICE)),
    Part("ahead", 45, ("benchmarks/gpu_ahead.py", "--device", _DEVICE)),
    # All other parts load kernels when they are first used, as the wheel chooses.
    Part("eager", 40, ("gpu_kit/warm_up.py", "--device", _DEVICE), environment=(("CUDA_MODULE_LOADING", "EAGER"),)),
)


def chosen(names: Iterable[str]) -> list[Part]:
  """Returns the parts with these names, in the order of `PARTS`; all of them if there are no names.

  Raises:
    ValueError: If there is no part of a name.
  """
  names = set(names)
  known = [part.name for part in PARTS]
  if unknown := sorted(names - set(known)):
    raise ValueError(f"there is no part {', '.join(unknown)}: there are {', '.join(known)}")
  return [part for part in PARTS if not names or part.name in names]
