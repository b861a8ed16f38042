# SPDX-License-Identifier: Apache-2.0
"""`tensorflow_staging.explain` and `tensorflow_staging.stats`: those of the fork, for steps and callbacks."""

from typing import Any

from tensorflow_staging.python import uncalled
from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.ahead import hints
from tensorflow_staging.python.ahead import keras_callback
from tensorflow_staging.python.ahead import step_report
from tensorflow_staging.python.stats import counted_stages


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
  raise _wrong_type(step, "explain")


def stats(step: ahead.AheadStep | Any) -> counted_stages.Stats:
  """Returns the statistics of the stages of a step or of a callback.

  Args:
    step: What `tensorflow_staging.ahead` has returned, which has a stage for each iterator; or a callback
      `tensorflow_staging.SmartStage()`: then those of its training and validation, each summed up over the epochs of
      the latest `fit`.

  Returns:
    A list with a `StageStats` for each stage. It prints as one line for each: what it has done, what it gained, and
    what to do next. If it is empty, it prints why.

  Raises:
    TypeError: If `step` is neither.
  """
  found = counted_stages.of_what_has_steps(step)
  if found is not None:
    return found
  raise _wrong_type(step, "stats")


def _wrong_type(value: Any, name: str) -> TypeError:
  uncalled.check(value)
  return TypeError(
      "step must be a step of tensorflow_staging.ahead or a callback tensorflow_staging.SmartStage(), got"
      f" {value!r} of type {type(value).__name__}.{hints.hint_for(value, f'tensorflow_staging.{name}')}")
