# SPDX-License-Identifier: Apache-2.0
"""The messages of staging_fields.proto as classes of Python's protobuf, whichever version of it is installed."""

import pathlib
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import message_factory

# Each module registers messages that those of the file have as fields.
from tensorflow.core.protobuf import config_pb2  # noqa: F401
from tensorflow.core.protobuf import error_codes_pb2  # noqa: F401
from tensorflow.core.protobuf import rewriter_config_pb2  # noqa: F401

from tensorflow_staging import proto_file

_FILE = "staging_fields.proto"
_PACKAGE = "tensorflow.staging"
_Type = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _Type.TYPE_BOOL,
    "int32": _Type.TYPE_INT32,
    "int64": _Type.TYPE_INT64,
    "float": _Type.TYPE_FLOAT,
    "string": _Type.TYPE_STRING,
}
_OF_TENSORFLOW = {
    "RunOptions": (_Type.TYPE_MESSAGE, ".tensorflow.RunOptions"),
    "RewriterConfig.Toggle": (_Type.TYPE_ENUM, ".tensorflow.RewriterConfig.Toggle"),
    "tensorflow.error.Code": (_Type.TYPE_ENUM, ".tensorflow.error.Code"),
}


def _descriptor_of(file: proto_file.File) -> descriptor_pb2.FileDescriptorProto:
  descriptor = descriptor_pb2.FileDescriptorProto(
      name=f"tensorflow_staging/{_FILE}", package=_PACKAGE, syntax="proto3", dependency=file.imports)
  for enum in file.enums:
    added = descriptor.enum_type.add(name=enum.name)
    for number, value in enumerate(enum.values):
      added.value.add(name=value, number=number)
  enums = {enum.name for enum in file.enums}
  for message in file.messages:
    added = descriptor.message_type.add(name=message.name)
    for field in message.fields:
      _add_field(field, enums, added)
  return descriptor


def _add_field(field: proto_file.Field, enums: set[str], message: descriptor_pb2.DescriptorProto) -> None:
  is_list = field.label == "repeated" or field.type == proto_file.MAP
  added = message.field.add(
      name=field.name, number=field.number, label=_Type.LABEL_REPEATED if is_list else _Type.LABEL_OPTIONAL)
  if field.type in _SCALARS:
    added.type = _SCALARS[field.type]
  elif field.type == proto_file.MAP:
    entry = message.nested_type.add(name=f"{field.name.title().replace('_', '')}Entry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), start=1):
      entry.field.add(name=name, number=number, type=_Type.TYPE_STRING, label=_Type.LABEL_OPTIONAL)
    added.type, added.type_name = _Type.TYPE_MESSAGE, f".{_PACKAGE}.{message.name}.{entry.name}"
  elif field.type in _OF_TENSORFLOW:
    added.type, added.type_name = _OF_TENSORFLOW[field.type]
  else:
    added.type = _Type.TYPE_ENUM if field.type in enums else _Type.TYPE_MESSAGE
    added.type_name = f".{_PACKAGE}.{field.type}"
  if field.label == "optional":
    added.proto3_optional = True
    added.oneof_index = len(message.oneof_decl)
    message.oneof_decl.add(name=f"_{field.name}")


def _classes() -> dict[str, Any]:
  file = proto_file.parse((pathlib.Path(__file__).parent / _FILE).read_text())
  pool = descriptor_pool.Default()
  pool.AddSerializedFile(_descriptor_of(file).SerializeToString())
  return {
      message.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{message.name}"))
      for message in file.messages
  }


globals().update(_classes())
