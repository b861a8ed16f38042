# SPDX-License-Identifier: Apache-2.0
"""Conditionals and loops of version 1 run ahead as a whole, and give the values of a run without SmartStage."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import control_flow
from tensorflow_staging.python.testing import smart_stage_runs
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

_RECORDS = 8


@pytest.fixture(autouse=True)
def _version_1() -> Iterator[None]:
  with control_flow.version(1):
    yield


def _next(data: np.ndarray) -> tf.Tensor:
  return tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(data)).get_next()


def _image() -> tf.Tensor:
  return _next(np.arange(_RECORDS * 4 * 4 * 3, dtype=np.float32).reshape(_RECORDS, 4, 4, 3))


def _number() -> tf.Tensor:
  return _next(np.arange(_RECORDS, dtype=np.int64))


def _flipped() -> tf.Tensor:
  return tf.image.random_flip_left_right(_image(), seed=3)


def _flipped_twice() -> tf.Tensor:
  """A pipeline of augmentations: each of them follows the conditional of the one before."""
  image = tf.image.random_flip_up_down(_flipped(), seed=4)
  return tf.image.random_crop(image, [3, 3, 3], seed=5)


def _checked() -> tf.Tensor:
  number = _number()
  checks = [
      tf.debugging.assert_less(number, np.int64(_RECORDS)),
      tf.debugging.assert_non_negative(number),
      tf.debugging.Assert(number >= 0, [number]),
  ]
  with tf.control_dependencies(checks):
    return tf.identity(number)


def _conditional() -> tf.Tensor:
  number = _number()
  return tf.cond(number % 2 < 1, lambda: number * 10, lambda: number - 1)


def _nested_conditionals() -> tf.Tensor:
  number = _number()
  inner = lambda: tf.cond(number > 4, lambda: number * 100, lambda: tf.constant(7, tf.int64))
  return tf.cond(number % 2 < 1, inner, lambda: -number)


def _conditional_of_ops() -> tf.Tensor:
  number = _number()
  check = lambda: tf.group(tf.debugging.assert_less(number, np.int64(100)))
  with tf.control_dependencies([tf.cond(number > 3, check, tf.no_op)]):
    return tf.identity(number)


def _case() -> tf.Tensor:
  number = _number()
  return tf.case(
      [(number < 2, lambda: number + 10), (number < 5, lambda: number + 20)], default=lambda: number, exclusive=False)


def _loop() -> tf.Tensor:
  number = _number()
  return tf.while_loop(lambda i, _: i < 3, lambda i, total: (i + 1, total + number), [0, np.int64(0)])[1]


def _loop_with_a_conditional() -> tf.Tensor:
  number = _number()
  add = lambda total: tf.cond(total > 3, lambda: total - 2, lambda: total + number)
  return tf.while_loop(lambda i, _: i < 5, lambda i, total: (i + 1, add(total)), [0, number])[1]


def _loop_in_a_conditional() -> tf.Tensor:
  number = _number()
  double = lambda: tf.while_loop(lambda value: value < 50, lambda value: value * 2, [number])
  return tf.cond(number > 2, double, lambda: number)


def _nested_loops() -> tf.Tensor:
  number = _number()
  inner = lambda i, total: tf.while_loop(lambda j, _: j < i, lambda j, value: (j + 1, value + number), [0, total])[1]
  return tf.while_loop(lambda i, _: i < 4, lambda i, total: (i + 1, inner(i, total)), [0, number])[1]


def _mapped() -> tf.Tensor:
  rows = _next(np.arange(_RECORDS * 3, dtype=np.int64).reshape(_RECORDS, 3))
  return tf.map_fn(lambda value: value * value, rows)


def _scanned() -> tf.Tensor:
  rows = tf.range(_number() + 1)
  return tf.scan(lambda total, value: total + value, rows)[-1]


_PROGRAMS = [
    _flipped, _flipped_twice, _checked, _conditional, _nested_conditionals, _conditional_of_ops, _case, _loop,
    _loop_with_a_conditional, _loop_in_a_conditional, _nested_loops, _mapped, _scanned,
]


def _with_variable(program: Callable[[], tf.Tensor]) -> tf.Tensor:
  """Returns what a step computes of the program's value."""
  value = tf.identity(program(), name="later")
  return value + tf.cast(tf.get_variable("variable", initializer=3.0), value.dtype)


