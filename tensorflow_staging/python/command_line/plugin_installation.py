# SPDX-License-Identifier: Apache-2.0
"""The version of the plugin, and what the doctor checks of it."""

import importlib.metadata
import importlib.util
import pathlib
import time
from collections.abc import Iterator

from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.eager import context
from tensorflow.python.eager import def_function
from tensorflow.python.framework import errors
from tensorflow.python.framework import versions
from tensorflow.python.ops import string_ops

from tensorflow_staging import built_for
from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.doctor import finding
from tensorflow_staging.python.doctor import official_gpus
from tensorflow_staging.python.stats import counted_stages

_SITE_PACKAGES = pathlib.Path(importlib.util.find_spec("tensorflow").origin).parent.parent
_SECONDS = 1
_ADVICE = "Run a program of your own with TF_CPP_MIN_LOG_LEVEL=0, and report what it logs."
_KERAS = ("keras", "tf_keras")


def version() -> str:
  """Returns the version in words."""
  return f"tensorflow_staging {built_for.PLUGIN}, built for tensorflow {built_for.TENSORFLOW}"


def findings() -> Iterator[finding.Finding]:
  """Checks the installation, one thing after the other."""
  yield finding.Finding("version", f"{version()}; imported beside tensorflow {versions.VERSION}.")
  yield _keras()
  yield official_gpus.check_gpus(_SITE_PACKAGES)
  # The commands work within a graph.
  with context.eager_mode():
    yield _trial()


def _keras() -> finding.Finding:
  found = [f"{name} {importlib.metadata.version(name)}" for name in _KERAS if importlib.util.find_spec(name)]
  if found:
    return finding.Finding("Keras", f"{' and '.join(found)}.")
  return finding.Finding("Keras", "There is none, so there is no fit.", "Install it: pip install keras")


def _trial() -> finding.Finding:
  """Trains with a stage for some seconds, and checks every record."""

  @def_function.function
  def step(iterator):
    return string_ops.string_to_number(string_ops.as_string(next(iterator)), "int64")

  step = ahead.ahead(step, capacity=4)
  iterator = iter(dataset_ops.DatasetV2.range(2**62))
  end, number = time.monotonic() + _SECONDS, 0
  try:
    while time.monotonic() < end:
      if (got := int(step(iterator))) != number:
        return finding.Finding("stage", f"Step {number} got the record {got}.", _ADVICE)
      number += 1
  except errors.OpError as error:
    return finding.Finding("stage", f"A step fails: {error.message}", _ADVICE)
  stages = counted_stages.of_what_has_steps(step)
  step.stop()
  if not stages or stages[0].taken != number:
    return finding.Finding("stage", f"{number} steps ran without a stage: {step.why_no_stage()}.", _ADVICE)
  return finding.Finding("stage", f"{number:,} steps got the right records of a stage.")
