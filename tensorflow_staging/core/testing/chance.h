// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_CHANCE_H_
#define TENSORFLOW_STAGING_CORE_TESTING_CHANCE_H_

// What a hostile client may send: numbers, types, texts and attributes that are
// seldom right. For tests.

#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace tensorflow {
namespace staging {

// Chooses everything that a test leaves to chance.
class Chance {
 public:
  explicit Chance(int seed) : random_(seed) {}

  int Below(int bound) { return random_() % bound; }

  template <typename T, size_t size>
  const T& Of(const T (&values)[size]) {
    return values[Below(size)];
  }

  int64_t Int() {
    static constexpr int64_t kInts[] = {-2,
                                        -1,
                                        0,
                                        1,
                                        2,
                                        7,
                                        100000000,
                                        std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min()};
    return Of(kInts);
  }

  DataType Type() {
    static constexpr DataType kTypes[] = {DT_INVALID, DT_INT64, DT_STRING,
                                          DT_RESOURCE, DT_INT64_REF};
    return Of(kTypes);
  }

  std::string NodeName(const GraphDef& graph) {
    return graph.node(Below(graph.node_size())).name();
  }

  std::string Text(const GraphDef& graph) {
    static const std::string* const kTexts[] = {
        new std::string(""),          new std::string("prefetch"),
        new std::string("/"),         new std::string("loc:@nobody"),
        new std::string("a:b:c"),     new std::string("^x"),
        new std::string("\xff\0x", 3)};
    return Below(2) == 0 ? NodeName(graph) : *Of(kTexts);
  }

  AttrValue Value(const GraphDef& graph) {
    AttrValue value;
    const int entries = Below(4);
    switch (Below(13)) {
      case 0:
        value.set_s(Text(graph));
        break;
      case 1:
        value.set_i(Int());
        break;
      case 2:
        value.set_b(Below(2) == 0);
        break;
      case 3:
        value.set_f(1.5);
        break;
      case 4:
        value.set_type(Type());
        break;
      case 5:
        value.mutable_shape()->add_dim()->set_size(Int());
        break;
      case 6:
        value.mutable_tensor()->set_dtype(Type());
        break;
      case 7:
        value.mutable_func()->set_name(Text(graph));
        break;
      case 8:
        value.set_placeholder(Text(graph));
        break;
      case 9:
        value.mutable_list();
        for (int i = 0; i < entries; ++i) value.mutable_list()->add_i(Int());
        break;
      case 10:
        value.mutable_list();
        for (int i = 0; i < entries; ++i) {
          value.mutable_list()->add_type(Type());
        }
        break;
      case 11:
        value.mutable_list();
        for (int i = 0; i < entries; ++i) {
          value.mutable_list()->add_s(Text(graph));
        }
        break;
      default:
        break;  // An attribute without a value.
    }
    return value;
  }

 private:
  std::mt19937 random_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_CHANCE_H_