@pytest.mark.parametrize("program", _PROGRAMS)
def test_control_flow_runs_ahead_with_what_follows_it(program):
  _with_variable(program)
  types = {op.type for op in tf.get_default_graph().get_operations()}
  assert types & {"Merge", "Exit"}
  stage, = tf.staging.explain(config=smart_stage_sessions.smart_stage_config()).stages
  assert [tensor.name for tensor in stage.boundary] == ["later:0"]
  assert "later" in stage.nodes


@pytest.mark.parametrize("program", _PROGRAMS)
def test_values_are_those_without_smart_stage(program):
  build = lambda: _with_variable(program)
  staged, types = smart_stage_runs.records(build, True)
  plain, _ = smart_stage_runs.records(build, False)
  assert "TensorBufferTake" in types
  assert not {"Switch", "Merge", "Enter", "Exit"} & set(types)
  assert len(plain) == _RECORDS
  np.testing.assert_array_equal(staged, plain)


def test_a_check_runs_ahead_with_version_2_of_control_flow():
  tf.compat.v1.enable_control_flow_v2()
  _with_variable(_checked)
  types = {op.type for op in tf.get_default_graph().get_operations()}
  assert "If" in types
  assert "Merge" not in types
  stage, = tf.staging.explain(config=smart_stage_sessions.smart_stage_config()).stages
  assert "later" in stage.nodes


def test_a_failed_check_ahead_reaches_its_step():
  number = _number()
  with tf.control_dependencies([tf.debugging.assert_less(number, np.int64(2), message="too large")]):
    checked = tf.identity(number)
  result = tf.cast(checked, tf.float32) + tf.get_variable("variable", initializer=0.5)
  with smart_stage_sessions.smart_stage_session() as sess:
    assert [sess.run(result) for _ in range(2)] == [0.5, 1.5]
    with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
      sess.run(result)


def _why(name: str) -> str:
  """Returns why the node is in the step."""
  report = tf.staging.explain(config=smart_stage_sessions.smart_stage_config())
  found = [node.why for stage in report.stages for node in stage.outside if node.name == name]
  assert found, report
  return found[0]


def test_a_conditional_that_reads_a_variable_stays_as_a_whole():
  number = _number()
  variable = tf.get_variable("variable", initializer=np.int64(5), use_resource=True)
  result = tf.cond(number > 2, lambda: number * 2, lambda: number + variable, name="cond")
  stage, = tf.staging.explain(config=smart_stage_sessions.smart_stage_config()).stages
  assert not {"cond/mul/Switch", "cond/mul", "cond/Merge"} & set(stage.nodes)
  assert "'variable'" in _why("cond/mul/Switch")
  with smart_stage_sessions.smart_stage_session() as sess:
    assert [sess.run(result) for _ in range(5)] == [5, 6, 7, 6, 8]


def test_a_loop_that_updates_a_variable_stays_as_a_whole():
  number = _number()
  variable = tf.get_variable("variable", initializer=np.int64(0), use_resource=True)
  result = tf.while_loop(lambda i: i < 2, lambda i: i + 1 + 0 * variable.assign_add(number), [np.int64(0)])
  total = tf.cast(number, tf.int64) + result
  with smart_stage_sessions.smart_stage_session() as sess:
    assert [sess.run(total) for _ in range(3)] == [2, 3, 4]
    assert sess.run(variable) == 2 * (0 + 1 + 2)


