# SPDX-License-Identifier: Apache-2.0
"""The callbacks that a `fit` gets beside those of the program, as the environment asks for them."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from tensorflow.python.framework import ops
from tensorflow.python.util import nest

from tensorflow_staging.python.automatic import measured_fits
from tensorflow_staging.python.automatic import measured_run
from tensorflow_staging.python.automatic import notices
from tensorflow_staging.python.automatic import program_end
from tensorflow_staging.python.automatic import setting
from tensorflow_staging.python.stats import counted_stages
from tensorflow_staging.python.stats import ended_stages


def added_to(callbacks: Any, new_callback: Callable[[], Any], is_callback: Callable[[Any], bool]) -> Any:
  """Returns the argument `callbacks` of a `fit` with one that stages its input, or that measures its steps, or both.

  Args:
    callbacks: The program's argument. A list of Keras's own class is changed.
    new_callback: Returns a new callback `tf.staging.SmartStage`.
    is_callback: Says whether a value is one.
  """
  clocks = measured_run.begin_if_asked()
  given = nest.flatten(getattr(callbacks, "callbacks", callbacks)) if callbacks else []
  staging = [callback for callback in given if is_callback(callback)]
  added = []
  if not staging and setting.current() == setting.Setting.ON and ops.executing_eagerly_outside_functions():
    notices.say_it_is_on_in_fits()
    program_end.say_what_it_gained()
    staging = added = [new_callback()]
    staging[0].note_ended = _note_ended
  if clocks is not None:
    added = [
        *added,
        measured_fits.callback(
            clocks, lambda: counted_stages.in_all(step for callback in staging for step in callback.steps()))
    ]
  if not added:
    return callbacks
  if hasattr(callbacks, "append") and not isinstance(callbacks, list):
    for callback in added:
      callbacks.append(callback)
    return callbacks
  return [*given, *added]


def _note_ended(steps: Sequence[Any]) -> None:
  notices.note_ended(ended_stages.of_steps(steps))
