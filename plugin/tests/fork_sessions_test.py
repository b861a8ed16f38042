# SPDX-License-Identifier: Apache-2.0
"""The fork's own tests of sessions beside an official TensorFlow, in one process, and why some differ there."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

_HERE = pathlib.Path(__file__).parent
_ROOT = _HERE.parent.parent
_STAGES = "tensorflow_staging/python/stages"
_FILES = (
    f"{_STAGES}/alignment_test.py", f"{_STAGES}/end_of_data_test.py", f"{_STAGES}/error_cause_test.py",
    f"{_STAGES}/feed_dict_test.py", f"{_STAGES}/feed_generator_test.py", f"{_STAGES}/iterator_kinds_test.py",
    f"{_STAGES}/prefetch_join_test.py", f"{_STAGES}/record_order_test.py", f"{_STAGES}/record_types_test.py",
    f"{_STAGES}/structure_test.py", "tests/closing/closing_test.py", "tests/exactly_once/shared_data_test.py",
    "tests/same_values/second_training_op_test.py", "tests/same_values/smart_stage_pipelines_test.py",
    "tests/same_values/smart_stage_resources_test.py", "tests/same_values/smart_stage_restart_test.py",
    "tests/same_values/smart_stage_shared_iterator_test.py", "tests/same_values/smart_stage_training_test.py",
    "tests/sessions/monitored_session_test.py", "tests/sessions/running_blocks_test.py")

# The tests that differ, by the reason.
_DIFFERENT = {
    "A run fetches what no record carries, which is not in the session's graph.": (
        "test_a_graph_that_grows_while_the_stage_runs", "test_a_heavy_label_beside_the_stage",
        "test_an_array_that_the_stage_and_the_step_read", "test_an_intermediate_tensor_of_the_region",
        "test_conditionals_and_loops_of_either_version", "test_sparse_and_ragged_tensors_beside_the_stage",
        "test_tensors_are_fetched_by_their_names", "test_the_label_beside_the_stage",
        "test_the_other_result_of_a_map_fn", "test_the_size_of_a_raw_feature",
        "test_what_a_branch_or_a_loop_has_read_is_fetched_with_its_step",
        "test_what_reads_beside_a_stage_is_warned_of_once"),
    "A run feeds what a stage computes ahead, which is an error, or the error has another text.": (
        "test_a_run_that_feeds_a_raw_tensor_uses_no_record_of_it", "test_a_source_of_several_is_needed_with_the_others",
        "test_a_step_cannot_feed_what_the_stage_feeds", "test_an_evaluation_feeds_the_handle_of_another_iterator",
        "test_an_evaluation_feeds_what_it_has_read", "test_the_output_of_the_first_stage_of_a_chain_is_fed",
        "test_what_a_step_feeds_does_not_reach_the_stage",
        "test_what_a_step_feeds_reaches_the_value_of_a_feed_or_is_an_error",
        "test_what_is_ahead_of_a_fed_stage_keeps_the_values_of_the_record"),
    "It uses a session of a server.": ("test_a_session_of_a_server", "test_each_record_arrives_in_one_session"),
    "It uses what the plugin does not have: Estimators, explain() of sessions, tf.staged in another process.": (
        "test_an_estimator_stages_only_the_features", "test_interpreter_exit", "test_the_api_root_of_tensorflow_2",
        "test_the_report_names_the_variable"),
}


@pytest.mark.timeout(400)
def test_the_forks_tests_of_sessions():
  environment = {**os.environ, "PYTHONPATH": str(_HERE / "as_fork_v1")}
  done = subprocess.run(
      [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=line", "-rfE", *_FILES],
      cwd=_ROOT, stdout=subprocess.PIPE, text=True, env=environment, timeout=380, check=False)
  failed = set(re.findall(r"^(?:FAILED|ERROR) \S*::(\w+)", done.stdout, re.MULTILINE))
  passed = re.search(r"(\d+) passed", done.stdout)
  assert passed, done.stdout[-4000:]
  expected = {name for names in _DIFFERENT.values() for name in names}
  assert failed == expected, f"also failed: {failed - expected}; passed: {expected - failed}\n{done.stdout[-8000:]}"
