// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the wire format of Protocol Buffers
// (https://protobuf.dev/programming-guides/encoding) for the classes that
// plugin/message_classes.py makes. Classes that protoc generated would tie the plugin to
// one version of protobuf's C++, and each TensorFlow has another.

#ifndef TENSORFLOW_STAGING_PLUGIN_WIRE_FORMAT_H_
#define TENSORFLOW_STAGING_PLUGIN_WIRE_FORMAT_H_

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tensorflow {
namespace staging {
namespace wire {

enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// The message of a field that is not set.
template <typename Message>
const Message& Default() {
  static const auto* const message = new Message;
  return *message;
}

template <typename T>
inline constexpr bool kIsInteger = std::is_integral_v<T> || std::is_enum_v<T>;

// How a field of this C++ type is written.
template <typename T>
constexpr Type TypeOf() {
  if (std::is_same_v<T, float>) return kFixed32;
  return kIsInteger<T> ? kVarint : kBytes;
}

inline void WriteVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) {
    out->push_back(static_cast<char>(value | 0x80));
  }
  out->push_back(static_cast<char>(value));
}

inline bool ReadVarint(absl::string_view* in, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in->front());
    in->remove_prefix(1);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

inline bool ReadBytes(absl::string_view* in, absl::string_view* bytes) {
  uint64_t size = 0;
  if (!ReadVarint(in, &size) || size > in->size()) return false;
  *bytes = in->substr(0, size);
  in->remove_prefix(size);
  return true;
}

// Passes over a field of which the message does not know the number.
inline bool Skip(uint32_t type, absl::string_view* in) {
  uint64_t varint = 0;
  absl::string_view bytes;
  const size_t fixed = type == kFixed64 ? 8 : 4;
  switch (type) {
    case kVarint:
      return ReadVarint(in, &varint);
    case kBytes:
      return ReadBytes(in, &bytes);
    case kFixed64:
    case kFixed32:
      if (in->size() < fixed) return false;
      in->remove_prefix(fixed);
      return true;
  }
  return false;
}

// A value without its number, as in a packed list.
template <typename T>
void WriteValue(const T& value, std::string* out) {
  if constexpr (std::is_same_v<T, float>) {
    char bytes[sizeof(float)];
    std::memcpy(bytes, &value, sizeof(bytes));
    out->append(bytes, sizeof(bytes));
  } else if constexpr (kIsInteger<T>) {
    WriteVarint(static_cast<uint64_t>(static_cast<int64_t>(value)), out);
  } else {
    std::string bytes;
    if constexpr (std::is_same_v<T, std::string>) {
      bytes = value;
    } else {
      bytes = value.SerializeAsString();
    }
    WriteVarint(bytes.size(), out);
    out->append(bytes);
  }
}

template <typename T>
bool ReadValue(absl::string_view* in, T* value) {
  if constexpr (std::is_same_v<T, float>) {
    if (in->size() < sizeof(float)) return false;
    std::memcpy(value, in->data(), sizeof(float));
    in->remove_prefix(sizeof(float));
    return true;
  } else if constexpr (kIsInteger<T>) {
    uint64_t varint = 0;
    if (!ReadVarint(in, &varint)) return false;
    *value = static_cast<T>(varint);
    return true;
  } else {
    absl::string_view bytes;
    if (!ReadBytes(in, &bytes)) return false;
    if constexpr (std::is_same_v<T, std::string>) {
      *value = std::string(bytes);
      return true;
    } else {
      return value->ParseFromString(std::string(bytes));
    }
  }
}

template <typename T>
void WriteTagged(int number, const T& value, std::string* out) {
  WriteVarint(static_cast<uint64_t>(number) << 3 | TypeOf<T>(), out);
  WriteValue(value, out);
}

// An entry of a map, which is a message with two fields.
struct MapEntry {
  std::string key, value;

  std::string SerializeAsString() const;
  bool ParseFromString(const std::string& serialized);

  template <typename Self, typename Visit>
  static void ForEachField(Self& self, Visit&& visit) {
    visit(1, self.key);
    visit(2, self.value);
  }
};

// Fields by their C++ type. A field with its default value is not written.
template <typename T>
void WriteField(int number, const T& value, std::string* out) {
  if (value != T()) WriteTagged(number, value, out);
}

template <typename T>
void WriteField(int number, const std::optional<T>& value, std::string* out) {
  if (value.has_value()) WriteTagged(number, *value, out);
}

template <typename T>
void WriteField(int number, const std::vector<T>& values, std::string* out) {
  if constexpr (TypeOf<T>() == kBytes) {
    for (const T& value : values) WriteTagged(number, value, out);
  } else if (!values.empty()) {
    std::string packed;
    for (const T& value : values) WriteValue(value, &packed);
    WriteTagged(number, packed, out);
  }
}

inline void WriteField(int number,
                       const std::map<std::string, std::string>& entries,
                       std::string* out) {
  for (const auto& [key, value] : entries) {
    WriteTagged(number, MapEntry{key, value}, out);
  }
}

template <typename T>
bool ReadField(uint32_t type, absl::string_view* in, T* value) {
  return type == TypeOf<T>() && ReadValue(in, value);
}

// A message that is written twice is merged by protobuf. Here the last one counts,
// as of all other fields: no writer writes one twice.
template <typename T>
bool ReadField(uint32_t type, absl::string_view* in, std::optional<T>* value) {
  return type == TypeOf<T>() && ReadValue(in, &value->emplace());
}

template <typename T>
bool ReadField(uint32_t type, absl::string_view* in, std::vector<T>* values) {
  if (type == TypeOf<T>()) return ReadValue(in, &values->emplace_back());
  absl::string_view packed;
  if (type != kBytes || !ReadBytes(in, &packed)) return false;
  while (!packed.empty()) {
    if (!ReadValue(&packed, &values->emplace_back())) return false;
  }
  return true;
}

inline bool ReadField(uint32_t type, absl::string_view* in,
                      std::map<std::string, std::string>* entries) {
  MapEntry entry;
  if (type != kBytes || !ReadValue(in, &entry)) return false;
  (*entries)[entry.key] = entry.value;
  return true;
}

// `Message::ForEachField(message, f)` calls f(number, field) for each field.
template <typename Message>
std::string Serialize(const Message& message) {
  std::string out;
  Message::ForEachField(message, [&out](int number, const auto& field) {
    WriteField(number, field, &out);
  });
  return out;
}

// Adds what `serialized` has to `*message`. Fields of other numbers are ignored.
template <typename Message>
bool Parse(absl::string_view serialized, Message* message) {
  while (!serialized.empty()) {
    uint64_t tag = 0;
    if (!ReadVarint(&serialized, &tag)) return false;
    const uint32_t type = tag & 7;
    bool known = false, good = true;
    Message::ForEachField(*message, [&](int number, auto& field) {
      if (static_cast<uint64_t>(number) != tag >> 3) return;
      known = true;
      good = ReadField(type, &serialized, &field);
    });
    if (!known) good = Skip(type, &serialized);
    if (!good) return false;
  }
  return true;
}

inline std::string MapEntry::SerializeAsString() const {
  return Serialize(*this);
}

inline bool MapEntry::ParseFromString(const std::string& serialized) {
  return Parse(serialized, this);
}

}  // namespace wire
}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_PLUGIN_WIRE_FORMAT_H_
