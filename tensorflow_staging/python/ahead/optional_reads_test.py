# SPDX-License-Identifier: Apache-2.0
"""For which reads one stands, and that what was there comes back.

cases/replicas_cases.py and cases/optional_cases.py run such steps.
"""

import pytest
from google.protobuf import text_format
from tensorflow.core.framework import function_pb2

from tensorflow_staging.python.ahead import optional_reads

_READS = """
  node_def { name: "a" op: "IteratorGetNextAsOptional" input: "it_0" }
  node_def { name: "b" op: "IteratorGetNextAsOptional" input: "it_1" }
  node_def { name: "has_a" op: "OptionalHasValue" input: "a:optional:0" }
  node_def { name: "has_b" op: "OptionalHasValue" input: "b:optional:0" }
  node_def { name: "any" op: "LogicalOr" input: "has_a:has_value:0" input: "has_b:has_value:0" }
"""
_STEP = """
  signature {
    name: "step" input_arg { name: "it_0" } input_arg { name: "it_1" } control_output: "a" control_output: "cond" }
""" + _READS + """
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
  replaced = optional_reads.replace(library, "step")
  step = library.function[0]
  nodes = {node.name: node for node in step.node_def}
  assert {name: node.op for name, node in nodes.items()} == {
      "a": "IteratorGetNext", "b": "IteratorGetNext", "hash": "StringToHashBucketFast"}
  assert nodes["a"].input == ["it_0", "^b"]
  assert len(nodes["a"].attr["output_types"].list.type) == 2
  assert nodes["hash"].input == ["a:components:1", "^a"]
  assert dict(step.control_ret) == {"a": "a"}
  assert step.signature.control_output == ["a"]
  assert optional_reads.restore(step, "step", replaced) == []
  expected = {node.name: node for node in _library().function[0].node_def if node.name != "unused"}
  nodes = {node.name: node for node in step.node_def}
  assert set(nodes["hash"].input) == {"cond:output:1", "^a", "^cond"}
  del nodes["hash"], expected["hash"]
  assert nodes == expected


def test_the_part_gives_its_iterators_other_names():
  library = _library()
  replaced = optional_reads.replace(library, "step")
  part = library.function[0]
  for node in part.node_def:
    node.input[:] = [{"it_0": "first", "it_1": "second"}.get(name, name) for name in node.input]
  optional_reads.restore(part, "step", replaced)
  nodes = {node.name: node for node in part.node_def}
  assert nodes["b"].input[0] == "second"
  assert nodes["cond"].input[3:5] == ["first", "second"]


def test_what_only_has_the_name_of_a_read_stays():
  replaced = optional_reads.replace(_library(), "step")
  rest = text_format.Parse('node_def { name: "a" op: "StepBufferTake" input: "it_0" }', function_pb2.FunctionDef())
  before = str(rest)
  optional_reads.restore(rest, "step", replaced)
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
  assert optional_reads.replace(library, "step").reads == {}
  assert str(library) == before


_ASKING = """
  signature {
    name: "step" input_arg { name: "it_0" } input_arg { name: "it_1" } control_output: "a" control_output: "b" }
""" + _READS + """
  node_def {
    name: "made" op: "StatelessIf" input: "any:z:0" input: "a:optional:0" input: "b:optional:0"
    attr { key: "Tout" value { list { type: DT_VARIANT } } }
    attr { key: "then_branch" value { func { name: "some" } } }
    attr { key: "else_branch" value { func { name: "no" } } } }
  node_def { name: "copy" op: "Identity" input: "made:output:0" }
  node_def { name: "has" op: "OptionalHasValue" input: "copy:output:0" }
  node_def {
    name: "train" op: "If" input: "has:has_value:0" input: "copy:output:0" input: "^b"
    attr { key: "then_branch" value { func { name: "train" } } }
    attr { key: "else_branch" value { func { name: "rest" } } } }
  ret { key: "result" value: "train:output:0" }
  control_ret { key: "a" value: "a" }
  control_ret { key: "b" value: "b" }
"""
_ENDLESS = """
  signature { name: "step" input_arg { name: "it_0" } input_arg { name: "it_1" } }
  node_def { name: "a" op: "IteratorGetNext" input: "it_0" }
  node_def { name: "b" op: "IteratorGetNext" input: "it_1" }
  node_def { name: "made" op: "OptionalFromValue" input: "a:components:0" input: "b:components:0" }
  node_def {
    name: "train" op: "If" input: "has" input: "made:optional:0"
    attr { key: "then_branch" value { func { name: "train" } } }
    attr { key: "else_branch" value { func { name: "rest" } } } }
  ret { key: "result" value: "train:output:0" }
"""
_SOME = """
  signature { name: "some" }
  node_def { name: "made" op: "OptionalFromValue" }
  node_def { name: "result" op: "Identity" input: "made:optional:0" }
  ret { key: "result" value: "result:output:0" }
"""
_NO = """
  signature { name: "no" }
  node_def { name: "empty" op: "OptionalNone" }
  ret { key: "result" value: "empty:optional:0" }
"""
_TRAIN = 'signature { name: "train" input_arg { name: "optional" } }'
_REST = 'signature { name: "rest" input_arg { name: "optional" } }'
# As the division makes it of `train`.
_AHEAD = """
  signature { name: "ahead" input_arg { name: "handle" } input_arg { name: "buffer" } }
  node_def { name: "before" op: "Assert" }
  node_def { name: "value" op: "IteratorGetNext" input: "handle" input: "^before" }
  node_def { name: "put" op: "StepBufferPut" input: "buffer" input: "value:components:1" }
