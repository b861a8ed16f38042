// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_PROGRAM_H_
#define TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/testing/scheduled/random.h"

namespace tensorflow {
namespace staging {

// A program whose steps take what regions make of the elements of iterators. With
// or without stages, it yields the same.

using Values = std::vector<int64_t>;

// What an iterator yields, one after the other.
struct Data {
  int64_t source = 0;
  int64_t base = 0;
  int64_t length = 0;
  bool has_errors = false;

  // Sets `*value` to the element at a position, and `*is_end` to whether it is
  // behind the last one.
  Status Get(int64_t position, int64_t* value, bool* is_end) const;
};

// A read of an iterator in a region.
struct Read {
  int64_t source = 0;
  // In a branch that depends on what was read before.
  bool is_conditional = false;
  // Yields kNoValue at the end of the data, instead of ending the run.
  bool is_optional = false;
};

constexpr int64_t kNoValue = -1;

struct Region {
  int64_t capacity = 1;
  std::vector<Read> reads;
  // It fails for some of the elements.
  bool has_errors = false;
  // It reads what the program changes beside the data.
  bool reads_mode = false;

  // Runs its reads, after what the region before has made. `get_next` gets an element.
  using GetNext = std::function<Status(const Read& read, int64_t* value)>;
  Status RunReads(int64_t mode, const GetNext& get_next, Values* values) const;
  // Runs the rest of it.
  Status Compute(const Values& values) const;
};

struct Program {
  int64_t num_sources = 1;
  // Each one begins with what the one before has made.
  std::vector<Region> regions;
  int64_t num_producers = 1;
  // Whether they make records in any order.
  bool any_order = false;
  bool data_has_errors = false;
  // Whether steps skip the errors of the data.
  bool ignores_errors = false;

  static Program Choose(scheduled::Random* random);
  // In which each element makes one record, in any order.
  static Program ChooseInAnyOrder(scheduled::Random* random);

  std::string ToString() const;
};

// What a step, or a read beside the steps, yields.
struct Result {
  Status status;
  Values values;

  // The text of the end of the data says where it was found.
  bool operator==(const Result& other) const;
  std::string ToString() const;
};

// The program without stages.
struct PlainProgram {
  struct Source {
    bool is_initialised = false;
    Data data;
    int64_t position = 0;

    bool operator==(const Source& other) const;
    Status GetNext(int64_t* value, bool* is_end);
  };
  std::vector<Source> sources;
  std::vector<std::vector<Source>> saved;
  int64_t mode = 0;

  bool operator==(const PlainProgram& other) const;
  Result Step(const Program& program);
  Result ReadBeside(int64_t source);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_HISTORIES_PROGRAM_H_
