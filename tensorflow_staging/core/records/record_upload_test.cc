// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/records/record_upload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tensorflow/compiler/xla/stream_executor/stream.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/records/device_memory.h"
#include "tensorflow_staging/core/records/lent_tensor.h"
#include "tensorflow_staging/core/records/upload_plan.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"

namespace tensorflow {
namespace staging {
namespace {

using Record = std::vector<Tensor>;

// Copies to a fake GPU.
class RecordUploadTest : public ::testing::Test {
 protected:
  RecordUploadTest()
      : session_(NewTestSession()), gpu_(FakeGpu::Of(session_.get())) {}

  // The next test has the same GPU, and the last blocks of this one come back
  // when another thread has seen that no kernel uses them.
  void TearDown() override {
    Await([this] { return gpu_->memory().Taken() == 0; });
  }

  static void Await(absl::FunctionRef<bool()> is_true) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!is_true()) {
      ASSERT_LT(absl::Now(), deadline) << "Memory does not come back.";
      std::this_thread::yield();
    }
  }

  // The device has several threads, however many cores the machine has.
  static std::unique_ptr<Session> NewTestSession() {
    SessionOptions options;
    options.config.set_intra_op_parallelism_threads(4);
    options.config.set_use_per_session_threads(true);
    return std::unique_ptr<Session>(NewSession(options));
  }

  DeviceContext* Context() {
    return gpu_->tensorflow_accelerator_device_info()->default_context;
  }

  Record Queue(const RecordUpload& upload, Record record) {
    TF_CHECK_OK(upload.Queue(gpu_, IfFull::kGiveUp, &record));
    return record;
  }

  // Copies `record`, frees the copy, and waits until its block is free.
  void RunAndFree(const RecordUpload& upload, const Record& record) {
    Queue(upload, record);
    AwaitFreeBlock(upload);
  }

  static void AwaitFreeBlock(const RecordUpload& upload) {
    Await([&upload] { return upload.blocks().NumFree() > 0; });
  }

  // Returns a copy on the host, which is made as a step would.
  Tensor OnHost(const Tensor& there) {
    TF_CHECK_OK(AwaitContent({there}, *gpu_));
    Tensor host(there.dtype(), there.shape());
    TF_CHECK_OK(Context()->CopyDeviceTensorToCPUSync(&there, "", gpu_, &host));
    return host;
  }

  static Tensor Filled(int64_t size, int64_t value) {
    Tensor tensor(DT_INT64, {size});
    tensor.flat<int64_t>().setConstant(value);
    return tensor;
  }

  Tensor Pinned(int64_t size, int64_t value) {
    Tensor tensor(gpu_->GetAllocator(PinnedMemory()), DT_INT64, {size});
    tensor.flat<int64_t>().setConstant(value);
    return tensor;
  }

  int64_t Copies() { return gpu_->counts().host_to_device.count; }

  const std::unique_ptr<Session> session_;
  FakeGpu* const gpu_;
};

TEST_F(RecordUploadTest, SmallTensorsAreOneCopy) {
  Tensor scalar(2.5f);
  const Record record = {Filled(3, 7), Tensor("stays"), scalar,
                         Filled(0, 0), Filled(1000, 8), Tensor(true)};
  const RecordUpload upload({0, 2, 3, 4, 5});
  const int64_t copies = Copies();
  const int64_t from_pageable = gpu_->counts().from_pageable.count;
  const Record there = Queue(upload, record);
  EXPECT_EQ(Copies() - copies, 1);
  EXPECT_EQ(gpu_->counts().from_pageable.count, from_pageable);
  ASSERT_EQ(there.size(), record.size());
  for (size_t i = 0; i < record.size(); ++i) {
    EXPECT_EQ(there[i].dtype(), record[i].dtype()) << i;
    EXPECT_EQ(there[i].shape(), record[i].shape()) << i;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(there[i].data()) % 64, 0) << i;
  }
  EXPECT_EQ(OnHost(there[0]).flat<int64_t>()(2), 7);
  EXPECT_EQ(there[1].scalar<tstring>()(), "stays");
  EXPECT_EQ(OnHost(there[2]).scalar<float>()(), 2.5f);
  EXPECT_EQ(OnHost(there[4]).flat<int64_t>()(999), 8);
  EXPECT_EQ(OnHost(there[5]).scalar<bool>()(), true);
}