def test_a_conditional_of_which_the_step_uses_the_inside_stays():
  number = _number()
  inside = []

  def branch() -> tf.Tensor:
    inside.append(number * 2)
    return inside[0] + 1

  result = tf.cond(number > -1, branch, lambda: number, name="cond")
  variable = tf.get_variable("variable", initializer=np.int64(5))
  # Nothing prevents a program from using a tensor of a branch. It is dead if the other branch is chosen.
  leaked = tf.raw_ops.AddV2(x=inside[0], y=variable)
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run([leaked, result + variable]) == [5, 6]
    assert sess.run([leaked, result + variable]) == [7, 8]
  assert "'variable'" in _why("cond/mul/Switch")


def test_a_source_that_a_branch_reads_stays_with_its_conditional():
  number = _number()
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100, 110))
  result = tf.cond(number % 2 < 1, iterator.get_next, lambda: number, name="cond")
  plus = result + tf.get_variable("variable", initializer=np.int64(0))
  with smart_stage_sessions.smart_stage_session() as sess:
    assert [sess.run(plus) for _ in range(5)] == [100, 1, 101, 3, 102]


def test_a_loop_with_a_gradient_stays_and_the_conditional_before_it_runs_ahead():
  number = tf.cast(_number(), tf.float32)
  start = tf.cond(number > 2, lambda: number * 2, lambda: number)
  weight = tf.get_variable("weight", initializer=2.0)
  product = tf.while_loop(lambda i, _: i < 2, lambda i, value: (i + 1, value * weight), [0, start])[1]
  gradient, = tf.gradients(product, weight)
  with smart_stage_sessions.smart_stage_session() as sess:
    types = smart_stage_sessions.staged_ops(sess, gradient)
    assert {"TensorBufferTake", "Enter", "StackPopV2"} <= types
    # The gradient of start * weight ** 2 is 4 * start; the first record went to the line above.
    assert [sess.run(gradient) for _ in range(3)] == [4.0, 8.0, 24.0]


def test_a_run_that_feeds_the_record_computes_the_conditional_in_the_step():
  number = _number()
  result = tf.cond(number > 2, lambda: number * 2, lambda: number)
  result = tf.while_loop(lambda value: value < 50, lambda value: value * 2 + 1, [result])
  plus = result + tf.get_variable("variable", initializer=np.int64(0))
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run(plus) == 63
    assert sess.run(plus, {number: 30}) == 60
    assert sess.run(plus) == 63


def _chosen_constant_and_loop() -> tf.Operation:
  """Adds a conditional whose branches are constants and a loop with a constant in its body, and returns an update."""
  number = tf.identity(_number(), name="number")
  chosen = tf.greater(number, np.int64(2), name="chosen")
  ten = lambda: tf.constant(10, tf.int64, name="ten")
  result = tf.cond(chosen, ten, lambda: tf.constant(20, tf.int64, name="twenty"), name="cond")
  behind = tf.multiply(result, 3, name="behind")
  limit = tf.constant(50, tf.int64, name="limit")
  body = lambda value: value * 2 + tf.constant(1, tf.int64, name="one")
  start = tf.add(number, result, name="start")
  looped = tf.while_loop(lambda value: value < limit, body, [start], name="loop")
  tf.identity(looped, name="looped")
  tf.add(looped, behind, name="after")
  variable = tf.get_variable("variable", initializer=np.int64(0))
  return tf.assign_add(variable, looped, name="train")


def _outcomes(smart_stage: bool, steps: list[tuple[list[str], dict]]) -> list[list[int] | type[Exception]]:
  with tf.Graph().as_default() as built:
    _chosen_constant_and_loop()
  # Python refuses to fetch from a branch or a loop that it has built itself, but not from an imported one.
  with tf.Graph().as_default():
    tf.import_graph_def(built.as_graph_def(), name="")
    with tf.Session(config=smart_stage_runs.config(smart_stage)) as sess:
      sess.run("variable/Assign")
      found = []
      with tf.make_prefetch_hook().running(sess):
        for fetches, feeds in steps:
          try:
            found.append([int(value) for value in sess.run(fetches, feeds)])
          except tf.errors.OpError as error:
            found.append(type(error))
      return found


