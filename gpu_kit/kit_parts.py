# SPDX-License-Identifier: Apache-2.0
"""The parts of a kit's run, in their order. A part that is cut off loses nothing that it has printed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

# What a kit is of: the fork's wheel, or the plugin's beside an official TensorFlow.
FORK, PLUGIN = "fork", "plugin"
_BOTH = (FORK, PLUGIN)

_DEVICE = "{device}"
_PACKAGES = "{packages}"
_WARM_UP = ("gpu_kit/warm_up.py", "--device", _DEVICE)
_KERAS = ("benchmarks/gpu_ahead.py", "--device", _DEVICE)


class Part(NamedTuple):
  """A program that measures or tests something on a GPU.

  Attributes:
    name: Its name, with which `run.sh --only` chooses it.
    seconds: How long it may take.
    command: Its program and arguments, for the kit's Python; {device} stands for "gpu" or "cpu", and {packages} for the
      folder of packages.
    kinds: The kinds of kits that have it.
    is_test: Whether it is files of tests for pytest.
    prints_markdown: Whether what it prints belongs into the report.
    trial: More arguments on a CPU, where a part only tries itself.
    environment: Variables that it needs besides those of all parts.
    calls_staging: Whether it calls `tf.staging`, for which the plugin stands in.
  """

  name: str
  seconds: float
  command: tuple[str, ...]
  kinds: tuple[str, ...] = (FORK,)
  is_test: bool = False
  prints_markdown: bool = True
  trial: tuple[str, ...] = ()
  environment: tuple[tuple[str, str], ...] = ()
  calls_staging: bool = False

  def arguments(self, device: str, packages: str) -> list[str]:
    """Returns the command for a device, "gpu" or "cpu", and a folder of packages."""
    command = (*self.command, *self.trial) if device == "cpu" else self.command
    return [argument.replace(_DEVICE, device).replace(_PACKAGES, packages) for argument in command]


def _test(name: str, seconds: float, *files: str, **options) -> Part:
  return Part(name, seconds, tuple(f"gpu_kit/tests/{file}_test.py" for file in files), is_test=True, **options)


def _model(name: str, seconds: float) -> Part:
  return Part(name, seconds, ("benchmarks/gpu_models.py", "--models", name, "--device", _DEVICE), trial=("--quick",))


# What answers most in the least time comes first. Without the driver's compiler, a kernel without machine code is an
# error.
PARTS = (
    Part("libraries", 15, ("gpu_kit/load_libraries.py", f"{_PACKAGES}/nvidia"), kinds=_BOTH),
    Part("native", 40, _WARM_UP, environment=(("CUDA_DISABLE_PTX_JIT", "1"),)),
    # The official TensorFlow has PTX alone for many kernels, and the driver compiles what the parts use.
    Part("compiled", 150, _WARM_UP, kinds=(PLUGIN,)),
    _test("values", 60, "gpu_values", "gpu_streams"),
    _test("function", 45, "gpu_ahead", kinds=_BOTH, calls_staging=True),
    Part("overlap", 30, ("benchmarks/gpu_overlap.py", "--device", _DEVICE)),
    Part("copies", 40, ("benchmarks/gpu_copies.py", "--device", _DEVICE)),
    Part("random", 40, ("gpu_kit/compare_random_graphs.py",)),
    _model("dlrm", 40),
    _model("deepfm", 30),
    _model("dssm", 30),
    _model("din", 30),
    _model("dien", 35),
    _test("towers", 40, "gpu_towers"),
    _test("mirrored", 40, "gpu_mirrored", kinds=_BOTH, calls_staging=True),
    Part("streams", 25, ("benchmarks/gpu_streams.py", "--device", _DEVICE)),
    Part("ahead", 45, _KERAS, kinds=_BOTH, calls_staging=True),
    Part("keras3", 120, (*_KERAS, "--xla"), kinds=(PLUGIN,), environment=(("TF_USE_LEGACY_KERAS", "0"),),
         calls_staging=True),
    # All other parts load kernels when they are first used, as the wheel chooses.
    Part("eager", 40, _WARM_UP, environment=(("CUDA_MODULE_LOADING", "EAGER"),)),
)


def chosen(kind: str, names: Iterable[str]) -> list[Part]:
  """Returns the parts of a kind of kit with these names, in the order of `PARTS`; all of them if there are no names.

  Raises:
    ValueError: If such a kit has no part of a name.
  """
  names = set(names)
  parts = [part for part in PARTS if kind in part.kinds]
  if unknown := sorted(names - {part.name for part in parts}):
    raise ValueError(f"there is no part {', '.join(unknown)} in a kit of the {kind}:"
                     f" there are {', '.join(part.name for part in parts)}")
  return [part for part in parts if not names or part.name in names]