// The copies are queued behind a stopped GPU, so what is written to the host's
// tensors afterwards arrives only where it has not been packed.
TEST_F(RecordUploadTest, LargeTensorsAreCopiedFromWhereTheyAre) {
  constexpr int64_t kLarge = UploadPlan::kLeastDirectBytes / 8;
  Record record = {Filled(1, 1), Pinned(kLarge, 1), Filled(kLarge, 1),
                   Pinned(kLarge - 1, 1), Pinned(10 * kLarge, 1)};
  const RecordUpload upload({0, 1, 2, 3, 4});
  const int64_t copies = Copies();
  const int64_t from_pageable = gpu_->counts().from_pageable.count;
  Record there;
  {
    const StoppedFakeGpu stopped(gpu_);
    there = Queue(upload, record);
    for (Tensor& tensor : record) tensor.flat<int64_t>().setConstant(2);
  }
  const std::vector<int64_t> expected = {1, 2, 1, 1, 2};
  for (size_t i = 0; i < there.size(); ++i) {
    const Tensor host = OnHost(there[i]);
    const auto values = host.flat<int64_t>();
    EXPECT_EQ(values(0), expected[i]) << i;
    EXPECT_EQ(values(values.size() - 1), expected[i]) << i;
  }
  // One for each direct tensor, and one for all others.
  EXPECT_EQ(Copies() - copies, 3);
  EXPECT_EQ(gpu_->counts().from_pageable.count, from_pageable);
}

// The GPU copies chunks of 4 MiB while the host packs the next one.
TEST_F(RecordUploadTest, MuchPageableMemoryIsCopiedInChunks) {
  constexpr int64_t kSize = 1000003;
  Record record;
  for (int i = 0; i < 3; ++i) {
    record.push_back(Filled(kSize, 0));
    int64_t* const values = record.back().flat<int64_t>().data();
    for (int64_t j = 0; j < kSize; ++j) values[j] = i * kSize + j;
  }
  const int64_t copies = Copies();
  const int64_t bytes = gpu_->counts().host_to_device.bytes;
  const Record there = Queue(RecordUpload({0, 1, 2}), record);
  EXPECT_EQ(Copies() - copies, 6);
  EXPECT_NEAR(gpu_->counts().host_to_device.bytes - bytes, 24 * kSize, 1000);
  for (int i = 0; i < 3; ++i) {
    const Tensor host = OnHost(there[i]);
    EXPECT_EQ(host.tensor_data(), record[i].tensor_data()) << i;
  }
}

TEST_F(RecordUploadTest, ARecordWithoutBytesIsNotCopied) {
  const int64_t copies = Copies();
  Queue(RecordUpload({0}), {Filled(0, 0)});
  EXPECT_EQ(Copies(), copies);
}

TEST_F(RecordUploadTest, ACopyIntoAFreeBlockDoesNotWaitForTheGpu) {
  const RecordUpload upload({0});
  RunAndFree(upload, {Filled(100, 1)});
  const int64_t waits = gpu_->counts().copy_waits;
  const Record there = Queue(upload, {Filled(100, 2)});
  EXPECT_EQ(gpu_->counts().copy_waits, waits);
  EXPECT_EQ(OnHost(there[0]).flat<int64_t>()(99), 2);
}

