# SPDX-License-Identifier: Apache-2.0
"""Editors and type checkers, which read a program without running it, know the new names."""

import importlib.resources
import inspect
import sys

import jedi
import pytest
import tensorflow as tf


def _script(line: str) -> jedi.Script:
  environment = jedi.create_environment(sys.prefix, safe=False)
  return jedi.Script(f"import tensorflow as tf\n{line}", environment=environment)


@pytest.mark.parametrize(("typed", "completed"), [
    ("tf.stage", "staged"),
    ("tf.SmartS", "SmartStageOptions"),
    ("tf.make_pre", "make_prefetch_hook"),
    ("tf.prefetch_j", "prefetch_join"),
    ("tf.train.mark_t", "mark_target_node"),
    ("tf.staging.expl", "explain"),
])
def test_an_editor_completes_a_name(typed, completed):
  assert [each.name for each in _script(typed).complete()] == [completed]


@pytest.mark.parametrize("function", ["staged", "SmartStageOptions"])
def test_an_editor_shows_the_parameters(function):
  signature, = _script(f"tf.{function}(").get_signatures()
  assert [each.name for each in signature.params] == list(inspect.signature(getattr(tf, function)).parameters)


def test_type_checkers_use_the_hints():
  assert (importlib.resources.files("tensorflow_staging") / "py.typed").is_file()