_ANY_VERSION = [
    (["behind:0"], {}),
    (["behind:0", "after:0", "looped:0", "start:0", "chosen:0", "number:0"], {}),
    ([], {"chosen:0": True}),
    ([], {"chosen:0": False}),
    (["behind:0"], {"chosen:0": True}),
    (["after:0"], {"start:0": 3}),
    ([], {"limit:0": 100}),
    (["after:0", "behind:0"], {"limit:0": 12}),
    (["behind:0"], {"number:0": 5}),
    (["number:0"], {"behind:0": 1}),
]
_VERSION_1 = [
    (["cond/Merge:0", "loop/Exit:0"], {}),
    (["cond/Merge:0"], {"chosen:0": False}),
    (["behind:0"], {"cond/Merge:0": 4}),
    ([], {"cond/pred_id:0": False}),
    (["number:0"], {"loop/Exit:0": 7}),
    # Each of these tensors is dead for some records, which is an error.
    (["cond/ten:0"], {}),
    (["cond/twenty:0"], {}),
    (["cond/switch_t:0"], {}),
    # A tensor of an iteration is always an error.
    (["loop/add:0"], {}),
]


@pytest.mark.parametrize(("version_2", "access"), [
    *((False, access) for access in _ANY_VERSION + _VERSION_1), *((True, access) for access in _ANY_VERSION)])
def test_a_fetch_or_feed_in_control_flow_gives_the_value_without_smart_stage(version_2, access):
  if version_2:
    tf.compat.v1.enable_control_flow_v2()
  fetches, feeds = access
  # Each step also trains. Both choices occur among the records, and the last step shows that no record was skipped.
  steps = [(["train:0"], {}), *[(["train:0", *fetches], feeds)] * 4, (["train:0"], {})]
  for number in range(len(steps)):
    # A step that fails may or may not have taken its record, so it is the last one.
    expected = _outcomes(False, steps[:number + 1])
    if isinstance(expected[-1], type):
      steps = steps[:number + 1]
      break
  assert _outcomes(True, steps) == _outcomes(False, steps)


def test_what_is_carried_of_a_conditional_is_fetched_without_computing_it_again():
  _chosen_constant_and_loop()
  behind = tf.negative(tf.get_default_graph().get_tensor_by_name("looped:0"), name="negative")
  with smart_stage_sessions.smart_stage_session() as sess:
    types = smart_stage_sessions.staged_ops(sess, ["train:0", behind])
    assert not {"Switch", "Merge", "Enter", "Exit"} & types
    assert sess.run([behind, "train:0"])[0] == -((1 + 20) * 4 + 3)


def test_a_conditional_whose_predicate_is_trained_stays_with_a_reason():
  number = _number()
  variable = tf.get_variable("variable", initializer=np.int64(2))
  result = tf.cond(number < variable, lambda: number * 2, lambda: tf.constant(-1, tf.int64), name="cond")
  update = tf.assign_add(variable, result)
  assert "'variable'" in _why("Less")
  assert "'variable'" in _why("cond/mul/Switch")
  with smart_stage_sessions.smart_stage_session() as sess:
    assert [sess.run(update) for _ in range(4)] == [2, 4, 8, 14]


def test_a_source_in_a_branch_has_a_reason():
  number = _number()
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100, 110))
  handle = tf.cond(number % 2 < 1, iterator.get_next, lambda: number, name="cond")
  tf.assign_add(tf.get_variable("variable", initializer=np.int64(0)), handle)
  reasons = tf.staging.explain(config=smart_stage_sessions.smart_stage_config()).reasons
  why = {reason.example.name: reason.example.why for reason in reasons if reason.example is not None}
  assert why["cond/IteratorGetNext"] == "is read in a branch or a loop"


def test_several_threads_run_a_loop_at_the_same_time():
  total = _loop() + tf.get_variable("variable", initializer=np.int64(0))
  with smart_stage_sessions.smart_stage_session(num_threads=3) as sess:
    found = sorted([sess.run(total), *test_util.drain(sess, total)])
  assert found == [3 * number for number in range(_RECORDS)]
