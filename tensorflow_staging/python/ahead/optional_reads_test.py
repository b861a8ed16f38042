# SPDX-License-Identifier: Apache-2.0
"""Which conditionals count as reads, and that what was there comes back. cases/replicas_cases.py runs such steps."""

import pytest
from google.protobuf import text_format
from tensorflow.core.framework import function_pb2

from tensorflow_staging.python.ahead import optional_reads

_STEP = """
  signature {
    name: "step" input_arg { name: "it_0" } input_arg { name: "it_1" } control_output: "a" control_output: "cond" }
  node_def { name: "a" op: "IteratorGetNextAsOptional" input: "it_0" }
  node_def { name: "b" op: "IteratorGetNextAsOptional" input: "it_1" }
  node_def { name: "has_a" op: "OptionalHasValue" input: "a:optional:0" }
  node_def { name: "has_b" op: "OptionalHasValue" input: "b:optional:0" }
  node_def { name: "any" op: "LogicalOr" input: "has_a:has_value:0" input: "has_b:has_value:0" }
  node_def { name: "unused" op: "Identity" input: "any:z:0" }
  node_def {
    name: "cond" op: "If" input: "any:z:0" input: "a:optional:0" input: "b:optional:0" input: "it_0" input: "it_1"
    input: "^a" input: "^b"
    attr { key: "Tout" value { list { type: DT_STRING type: DT_STRING } } }
    attr { key: "output_shapes" value { list { shape {} shape {} } } }
    attr { key: "then_branch" value { func { name: "values" } } }
    attr { key: "else_branch" value { func { name: "end" } } } }
  node_def { name: "hash" op: "StringToHashBucketFast" input: "cond:output:1" input: "^cond" }
  ret { key: "result" value: "hash:output:0" }
  control_ret { key: "a" value: "a" }
  control_ret { key: "cond" value: "cond" }
"""
_VALUES = """
  signature { name: "values" }
  node_def {
    name: "value_a" op: "StatelessIf"
    attr { key: "then_branch" value { func { name: "value" } } }
    attr { key: "else_branch" value { func { name: "value" } } } }
"""
_VALUE = """
  signature { name: "value" }
  node_def { name: "value" op: "OptionalGetValue" }
"""
_END = """
  signature { name: "end" }
  node_def { name: "read" op: "IteratorGetNext" input: "it" }
  node_def { name: "result" op: "Identity" input: "read:components:0" }
"""


def _library(step: str = _STEP, end: str = _END, value: str = _VALUE) -> function_pb2.FunctionDefLibrary:
  return function_pb2.FunctionDefLibrary(
      function=[text_format.Parse(text, function_pb2.FunctionDef()) for text in (step, _VALUES, value, end)])


def test_a_read_stands_for_the_conditional_until_it_comes_back():
  library = _library()
  replaced = optional_reads.replace(library)
  step = library.function[0]
  nodes = {node.name: node for node in step.node_def}
  assert {name: node.op for name, node in nodes.items()} == {
      "a": "IteratorGetNext", "b": "IteratorGetNext", "hash": "StringToHashBucketFast"}
  assert nodes["a"].input == ["it_0", "^b"]
  assert len(nodes["a"].attr["output_types"].list.type) == 2
  assert nodes["hash"].input == ["a:components:1", "^a"]
  assert dict(step.control_ret) == {"a": "a"}
  assert step.signature.control_output == ["a"]
  optional_reads.restore(step, replaced["step"])
  expected = {node.name: node for node in _library().function[0].node_def if node.name != "unused"}
  nodes = {node.name: node for node in step.node_def}
  assert set(nodes["hash"].input) == {"cond:output:1", "^a", "^cond"}
  del nodes["hash"], expected["hash"]
  assert nodes == expected


def test_the_part_gives_its_iterators_other_names():
  library = _library()
  replaced = optional_reads.replace(library)
  part = library.function[0]
  for node in part.node_def:
    node.input[:] = [{"it_0": "first", "it_1": "second"}.get(name, name) for name in node.input]
  optional_reads.restore(part, replaced["step"])
  nodes = {node.name: node for node in part.node_def}
  assert nodes["b"].input[0] == "second"
  assert nodes["cond"].input[3:5] == ["first", "second"]


def test_what_only_has_the_name_of_a_read_stays():
  replaced = optional_reads.replace(_library())
  rest = text_format.Parse('node_def { name: "a" op: "StepBufferTake" input: "it_0" }', function_pb2.FunctionDef())
  before = str(rest)
  optional_reads.restore(rest, replaced["step"])
  assert str(rest) == before


@pytest.mark.parametrize("step, end, value", [
    # Something else uses an Optional, or whether there is a value.
    (_STEP.replace("hash:output:0", "has_b:has_value:0"), _END, _VALUE),
    (_STEP.replace('input: "cond:output:1"', 'input: "cond:output:1" input: "b:optional:0"'), _END, _VALUE),
    # One iterator is read twice, or what is read does not decide.
    (_STEP.replace('input: "it_1" }', 'input: "it_0" }'), _END, _VALUE),
    (_STEP.replace('input: "has_b:has_value:0"', 'input: "it_1"'), _END, _VALUE),
    # The branch at the end of the data does not read, or does more; so does the other one.
    (_STEP, _END.replace('op: "IteratorGetNext"', 'op: "Identity"'), _VALUE),
    (_STEP, _END.replace('op: "Identity"', 'op: "AssignAddVariableOp"'), _VALUE),
    (_STEP, _END, _VALUE.replace("OptionalGetValue", "RandomUniform")),
])
def test_other_conditionals_stay(step, end, value):
  library = _library(step, end, value)
  before = str(library)
  assert optional_reads.replace(library) == {}
  assert str(library) == before