"""


def _parsed(text: str) -> function_pb2.FunctionDef:
  return text_format.Parse(text, function_pb2.FunctionDef())


def _asking(step: str = _ASKING) -> function_pb2.FunctionDefLibrary:
  return function_pb2.FunctionDefLibrary(function=map(_parsed, (step, _SOME, _NO, _TRAIN, _REST)))


def _inputs(function: function_pb2.FunctionDef) -> dict[str, tuple[str, list[str]]]:
  return {node.name: (node.op, list(node.input)) for node in function.node_def}


def test_an_optional_stands_for_those_of_all_replicas():
  library = _asking()
  replaced = optional_reads.replace(library, "step")
  assert not replaced.why_not
  assert replaced.hidden == {1}
  step = library.function[0]
  assert _inputs(step) == {
      "a": ("IteratorGetNextAsOptional", ["it_0"]), "has": ("OptionalHasValue", ["a:optional:0"]),
      "train": ("If", ["has:has_value:0", "a:optional:0", "^a"])}
  assert dict(step.control_ret) == {"a": "a"}


def test_the_branch_reads_all_replicas_ahead():
  replaced = optional_reads.replace(_asking(), "step")
  ahead = _parsed(_AHEAD)
  assert optional_reads.restore(ahead, "train", replaced) == [1]
  assert [arg.name for arg in ahead.signature.input_arg] == ["handle", "staging_iterator_0", "buffer"]
  nodes = _inputs(ahead)
  assert nodes["value/a"] == ("IteratorGetNextAsOptional", ["handle", "^before"])
  assert nodes["value/b"] == ("IteratorGetNextAsOptional", ["staging_iterator_0", "^before"])
  assert nodes["value/made"] == ("StatelessIf", ["value/any:z:0", "value/a:optional:0", "value/b:optional:0"])
  assert nodes["value/need"] == ("StepNeedsData", ["value/any:z:0"])
  assert nodes["value"] == ("OptionalGetValue", ["value/made:output:0", "^before", "^value/need"])
  assert nodes["put"] == ("StepBufferPut", ["buffer", "value:components:1"])


def test_data_without_an_end_is_read_ahead_and_may_end():
  replaced = optional_reads.replace(_asking(_ENDLESS), "step")
  assert replaced.hidden == {1}
  ahead = _parsed(_AHEAD)
  optional_reads.restore(ahead, "train", replaced)
  nodes = _inputs(ahead)
  assert nodes["value/b"] == ("IteratorGetNext", ["staging_iterator_0", "^before"])
  assert nodes["value"] == ("OptionalGetValue", ["value/made:optional:0", "^before"])
  rest = _parsed("""
    signature { name: "rest" }
    node_def { name: "a" op: "StepBufferTakeIfAny" input: "it_0" }
    node_def { name: "train" op: "If" input: "a:has_record:0" input: "a:record:0" }
  """)
  assert optional_reads.restore(rest, "step", replaced) == []
  nodes = _inputs(rest)
  assert nodes["made"] == ("StepNeedsData", ["a:has_record:0"])
  assert nodes["train"] == ("If", ["a:has_record:0", "a:record:0", "^made"])
  assert dict(rest.control_ret) == {"made": "made"}


@pytest.mark.parametrize("step", [
    # Something else uses an Optional of a replica, or two conditionals use that of all, or none does.
    _ASKING.replace("train:output:0", "has_b:has_value:0"),
    _ASKING.replace('node_def { name: "has"', """
      node_def {
        name: "again" op: "If" input: "any:z:0" input: "made:output:0"
        attr { key: "then_branch" value { func { name: "some" } } }
        attr { key: "else_branch" value { func { name: "rest" } } } }
      node_def { name: "has" input: "^again" """),
    _ASKING.replace("train:output:0", "has:has_value:0"),
    # The step gets the value beside the conditional, or returns the Optional.
    _ASKING.replace("train:output:0", "beside:components:0") + """
      node_def { name: "beside" op: "OptionalGetValue" input: "copy:output:0" input: "^train" }
    """,
    _ASKING + 'ret { key: "optional" value: "copy:output:0" }',
    # One replica is no input of the step.
    _ASKING.replace('input_arg { name: "it_1" }', ""),
    # Elements of two reads of one iterator, and one that the step uses itself.
    _ENDLESS.replace('input: "it_1" }', 'input: "it_0" }'),
    _ENDLESS.replace("train:output:0", "b:components:0"),
])
def test_other_optionals_stay(step):
  library = _asking(step)
  before = str(library)
  replaced = optional_reads.replace(library, "step")
  assert replaced.branches == replaced.reads == {}
  assert str(library) == before


def test_a_replica_that_the_step_also_reads_otherwise():
  beside = """
    node_def { name: "beside" op: "IteratorGetNext" input: "it_1" }
    control_ret { key: "beside" value: "beside" }
  """
  assert "by next() beside that" in optional_reads.replace(_asking(_ASKING + beside), "step").why_not


def test_workers_that_ask_for_an_optional():
  alone = 'input: "has_a:has_value:0" input: "has_b:has_value:0"'
  asking = _ASKING.replace(alone, 'input: "sum:data:0" input: "sum:data:0"') + """
    node_def {
      name: "sum" op: "CollectiveReduceV2" input: "has_b:has_value:0" attr { key: "T" value { type: DT_INT64 } } }
  """
  assert "asks the other workers" in optional_reads.replace(_asking(asking), "step").why_not
