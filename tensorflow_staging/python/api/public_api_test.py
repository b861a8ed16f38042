# SPDX-License-Identifier: Apache-2.0
"""The new names are in both API roots, in `tf.compat.v1` and in `tf.compat.v2`."""

import functools

import pytest

_NAMES = [
    "staged", "prefetch_join", "make_prefetch_hook", "SmartStageOptions", "stream", "train.mark_target_node",
    "staging.allow_stale", "staging.explain", "staging.stats", "staging.StatsHook", "staging.save_iterators",
    "staging.WorkerCheckpointHook", "staging.build_info", "staging.unstaged",
    "staging.discard", "async_embedding_mark_node", "staging.use_deeprec_names", "staging.ahead", "staging.SmartStage",
    "staging.BackupAndRestore", "staging.smart_stage_config",
]


_ROOTS = ["tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2"]
_VERSIONS = ["1", "2"]


_STAGING = sorted(name.partition(".")[2] for name in _NAMES if name.startswith("staging."))


@pytest.fixture(scope="module")
def output_of(run_forked, tmp_path_factory):

  @functools.cache
  def output(root, version):
    return run_forked(
        f"""
        import operator
        import {root} as tf

        for name in {_NAMES}:
          print(name, operator.attrgetter(name)(tf).__module__.split(".")[0])
        print(sorted(dir(tf.staging)))
        """, tmp_path_factory.mktemp("program"), api_version=version)

  return output


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("root", _ROOTS)
def test_each_name_is_the_function_of_its_module(output_of, version, root):
  assert output_of(root, version).splitlines()[:-1] == [f"{name} tensorflow_staging" for name in _NAMES]


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("root", _ROOTS)
def test_completion_of_the_package_offers_its_functions_alone(output_of, version, root):
  assert output_of(root, version).splitlines()[-1] == str(_STAGING)
