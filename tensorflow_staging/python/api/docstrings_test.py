# SPDX-License-Identifier: Apache-2.0
"""The docstrings of the public API document every argument, and their examples run unchanged."""

import inspect
import re

import pytest
import tensorflow as tf

_DOCUMENTED = {
    "tf.staged": tf.staged,
    "tf.prefetch_join": tf.prefetch_join,
    "tf.make_prefetch_hook": tf.make_prefetch_hook,
    "tf.make_prefetch_hook().running": type(tf.make_prefetch_hook()).running,
    "tf.SmartStageOptions": tf.SmartStageOptions,
    "tf.stream": tf.stream,
    "tf.train.mark_target_node": tf.train.mark_target_node,
    "tf.staging.allow_stale": tf.staging.allow_stale,
    "tf.staging.explain": tf.staging.explain,
    "tf.staging.stats": tf.staging.stats,
    "tf.staging.build_info": tf.staging.build_info,
    "tf.staging.unstaged": tf.staging.unstaged,
}


_VERSIONS = ["1", "2"]


def _examples(name: str) -> list[str]:
  return re.findall(r"```python\n(.*?)```", inspect.getdoc(_DOCUMENTED[name]), re.DOTALL)


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("name", _DOCUMENTED)
def test_example(run_forked, tmp_path, name, version):
  assert _examples(name)
  for example in _examples(name):
    run_forked(example, tmp_path, api_version=version)


def test_the_example_of_staged_prints_the_documented_output(run_forked, tmp_path):
  example, = _examples("tf.staged")
  assert run_forked(example, tmp_path).split() == ["0", "10", "20"]


@pytest.mark.parametrize("documented", _DOCUMENTED.values(), ids=_DOCUMENTED)
def test_every_argument_is_documented(documented):
  text = inspect.getdoc(documented)
  for argument in inspect.signature(documented).parameters:
    assert argument == "self" or f"\n  {argument}: " in text, argument
