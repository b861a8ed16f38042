# SPDX-License-Identifier: Apache-2.0
"""Reads the files of messages of core/protobuf/, which need no more of the language than this knows."""

import dataclasses
import re

_COMMENT = re.compile(r"//[^\n]*")
_STATEMENT = re.compile(r"\b(message|enum)\s+(\w+)\s*\{|(\})|([^;{}]+);")
_IMPORT = re.compile(r'import "([^"]+)"')
_FIELD = re.compile(r"(?:(repeated|optional)\s+)?(map<string, string>|[\w.]+)\s+(\w+)\s*=\s*(\d+)")
_VALUE = re.compile(r"(\w+)\s*=\s*(\d+)")

MAP = "map<string, string>"


@dataclasses.dataclass
class Field:
  """A field: its label is "repeated", "optional" or "", and its type a scalar's, a message's or an enum's name."""
  name: str
  number: int
  type: str
  label: str


@dataclasses.dataclass
class Enum:
  name: str
  values: list[str]


@dataclasses.dataclass
class Message:
  name: str
  fields: list[Field] = dataclasses.field(default_factory=list)
  messages: list["Message"] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class File:
  """A file: what it imports, by path, and its messages and enums."""
  imports: list[str]
  messages: list[Message]
  enums: list[Enum]


def parse(text: str) -> File:
  """Reads a file.

  Raises:
    ValueError: If it has what this does not know.
  """
  file = File([], [], [])
  opened: list[File | Message | Enum] = [file]
  for kind, name, end, statement in _STATEMENT.findall(_COMMENT.sub("", text)):
    inner = opened[-1]
    if kind == "message":
      opened.append(Message(name))
      inner.messages.append(opened[-1])
    elif kind == "enum":
      opened.append(Enum(name, []))
      file.enums.append(opened[-1])
    elif end:
      opened.pop()
    else:
      _add(" ".join(statement.split()), inner)
  return file


def _add(statement: str, to: File | Message | Enum) -> None:
  if isinstance(to, File):
    if match := _IMPORT.fullmatch(statement):
      to.imports.append(match[1])
  elif isinstance(to, Enum):
    name, number = _VALUE.fullmatch(statement).groups()
    if int(number) != len(to.values):
      raise ValueError(f"The values of {to.name} do not count from 0.")
    to.values.append(name)
  else:
    match = _FIELD.fullmatch(statement)
    if match is None:
      raise ValueError(f"Message {to.name} has '{statement}', which is unknown here.")
    label, type_name, name, number = match.groups()
    to.fields.append(Field(name, int(number), type_name, label or ""))
