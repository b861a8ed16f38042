# SPDX-License-Identifier: Apache-2.0
"""Tests that staging_fields.proto, for C++, declares exactly the fields that the patched protos give to Python."""

import pathlib
import re

import pytest
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf import rewriter_config_pb2

FIRST_NUMBER = 10001
VIEW = pathlib.Path(__file__).with_name("staging_fields.proto").read_text()

# Maps each message or enum of the view to the one that it is wire-compatible with.
MIRRORS = {
    "ConfigFields": config_pb2.ConfigProto,
    "RunFields": config_pb2.RunOptions,
    "OptimizerFields": config_pb2.OptimizerOptions,
    "RewriterFields": rewriter_config_pb2.RewriterConfig,
    "StageThreadPoolOptions": config_pb2.StageSubGraphThreadPoolOptionsProto,
    "SmartStageOptions": config_pb2.SmartStageOptions,
    "AsyncEmbeddingOptions": config_pb2.AsyncEmbeddingOptions,
    "PrefetchRunnerOptions": config_pb2.PrefetchRunnerOptions,
    "MultiStreamOptions": rewriter_config_pb2.MultiStreamOptions,
    "MultiStreamPartitionPolicy": rewriter_config_pb2.MultiStreamPartitionPolicy,
}

# Maps the name of each new message or enum to its name in the view. TensorFlow's own types keep their names there.
_NAMES_IN_VIEW = {
    mirrored.DESCRIPTOR.name: name for name, mirrored in MIRRORS.items() if not name.endswith("Fields")
}


def _declared(kind: str) -> dict[str, str]:
  """Returns the body of each message or enum (`kind`) of the view, by name."""
  return dict(re.findall(rf"^{kind} (\w+) {{\n(.*?)^}}$", VIEW, re.MULTILINE | re.DOTALL))


def _in_view(body: str) -> set[tuple[str, str, str, int]]:
  """Returns each field of a message's body as (label, type name without package, name, number)."""
  fields = re.findall(r"^ *(repeated |optional |)([\w.]+|map<.*>)\s+(\w+) = (\d+);", body, re.MULTILINE)
  return {(label.strip(), type_.rpartition(".")[2], name, int(number)) for label, type_, name, number in fields}


def _type_name(field) -> str:
  """Returns a field's type as a .proto file writes it, without its package."""
  if field.message_type and field.message_type.GetOptions().map_entry:
    return f"map<{', '.join(_type_name(entry) for entry in field.message_type.fields)}>"
  if field.message_type or field.enum_type:
    name = (field.message_type or field.enum_type).name
    return _NAMES_IN_VIEW.get(name, name)
  names = {
      field.TYPE_BOOL: "bool",
      field.TYPE_FLOAT: "float",
      field.TYPE_INT32: "int32",
      field.TYPE_INT64: "int64",
      field.TYPE_STRING: "string",
  }
  return names[field.type]


def _label(field) -> str:
  """Returns what a .proto file writes before a field's type."""
  if field.label == field.LABEL_REPEATED:
    return "" if _type_name(field).startswith("map<") else "repeated"
  # The compiler puts an optional field into a oneof of its own.
  return "optional" if field.containing_oneof and len(field.containing_oneof.fields) == 1 else ""


def _of_python(descriptor, first_number: int) -> set[tuple[str, str, str, int]]:
  """Returns the fields of a Python descriptor from `first_number` on, in the form of `_in_view`."""
  return {
      (_label(field), _type_name(field), field.name, field.number)
      for field in descriptor.fields if field.number >= first_number
  }


def test_every_declaration_of_the_view_mirrors_one_of_python():
  assert set(MIRRORS) == set(_declared("message")) | set(_declared("enum"))


@pytest.mark.parametrize("name", _declared("message"))
def test_message_has_the_same_fields(name):
  first_number = FIRST_NUMBER if name.endswith("Fields") else 1
  assert _in_view(_declared("message")[name]) == _of_python(MIRRORS[name].DESCRIPTOR, first_number)


@pytest.mark.parametrize("name", _declared("enum"))
def test_enum_has_the_same_values(name):
  values = re.findall(r"(\w+) = (\d+);", _declared("enum")[name])
  assert {value: int(number) for value, number in values} == dict(MIRRORS[name].items())
