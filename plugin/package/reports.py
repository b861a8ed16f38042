# SPDX-License-Identifier: Apache-2.0
"""`tensorflow_staging.explain`: that of the fork, for steps and callbacks."""

from typing import Any

from tensorflow_staging.python import uncalled
from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.ahead import hints
from tensorflow_staging.python.ahead import keras_callback
from tensorflow_staging.python.ahead import step_report


def explain(step: ahead.AheadStep | Any) -> step_report.StepReport:
  """Reports what runs ahead of a step, and why the rest does not.

  Args:
    step: A step of `tensorflow_staging.ahead` that has been called, or a callback `tensorflow_staging.SmartStage()`
      that has been used.

  Returns:
    A report with the field `steps`: for each trace its name, `why_not`, its nodes, its boundary and the first nodes
    outside. `str()` of it is readable text.

  Raises:
    TypeError: If `step` is neither.
  """
  if isinstance(step, ahead.AheadStep) or keras_callback.is_callback(step):
    return step.report()
  uncalled.check(step)
  raise TypeError(
      "step must be a step of tensorflow_staging.ahead or a callback tensorflow_staging.SmartStage(), got"
      f" {step!r} of type {type(step).__name__}.{hints.hint_for(step, 'tensorflow_staging.explain')}")
