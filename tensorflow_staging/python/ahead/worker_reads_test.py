# SPDX-License-Identifier: Apache-2.0
"""How a step asks the other workers for data, and what waits for that. cases/workers_cases.py runs such steps."""

import pytest
from google.protobuf import text_format
from tensorflow.core.framework import function_pb2

from tensorflow_staging.python.ahead import optional_reads
from tensorflow_staging.python.ahead import worker_reads

_STEP = """
  signature {
    name: "step" input_arg { name: "it" } input_arg { name: "key" } control_output: "sum" control_output: "cond" }
  node_def { name: "size" op: "Const" }
  node_def { name: "read" op: "IteratorGetNextAsOptional" input: "it" }
  node_def { name: "has" op: "OptionalHasValue" input: "read:optional:0" }
  node_def { name: "number" op: "Cast" input: "has:has_value:0" }
  node_def {
    name: "sum" op: "CollectiveReduceV2" input: "number:y:0" input: "size:output:0" input: "key" input: "^earlier"
    attr { key: "T" value { type: DT_INT64 } } }
  node_def { name: "any" op: "Greater" input: "sum:data:0" input: "size:output:0" }
  node_def {
    name: "cond" op: "If" input: "any:z:0" input: "read:optional:0" input: "it"
    attr { key: "Tin" value { list { type: DT_VARIANT type: DT_RESOURCE } } }
    attr { key: "Tout" value { list { type: DT_STRING } } }
    attr { key: "output_shapes" value { list { shape {} } } }
    attr { key: "then_branch" value { func { name: "values" } } }
    attr { key: "else_branch" value { func { name: "end" } } } }
  node_def { name: "hash" op: "StringToHashBucketFast" input: "cond:output:0" }
  node_def { name: "earlier" op: "CollectiveReduceV2" input: "size:output:0" }
  ret { key: "result" value: "hash:output:0" }
  control_ret { key: "sum" value: "sum" }
  control_ret { key: "cond" value: "cond" }
"""
_VALUES = """
  signature { name: "values" }
  node_def { name: "value" op: "OptionalGetValue" }
"""
_END = """
  signature { name: "end" }
  node_def { name: "read" op: "IteratorGetNext" input: "it" }
"""


def _library(step: str = _STEP) -> function_pb2.FunctionDefLibrary:
  return function_pb2.FunctionDefLibrary(
      function=[text_format.Parse(text, function_pb2.FunctionDef()) for text in (step, _VALUES, _END)])


def test_the_question_stays_in_the_step_until_its_part_comes_back():
  library = _library()
  replaced = optional_reads.replace(library, "step")
  step = library.function[0]
  nodes = {node.name: node for node in step.node_def}
  assert {name: node.op for name, node in nodes.items()} == {
      "size": "Const", "read": "IteratorGetNext", "sum": "CollectiveReduceV2", "any": "Greater",
      "cond": "StepNeedsData", "hash": "StringToHashBucketFast", "earlier": "CollectiveReduceV2"}
  assert nodes["sum"].input[0] == "read:components:1"
  assert nodes["cond"].input == ["any:z:0"]
  assert nodes["hash"].input == ["read:components:0"]
  assert set(step.control_ret.values()) == {"sum", "cond"}
  # The part ahead puts both into the record.
  ahead = function_pb2.FunctionDef(
      node_def=[nodes["read"]], ret={"element": "read:components:0", "number": "read:components:1"})
  optional_reads.restore(ahead, "step", replaced)
  nodes = {node.name: node for node in ahead.node_def}
  assert {name: node.op for name, node in nodes.items()} == {
      "size": "Const", "read": "IteratorGetNextAsOptional", "has": "OptionalHasValue", "number": "Cast",
      "cond": "PartitionedCall"}
  assert dict(ahead.ret) == {"element": "cond:output:0", "number": "number:y:0"}
  assert nodes["cond"].input == ["read:optional:0", "it"]
  assert nodes["cond"].attr["f"].func.name == "values"


@pytest.mark.parametrize("step", [
    # Something beside the collective op uses what this worker knows, or what they tell is used otherwise.
    _STEP.replace('input: "sum:data:0" input: "size:output:0"', 'input: "sum:data:0" input: "number:y:0"'),
    _STEP.replace('input: "read:optional:0" input: "it"', 'input: "read:optional:0" input: "any:z:0" input: "it"'),
    # They are told nothing of this worker.
    _STEP.replace('input: "number:y:0" input: "size:output:0"', 'input: "size:output:0" input: "size:output:0"'),
])
def test_other_questions_stay(step):
  library = _library(step)
  before = str(library)
  assert optional_reads.replace(library, "step").reads == {}
  assert str(library) == before


def _rest(*nodes: str) -> function_pb2.FunctionDef:
  return text_format.Parse(" ".join(f"node_def {{ {node} }}" for node in nodes), function_pb2.FunctionDef())


def test_what_uses_the_record_waits_for_all_answers():
  rest = _rest(
      'name: "take" op: "StepBufferTake"',
      'name: "sum" op: "CollectiveReduceV2" input: "take:values:0"',
      'name: "needs" op: "StepNeedsData" input: "sum:data:0"',
      'name: "sum_2" op: "CollectiveReduceV2" input: "take:values:1"',
      'name: "needs_2" op: "StepNeedsData" input: "sum_2:data:0"',
      'name: "train" op: "Identity" input: "take:values:2"',
      'name: "after" op: "NoOp" input: "^take"',
      'name: "beside" op: "NoOp"')
  assert worker_reads.let_elements_wait(rest)
  waits = {node.name: [name for name in node.input if name.startswith("^needs")] for node in rest.node_def}
  assert waits == {
      "take": [], "sum": [], "needs": [], "sum_2": ["^needs"], "needs_2": [], "train": ["^needs", "^needs_2"],
      "after": ["^needs", "^needs_2"], "beside": []}


def test_a_record_that_another_function_takes_cannot_wait():
  assert not worker_reads.let_elements_wait(_rest('name: "needs" op: "StepNeedsData" input: "any"'))
  assert worker_reads.let_elements_wait(_rest('name: "take" op: "StepBufferTake"'))