// The stream of the step's kernels waits for the copies of a record only if it
// uses the record before they are over.
TEST_F(RecordUploadTest, TheGpuWaitsForCopiesThatAreNotOver) {
  const RecordUpload upload({0, 1});
  const int64_t waits = gpu_->counts().compute_waits;
  Record there;
  {
    const StoppedFakeGpu stopped(gpu_);
    there = Queue(upload, {Filled(100, 1), Filled(100, 2)});
    TF_CHECK_OK(AwaitContent(there, *gpu_));
    EXPECT_EQ(gpu_->counts().compute_waits - waits, 1);
  }
  TF_CHECK_OK(gpu_->Sync());
  there.clear();
  AwaitFreeBlock(upload);
  // The block came back, so the copies are known to be over.
  there = Queue(upload, {Filled(100, 3), Filled(100, 4)});
  EXPECT_EQ(OnHost(there[1]).flat<int64_t>()(0), 4);
}

// The host's references may go before the copy begins. Then other tensors use
// the memory.
TEST_F(RecordUploadTest, HostTensorsMayBeFreedBeforeTheyAreCopied) {
  const RecordUpload upload({0, 1});
  constexpr int64_t kLarge = UploadPlan::kLeastDirectBytes / 8;
  Record there;
  {
    const StoppedFakeGpu stopped(gpu_);
    there = Queue(upload, {Pinned(kLarge, 1), Filled(10, 1)});
    const Record next = {Pinned(kLarge, 2), Pinned(32, 2), Pinned(kLarge, 2)};
  }
  EXPECT_EQ(OnHost(there[0]).flat<int64_t>()(kLarge / 2), 1);
  EXPECT_EQ(OnHost(there[1]).flat<int64_t>()(5), 1);
}

// A record that is dropped, for example because the stage stops.
TEST_F(RecordUploadTest, ABlockComesBackWhenItsCopyIsOver) {
  const RecordUpload upload({0});
  {
    const StoppedFakeGpu stopped(gpu_);
    Queue(upload, {Filled(10, 1)});
    EXPECT_EQ(upload.blocks().NumFree(), 0);
  }
  AwaitFreeBlock(upload);
}

// The host frees a block while a kernel that reads it is queued. The next
// record must not be copied there.
TEST_F(RecordUploadTest, ABlockIsNotUsedAgainBeforeQueuedKernelsHaveRun) {
  const RecordUpload upload({0});
  RunAndFree(upload, {Filled(100, 1)});
  int64_t seen = 0;
  std::vector<Record> next;
  {
    const StoppedFakeGpu stopped(gpu_);
    {
      const Record there = Queue(upload, {Filled(100, 2)});
      TF_CHECK_OK(AwaitContent(there, *gpu_));
      gpu_->compute_stream()->ThenDoHostCallback(
          [data = there[0].flat<int64_t>().data(), &seen] {
            seen = AcrossBorder(data[50]);
          });
    }
    EXPECT_EQ(upload.blocks().NumFree(), 0);
    // These copies wait for the GPU.
    for (int i = 0; i < 3; ++i) next.push_back(Queue(upload, {Filled(100, 3)}));
  }
  TF_CHECK_OK(gpu_->Sync());
  EXPECT_EQ(seen, 2);
  for (const Record& record : next) {
    EXPECT_EQ(OnHost(record[0]).flat<int64_t>()(50), 3);
  }
}

// The allocator may give a new block memory that a queued kernel still reads.
TEST_F(RecordUploadTest, ACopyIntoANewBlockWaitsForQueuedKernels) {
  const RecordUpload upload({0});
  int64_t seen = 0;
  const int64_t waits = gpu_->counts().copy_waits;
  Record there;
  {
    const StoppedFakeGpu stopped(gpu_);
    {
      Tensor freed(gpu_->GetAllocator({}), DT_INT64, {100});
      freed.flat<int64_t>().setConstant(AcrossBorder(int64_t{5}));
      gpu_->compute_stream()->ThenDoHostCallback(
          [data = freed.flat<int64_t>().data(), &seen] {
            seen = AcrossBorder(data[50]);
          });
    }
    there = Queue(upload, {Filled(100, 3)});
    EXPECT_EQ(gpu_->counts().copy_waits - waits, 1);
  }
  EXPECT_EQ(OnHost(there[0]).flat<int64_t>()(50), 3);
  EXPECT_EQ(seen, 5);
}

