// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/kernels/packed_copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tensorflow/compiler/xla/stream_executor/stream.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/public/version.h"
#include "tensorflow_staging/core/testing/fake_gpu.h"

namespace tensorflow {
namespace staging {
namespace {

using Record = PackedCopy::Record;

// A kernel's context on a fake GPU.
class PackedCopyTest : public ::testing::Test {
 protected:
  PackedCopyTest()
      : session_(NewSession(SessionOptions())),
        gpu_(FakeGpu::Of(session_.get())) {
    NodeDef node;
    node.set_name("kernel");
    node.set_op("NoOp");
    Status status;
    kernel_ = CreateOpKernel(DEVICE_GPU, gpu_, gpu_->GetAllocator({}), node,
                             TF_GRAPH_DEF_VERSION, &status);
    TF_CHECK_OK(status);
    params_.device = gpu_;
    params_.op_kernel = kernel_.get();
    params_.op_device_context = Context();
    ctx_ = std::make_unique<OpKernelContext>(&params_, 0);
  }

  DeviceContext* Context() {
    return gpu_->tensorflow_accelerator_device_info()->default_context;
  }

  // A copy of one record.
  struct Started {
    absl::Notification done;
    Status status;
    Record record;
  };

  std::unique_ptr<Started> Start(const PackedCopy& copy, const Record& record) {
    auto started = std::make_unique<Started>();
    copy.Start(ctx_.get(), record,
               [started = started.get()](const Status& status, Record copied) {
                 started->status = status;
                 started->record = std::move(copied);
                 started->done.Notify();
               });
    return started;
  }

  Record Run(const PackedCopy& copy, const Record& record) {
    const auto started = Start(copy, record);
    started->done.WaitForNotification();
    TF_CHECK_OK(started->status);
    return std::move(started->record);
  }

  // Copies `record`, frees the copy, and waits until its block is free.
  void RunAndFree(const PackedCopy& copy, const Record& record) {
    Run(copy, record);
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (copy.blocks().NumFree() == 0) {
      ASSERT_LT(absl::Now(), deadline) << "The block does not come back.";
      std::this_thread::yield();
    }
  }

  Tensor OnHost(const Tensor& there) {
    Tensor host(there.dtype(), there.shape());
    TF_CHECK_OK(Context()->CopyDeviceTensorToCPUSync(&there, "", gpu_, &host));
    return host;
  }

  static Tensor Filled(int64_t size, int64_t value) {
    Tensor tensor(DT_INT64, {size});
    tensor.flat<int64_t>().setConstant(value);
    return tensor;
  }

  const std::unique_ptr<Session> session_;
  FakeGpu* const gpu_;
  std::unique_ptr<OpKernel> kernel_;
  OpKernelContext::Params params_;
  std::unique_ptr<OpKernelContext> ctx_;
};

TEST_F(PackedCopyTest, ARecordIsOneCopy) {
  Tensor scalar(2.5f);
  const Record record = {Filled(3, 7), Tensor("stays"), scalar,
                         Filled(0, 0), Filled(1000, 8), Tensor(true)};
  const PackedCopy copy({0, 2, 3, 4, 5});
  const int64_t copies = gpu_->counts().host_to_device.count;
  const Record there = Run(copy, record);
  EXPECT_EQ(gpu_->counts().host_to_device.count - copies, 1);
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

TEST_F(PackedCopyTest, ARecordWithoutBytesIsNotCopied) {
  const int64_t copies = gpu_->counts().host_to_device.count;
  Run(PackedCopy({0}), {Filled(0, 0)});
  EXPECT_EQ(gpu_->counts().host_to_device.count, copies);
}

TEST_F(PackedCopyTest, ACopyIntoAFreeBlockDoesNotWaitForTheGpu) {
  const PackedCopy copy({0});
  RunAndFree(copy, {Filled(100, 1)});
  const int64_t compute_waits = gpu_->counts().compute_waits;
  Record there;
  {
    const StoppedFakeGpu stopped(gpu_);
    there = Run(copy, {Filled(100, 2)});
  }
  EXPECT_EQ(gpu_->counts().compute_waits, compute_waits);
  EXPECT_EQ(OnHost(there[0]).flat<int64_t>()(99), 2);
}

// The host frees a block while a kernel that reads it is queued. The next
// record must not be copied there.
TEST_F(PackedCopyTest, ABlockIsNotUsedAgainBeforeQueuedKernelsHaveRun) {
  const PackedCopy copy({0});
  RunAndFree(copy, {Filled(100, 1)});
  int64_t seen = 0;
  std::vector<std::unique_ptr<Started>> next;
  {
    const StoppedFakeGpu stopped(gpu_);
    {
      const Record there = Run(copy, {Filled(100, 2)});
      gpu_->compute_stream()->ThenDoHostCallback(
          [data = there[0].flat<int64_t>().data(), &seen] {
            seen = AcrossBorder(data[50]);
          });
    }
    EXPECT_EQ(copy.blocks().NumFree(), 0);
    // These wait for the GPU.
    for (int i = 0; i < 3; ++i) next.push_back(Start(copy, {Filled(100, 3)}));
  }
  for (const auto& started : next) started->done.WaitForNotification();
  TF_CHECK_OK(gpu_->Sync());
  EXPECT_EQ(seen, 2);
  for (const auto& started : next) {
    EXPECT_EQ(OnHost(started->record[0]).flat<int64_t>()(50), 3);
  }
}

// The allocator may give a new block memory that a queued kernel still reads.
TEST_F(PackedCopyTest, ACopyIntoANewBlockWaitsForQueuedKernels) {
  const PackedCopy copy({0});
  int64_t seen = 0;
  const int64_t waits = gpu_->counts().copy_waits;
  std::unique_ptr<Started> started;
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
    started = Start(copy, {Filled(100, 3)});
    EXPECT_EQ(gpu_->counts().copy_waits - waits, 1);
  }
  started->done.WaitForNotification();
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(OnHost(started->record[0]).flat<int64_t>()(50), 3);
}

TEST_F(PackedCopyTest, ManyRecordsOfManySizesUseLittleMemory) {
  const PackedCopy copy({0});
  const auto in_use = [this] {
    return gpu_->GetAllocator({})->GetStats()->bytes_in_use;
  };
  const int64_t before = in_use();
  for (int i = 0; i < 2000; ++i) {
    const int64_t size = 1 + (7919 * i) % 10000;
    const Record there = Run(copy, {Filled(size, i)});
    ASSERT_EQ(OnHost(there[0]).flat<int64_t>()(size - 1), i);
  }
  // Two blocks may exist at a time: the one in use, and one on its way back.
  EXPECT_LT(in_use() - before, 16 * 8 * 10000);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
