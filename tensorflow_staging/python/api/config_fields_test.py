# SPDX-License-Identifier: Apache-2.0
"""Python code can set, serialize and read the new fields of the session's configuration."""

from google.protobuf import text_format
from tensorflow.core.protobuf import config_pb2

from tensorflow_staging.python.testing import all_fields


def _unset(message, path=""):
  """Yields the path of each new field of `message`, nested ones included, that has no value."""
  for field in message.DESCRIPTOR.fields:
    value = getattr(message, field.name)
    is_new = field.number >= all_fields.FIRST_NUMBER or path
    if is_new and not _is_set(message, field):
      yield path + field.name
    if not field.message_type or field.message_type.GetOptions().map_entry:
      continue
    if field.label == field.LABEL_REPEATED:
      for index, entry in enumerate(value):
        yield from _unset(entry, f"{path}{field.name}[{index}]." if is_new else "")
    elif message.HasField(field.name):
      yield from _unset(value, path + field.name + "." if is_new and field.name != "run_options" else "")


def _is_set(message, field) -> bool:
  return any(field is listed for listed, _ in message.ListFields())


def test_the_configuration_of_the_tests_sets_every_new_field():
  assert list(_unset(all_fields.config())) == []


def test_every_field_survives_serialization():
  config = all_fields.config()
  assert config_pb2.ConfigProto.FromString(config.SerializeToString()) == config


def test_every_field_survives_its_text_form():
  config = all_fields.config()
  assert text_format.Parse(text_format.MessageToString(config), config_pb2.ConfigProto()) == config


def test_new_fields_survive_beside_stock_fields():
  """RunOptions serves as an example of any message."""
  options = config_pb2.RunOptions(
      timeout_in_ms=5, use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=2)
  again = config_pb2.RunOptions.FromString(options.SerializeToString())
  assert again == options
  assert again.timeout_in_ms == 5
