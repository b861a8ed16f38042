# SPDX-License-Identifier: Apache-2.0
"""What a program has asked `compile` of Keras 3 for. Keras keeps only what has become of `jit_compile="auto"`."""

import functools
import inspect
from typing import Any

from tensorflow_staging.python.automatic import import_watch

_ARGUMENT = "jit_compile"
# The attribute of a model that has the argument.
_ASKED = "_staging_jit_compile"


def watch() -> None:
  """From here on notes the argument of each call of `compile`."""
  import_watch.when_imported("keras.src.trainers.trainer", "Trainer", _watch)


def jit_compile_of(model: Any) -> Any:
  """Returns what `compile` has been asked for; if that was not noted, what has become of it."""
  noted = getattr(model, _ASKED, None)
  return getattr(getattr(model, "_compile_config", None), "config", {}).get(_ARGUMENT) if noted is None else noted


def _watch(trainer: Any) -> None:
  compile_model = trainer.compile
  signature = inspect.signature(compile_model)

  @functools.wraps(compile_model)
  def noting(*args: Any, **kwargs: Any) -> Any:
    result = compile_model(*args, **kwargs)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    setattr(args[0], _ASKED, bound.arguments[_ARGUMENT])
    return result

  trainer.compile = noting
