// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/upload_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"

namespace tensorflow {
namespace staging {
namespace {

constexpr int64_t kLimit = UploadPlan::kLeastDirectBytes;

class UploadPlanTest : public ::testing::Test {
 protected:
  // Returns a tensor of pinned memory.
  Tensor Pinned(int64_t bytes) {
    AllocatorAttributes attributes;
    attributes.set_on_host(true);
    attributes.set_gpu_compatible(true);
    return Tensor(FakeGpu::Of(session_.get())->GetAllocator(attributes),
                  DT_INT8, {bytes});
  }

  static Tensor Pageable(int64_t bytes) { return Tensor(DT_INT8, {bytes}); }

  static std::vector<int> Indices(const std::vector<UploadPlan::Part>& parts) {
    std::vector<int> indices;
    for (const UploadPlan::Part& part : parts) indices.push_back(part.index);
    return indices;
  }

  const std::unique_ptr<Session> session_{NewSession(SessionOptions())};
};

TEST_F(UploadPlanTest, OnlyLargeTensorsInPinnedMemoryAreDirect) {
  const std::vector<Tensor> record = {
      Pinned(kLimit),
      Pinned(kLimit - 1),
      Pageable(kLimit),
      Pageable(1),
      Pinned(0),
      Pinned(10 * kLimit),
      Pinned(3 * kLimit).Slice(kLimit, 2 * kLimit)};
  const UploadPlan plan = PlanUpload(record, {0, 1, 2, 3, 4, 5, 6});
  EXPECT_EQ(Indices(plan.direct), (std::vector<int>{0, 5, 6}));
  EXPECT_EQ(Indices(plan.packed), (std::vector<int>{1, 2, 3}));
}

TEST_F(UploadPlanTest, OnlyTheTensorsWithTheIndicesArePlanned) {
  const std::vector<Tensor> record = {Pinned(kLimit), Pageable(1), Pageable(1),
                                      Pinned(kLimit)};
  const UploadPlan plan = PlanUpload(record, {1, 3});
  EXPECT_EQ(Indices(plan.direct), std::vector<int>{3});
  EXPECT_EQ(Indices(plan.packed), std::vector<int>{1});
}

TEST_F(UploadPlanTest, PartsAreAlignedAndThePackedOnesAreInFront) {
  const std::vector<Tensor> record = {Pinned(kLimit + 1), Pageable(257),
                                      Pageable(1), Pinned(kLimit)};
  const UploadPlan plan = PlanUpload(record, {0, 1, 2, 3});
  ASSERT_EQ(plan.packed.size(), 2);
  EXPECT_EQ(plan.packed[0].offset, 0);
  EXPECT_EQ(plan.packed[1].offset, 512);
  EXPECT_EQ(plan.packed_bytes, 768);
  ASSERT_EQ(plan.direct.size(), 2);
  EXPECT_EQ(plan.direct[0].offset, 768);
  EXPECT_EQ(plan.direct[1].offset, 768 + kLimit + 256);
  EXPECT_EQ(plan.bytes, 768 + 2 * kLimit + 256);
}

TEST_F(UploadPlanTest, ARecordWithoutBytesHasNoParts) {
  const UploadPlan plan = PlanUpload({Pageable(0), Pinned(0)}, {0, 1});
  EXPECT_TRUE(plan.packed.empty());
  EXPECT_TRUE(plan.direct.empty());
  EXPECT_EQ(plan.bytes, 0);
}

// Ranges may begin and end in a part, or in the gap behind it.
TEST_F(UploadPlanTest, RangesPackWhatOnePassPacks) {
  std::vector<Tensor> record;
  std::vector<int> indices;
  for (int64_t bytes : {1000, 1, 256, 5, 0, 700}) {
    record.push_back(Pageable(bytes));
    record.back().flat<int8>().setConstant(record.size());
    indices.push_back(indices.size());
  }
  const UploadPlan plan = PlanUpload(record, indices);
  std::string whole(plan.packed_bytes, '\0');
  PackRange(plan, 0, plan.packed_bytes, whole.data());
  for (const UploadPlan::Part& part : plan.packed) {
    EXPECT_EQ(whole.substr(part.offset, part.bytes),
              std::string(part.bytes, static_cast<char>(part.index + 1)));
  }
  for (int64_t length : {1, 7, 100, 256, 300, 2000}) {
    std::string ranges(plan.packed_bytes, '\0');
    for (int64_t begin = 0; begin < plan.packed_bytes; begin += length) {
      PackRange(plan, begin, std::min(begin + length, plan.packed_bytes),
                ranges.data());
    }
    EXPECT_EQ(ranges, whole) << length;
  }
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