TEST_F(RecordUploadTest, WithoutMemoryARecordStaysOnTheHost) {
  const LimitedFakeGpu limited(gpu_, /*bytes=*/1000);
  const RecordUpload upload({0, 1});
  Record record = {Filled(10, 1), Filled(100, 2)};
  const absl::Time begin = absl::Now();
  const Status status = upload.Queue(gpu_, IfFull::kGiveUp, &record);
  EXPECT_TRUE(errors::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), gpu_->name())) << status;
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5)) << "It has waited.";
  EXPECT_EQ(record[0].flat<int64_t>()(9), 1);
  EXPECT_EQ(record[1].flat<int64_t>()(99), 2);
}

TEST_F(RecordUploadTest, ATakeWaitsForABlock) {
  const LimitedFakeGpu limited(gpu_, /*bytes=*/1100);
  const RecordUpload upload({0});
  Record first = Queue(upload, {Filled(100, 1)});
  Record second = {Filled(100, 2)};
  std::thread take([this, &upload, &second] {
    TF_CHECK_OK(upload.Queue(gpu_, IfFull::kWait, &second));
  });
  absl::SleepFor(absl::Milliseconds(30));
  first.clear();
  take.join();
  EXPECT_EQ(OnHost(second[0]).flat<int64_t>()(99), 2);
}

TEST_F(RecordUploadTest, FreeBlocksOfOtherSizesMakeRoom) {
  const LimitedFakeGpu limited(gpu_, /*bytes=*/9000);
  const RecordUpload upload({0});
  RunAndFree(upload, {Filled(1000, 1)});
  const Record there = Queue(upload, {Filled(200, 2)});
  EXPECT_EQ(OnHost(there[0]).flat<int64_t>()(199), 2);
}

// Later records could hold all memory, and would be taken only after it.
TEST_F(RecordUploadTest, ARecordOnTheHostFindsABlock) {
  const LimitedFakeGpu limited(gpu_, /*bytes=*/2100);
  const RecordUpload upload({0});
  Record first = Queue(upload, {Filled(100, 1)});
  Record second = Queue(upload, {Filled(100, 2)});
  Record third = {Filled(100, 3)};
  EXPECT_TRUE(
      errors::IsResourceExhausted(upload.Queue(gpu_, IfFull::kGiveUp, &third)));
  std::shared_ptr<void> kept_free = upload.KeepOneFree();
  first.clear();
  AwaitFreeBlock(upload);
  Record fourth = {Filled(100, 4)};
  EXPECT_TRUE(errors::IsResourceExhausted(
      upload.Queue(gpu_, IfFull::kGiveUp, &fourth)));
  TF_CHECK_OK(upload.Queue(gpu_, IfFull::kWait, &third));
  EXPECT_EQ(OnHost(third[0]).flat<int64_t>()(0), 3);
  kept_free = nullptr;
  second.clear();
  AwaitFreeBlock(upload);
  EXPECT_EQ(OnHost(Queue(upload, fourth)[0]).flat<int64_t>()(0), 4);
}

TEST_F(RecordUploadTest, ManyRecordsOfManySizesUseLittleMemory) {
  const RecordUpload upload({0});
  const auto in_use = [this] {
    return gpu_->GetAllocator({})->GetStats()->bytes_in_use;
  };
  const int64_t before = in_use();
  for (int i = 0; i < 2000; ++i) {
    const int64_t size = 1 + (7919 * i) % 10000;
    const Record there = Queue(upload, {Filled(size, i)});
    ASSERT_EQ(OnHost(there[0]).flat<int64_t>()(size - 1), i);
  }
  // Two blocks may exist at a time: the one in use, and one on its way back.
  EXPECT_LT(in_use() - before, 16 * 8 * 10000);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
