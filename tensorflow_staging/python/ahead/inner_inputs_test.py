# SPDX-License-Identifier: Apache-2.0
"""How far the inputs of a step reach into the functions that it calls."""

from google.protobuf import text_format
from tensorflow.core.framework import function_pb2

from tensorflow_staging.python.ahead import inner_inputs

_STEP = """
  signature { name: "step" input_arg { name: "x" } input_arg { name: "y" } input_arg { name: "z" } }
  node_def { name: "copy" op: "Identity" input: "y" }
  node_def {
    name: "loop" op: "While" input: "x" input: "copy:output:0" input: "z"
    attr { key: "cond" value { func { name: "cond" } } } attr { key: "body" value { func { name: "body" } } } }
  node_def { name: "unused" op: "Add" input: "x" input: "x" }
  control_ret { key: "loop" value: "loop" }
"""
_COND = """
  signature {
    name: "cond" input_arg { name: "a" } input_arg { name: "b" } input_arg { name: "c" }
    output_arg { name: "goes_on" } }
  ret { key: "goes_on" value: "a" }
"""
# Of its inputs, the second one stays the same.
_BODY = """
  signature {
    name: "body" input_arg { name: "a" } input_arg { name: "b" } input_arg { name: "c" }
    output_arg { name: "d" } output_arg { name: "e" } output_arg { name: "f" } }
  node_def {
    name: "if" op: "If" input: "c" input: "b"
    attr { key: "then_branch" value { func { name: "branch" } } }
    attr { key: "else_branch" value { func { name: "branch" } } } }
  node_def { name: "copy" op: "Identity" input: "b" }
  ret { key: "d" value: "c" } ret { key: "e" value: "copy:output:0" } ret { key: "f" value: "a" }
  control_ret { key: "if" value: "if" }
"""
_BRANCH = """
  signature { name: "branch" input_arg { name: "given" } }
  node_def { name: "read" op: "IteratorGetNext" input: "given" }
  ret { key: "result" value: "read:components:0" }
"""


def _inner(*texts: str) -> inner_inputs.InnerInputs:
  functions = [text_format.Parse(text, function_pb2.FunctionDef()) for text in texts]
  return inner_inputs.InnerInputs("step", {function.signature.name: function for function in functions})


def test_what_a_loop_keeps_is_followed_into_its_branches():
  inner = _inner(_STEP, _COND, _BODY, _BRANCH)
  assert inner.index_of("body", "b") == inner.index_of("branch", "given") == 1
  # The loop swaps the others.
  assert inner.index_of("body", "a") is None and inner.index_of("body", "c") is None
  assert inner.used == {0, 1, 2}


def test_what_is_only_passed_on_is_not_used():
  inner = _inner(_STEP, _COND, _BODY, _BRANCH.replace('input: "given"', 'input: "other"'))
  assert inner.used == {0, 2}


def test_what_differs_from_call_to_call_is_not_known():
  call = """
    node_def {
      name: "call" op: "PartitionedCall" input: "z" attr { key: "f" value { func { name: "branch" } } } }
    control_ret { key: "call" value: "call" }
  """
  inner = _inner(_STEP + call, _COND, _BODY, _BRANCH)
  assert inner.index_of("branch", "given") is None
  assert inner.used == {0, 1, 2}
