// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/testing/histories/program.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {
namespace {

using scheduled::Random;

// Values that regions see beside elements.
constexpr int64_t kModes = int64_t{1} << 60;

Status UninitialisedStatus() {
  return errors::FailedPrecondition(
      "GetNext() failed because the iterator has not been initialized.");
}

Region ChooseRegion(const std::vector<int64_t>& sources, bool is_first,
                    Random* random) {
  Region region;
  region.capacity = random->OneIn(10) ? 6 : random->Between(1, 4);
  const int64_t reads = random->Between(is_first ? 1 : 0, 3);
  for (int64_t i = 0; i < reads; ++i) {
    Read read = {random->Of(sources)};
    read.is_conditional = !(is_first && i == 0) && random->Below(10) < 3;
    read.is_optional = random->OneIn(12);
    region.reads.push_back(read);
  }
  region.has_errors = random->OneIn(4);
  region.reads_mode = random->OneIn(3);
  return region;
}

}  // namespace

Status Data::Get(int64_t position, int64_t* value, bool* is_end) const {
  *is_end = position >= length;
  if (*is_end) return OkStatus();
  *value = (source * 10000 + base) * 10000 + position;
  if (has_errors && Random::Mix(*value) % 7 == 0) {
    return errors::DataLoss("Element ", *value, " is damaged.");
  }
  return OkStatus();
}

Status Region::RunReads(int64_t mode, const GetNext& get_next,
                        Values* values) const {
  if (reads_mode) values->push_back(kModes + mode);
  for (const Read& read : reads) {
    const int64_t sum =
        std::accumulate(values->begin(), values->end(), int64_t{0});
    if (read.is_conditional && sum % 2 != 0) continue;
    int64_t value = 0;
    TF_RETURN_IF_ERROR(get_next(read, &value));
    values->push_back(value);
  }
  return OkStatus();
}

Status Region::Compute(const Values& values) const {
  if (has_errors && !values.empty() &&
      Random::Mix(values.back() + values.size()) % 7 == 0) {
    return errors::InvalidArgument("The region fails for ",
                                   absl::StrJoin(values, ", "), ".");
  }
  return OkStatus();
}

Program Program::Choose(Random* random) {
  Program program;
  program.num_sources = random->Between(1, 3);
  program.num_producers = random->OneIn(2) ? random->Between(2, 3) : 1;
  program.data_has_errors = random->OneIn(4);
  program.ignores_errors = program.data_has_errors && random->OneIn(2);
  std::vector<int64_t> sources(program.num_sources);
  std::iota(sources.begin(), sources.end(), 0);
  const int64_t regions = random->Between(1, 3);
  for (int64_t i = 0; i < regions && !sources.empty(); ++i) {
    program.regions.push_back(ChooseRegion(sources, i == 0, random));
    // One stage reads a source: SmartStage aligns two that read one.
    for (const Read& read : program.regions.back().reads) {
      sources.erase(std::remove(sources.begin(), sources.end(), read.source),
                    sources.end());
    }
  }
  return program;
}

Program Program::ChooseInAnyOrder(Random* random) {
  Program program;
  program.num_producers = 3;
  program.any_order = true;
  Region region;
  region.capacity = random->Between(1, 4);
  region.reads = {Read()};
  program.regions = {region};
  return program;
}

std::string Program::ToString() const {
  std::string text =
      absl::StrCat(num_sources, " sources, ", num_producers, " producers",
                   any_order ? " in any order" : "",
                   data_has_errors ? ", damaged elements" : "",
                   ignores_errors ? ", which are skipped" : "");
  for (const Region& region : regions) {
    absl::StrAppend(&text, "\n  region of capacity ", region.capacity,
                    region.has_errors ? ", with errors" : "",
                    region.reads_mode ? ", reads the mode" : "", ": reads");
    for (const Read& read : region.reads) {
      absl::StrAppend(&text, " ", read.source, read.is_conditional ? "?" : "",
                      read.is_optional ? "o" : "");
    }
  }
  return text;
}

bool Result::operator==(const Result& other) const {
  if (errors::IsOutOfRange(status)) return errors::IsOutOfRange(other.status);
  return status == other.status && values == other.values;
}

std::string Result::ToString() const {
  return status.ok() ? absl::StrJoin(values, " ") : status.ToString();
}

bool PlainProgram::Source::operator==(const Source& other) const {
  return is_initialised == other.is_initialised &&
         data.base == other.data.base && data.length == other.data.length &&
         position == other.position;
}

bool PlainProgram::operator==(const PlainProgram& other) const {
  return sources == other.sources && saved == other.saved && mode == other.mode;
}

Status PlainProgram::Source::GetNext(int64_t* value, bool* is_end) {
  if (!is_initialised) return UninitialisedStatus();
  const Status status = data.Get(position, value, is_end);
  if (!*is_end) ++position;
  return status;
}

Result PlainProgram::Step(const Program& program) {
  while (true) {
    Result result;
    for (const Region& region : program.regions) {
      const auto get_next = [this](const Read& read, int64_t* value) {
        bool is_end = false;
        TF_RETURN_IF_ERROR(sources[read.source].GetNext(value, &is_end));
        if (is_end && !read.is_optional) return errors::OutOfRange("End.");
        if (is_end) *value = kNoValue;
        return OkStatus();
      };
      result.status = region.RunReads(mode, get_next, &result.values);
      if (result.status.ok()) result.status = region.Compute(result.values);
      if (!result.status.ok()) break;
    }
    if (program.ignores_errors && errors::IsDataLoss(result.status)) continue;
    if (!result.status.ok()) result.values.clear();
    return result;
  }
}

Result PlainProgram::ReadBeside(int64_t source) {
  Result result;
  int64_t value = 0;
  bool is_end = false;
  result.status = sources[source].GetNext(&value, &is_end);
  if (is_end) result.status = errors::OutOfRange("End.");
  if (result.status.ok()) result.values.push_back(value);
  return result;
}

}  // namespace staging
}  // namespace tensorflow
