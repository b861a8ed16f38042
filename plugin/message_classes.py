# SPDX-License-Identifier: Apache-2.0
"""Makes C++ classes of the plugin's own for the messages of core/protobuf/.

They have those functions of the classes that protoc generates which core/ uses. Generated ones would tie a library to
one version of protobuf's C++, and each TensorFlow has another.

  message_classes.py FILE.proto HEADER
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "package"))

import proto_file  # pylint: disable=g-import-not-at-top,wrong-import-position

_SCALARS = {"bool": "bool", "int32": "int32_t", "int64": "int64_t", "float": "float", "string": "std::string"}
# Of TensorFlow's own files. An enum is a number here.
_OF_TENSORFLOW = {
    "RunOptions": "::tensorflow::RunOptions",
    "RewriterConfig.Toggle": "int32_t",
    "tensorflow.error.Code": "int32_t",
}
_MAP = "std::map<std::string, std::string>"


class _Classes:
  """Writes the C++ of one file."""

  def __init__(self, file: proto_file.File):
    self._file = file
    self._enums = {enum.name for enum in file.enums}

  def text(self) -> str:
    # A message comes before those of its fields there.
    return "\n".join([*map(_enum, self._file.enums), *map(self._class, reversed(self._file.messages))])

  def _class(self, message: proto_file.Message) -> str:
    visits = "".join(f"    visit({field.number}, self.{field.name}_);\n" for field in message.fields)
    return f"""\
class {message.name} {{
 public:
{"".join(map(self._class, message.messages))}\
{"".join(map(self._functions, message.fields))}\
  void Clear() {{ *this = {message.name}(); }}
  std::string SerializeAsString() const {{ return wire::Serialize(*this); }}
  bool ParseFromString(const std::string& serialized) {{
    Clear();
    return wire::Parse(serialized, this);
  }}
  static std::string GetTypeName() {{ return "tensorflow.staging.{message.name}"; }}
  template <typename Self, typename Visit>
  static void ForEachField(Self& self, Visit&& visit) {{
{visits}  }}

 private:
{"".join(f"  {self._member_type(field)} {field.name}_{{}};" + chr(10) for field in message.fields)}}};
"""

  def _type(self, field: proto_file.Field) -> str:
    if field.type == proto_file.MAP:
      return _MAP
    return _SCALARS.get(field.type) or _OF_TENSORFLOW.get(field.type) or field.type

  def _is_message(self, field: proto_file.Field) -> bool:
    return self._type(field) not in (_MAP, *_SCALARS.values(), *self._enums)

  def _member_type(self, field: proto_file.Field) -> str:
    value = self._type(field)
    if field.label == "repeated":
      return f"std::vector<{value}>"
    return f"std::optional<{value}>" if field.label == "optional" or self._is_message(field) else value

  def _functions(self, field: proto_file.Field) -> str:
    """Returns the functions that read and write a field."""
    name, value, member = field.name, self._type(field), f"{field.name}_"
    argument = f"const {value}&" if field.type == "string" or self._is_message(field) else value
    lines = [f"{self._member_type(field)}* mutable_{name}() {{ return &{member}; }}"]
    if field.label == "repeated":
      lines += [
          f"const {self._member_type(field)}& {name}() const {{ return {member}; }}",
          f"int {name}_size() const {{ return static_cast<int>({member}.size()); }}",
          f"void add_{name}({argument} value) {{ {member}.push_back(value); }}",
      ]
    elif self._is_message(field):
      lines = [
          f"bool has_{name}() const {{ return {member}.has_value(); }}",
          f"const {value}& {name}() const {{ return {member} ? *{member} : wire::Default<{value}>(); }}",
          f"{value}* mutable_{name}() {{ return {member} ? &*{member} : &{member}.emplace(); }}",
      ]
    elif field.label == "optional":
      lines += [
          f"bool has_{name}() const {{ return {member}.has_value(); }}",
          f"{value} {name}() const {{ return {member}.value_or({value}()); }}",
      ]
    else:
      lines += [f"const {value}& {name}() const {{ return {member}; }}"]
    if field.label != "repeated" and value != _MAP:
      lines += [f"void set_{name}({argument} value) {{ {member} = value; }}"]
    return "".join(f"  {line}\n" for line in lines)


def _enum(enum: proto_file.Enum) -> str:
  names = ", ".join(f'"{value}"' for value in enum.values)
  return f"""\
enum {enum.name} : int32_t {{ {", ".join(enum.values)} }};
inline bool {enum.name}_IsValid(int value) {{ return value >= 0 && value < {len(enum.values)}; }}
inline std::string {enum.name}_Name(int value) {{
  static constexpr const char* kNames[] = {{{names}}};
  return {enum.name}_IsValid(value) ? kNames[value] : "";
}}
"""


def header_of(text: str) -> str:
  """Returns the header with the classes of a file of messages."""
  file = proto_file.parse(text)
  includes = "".join(f'#include "{path.removesuffix(".proto")}.pb.h"\n' for path in file.imports)
  return f"""\
// Made by plugin/message_classes.py.
#pragma once

#include "tensorflow_staging/plugin/wire_format.h"
{includes}
namespace tensorflow {{
namespace staging {{

{_Classes(file).text()}
}}  // namespace staging
}}  // namespace tensorflow
"""


def main() -> None:
  source, header = map(pathlib.Path, sys.argv[1:])
  header.write_text(header_of(source.read_text()))


if __name__ == "__main__":
  main()
