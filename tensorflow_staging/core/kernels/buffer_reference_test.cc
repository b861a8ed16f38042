// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/kernels/buffer_reference.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow/core/public/version.h"
#include "tensorflow_staging/core/testing/stage_graph.h"

namespace tensorflow {
namespace staging {
namespace {

// The device outlives the kernels on it, as a server's device does.
class BufferReferenceTest : public ::testing::Test {
 protected:
  BufferReferenceTest()
      : device_(DeviceFactory::NewDevice("CPU", SessionOptions(),
                                         "/job:localhost/replica:0/task:0")) {}

  // A kernel that resumes the buffer.
  std::unique_ptr<OpKernel> MakeKernel() {
    NodeDef node;
    TF_CHECK_OK(StageTestGraph().Op("TensorBufferResume").Finalize(&node));
    Status status;
    auto kernel = CreateOpKernel(DEVICE_CPU, device_.get(),
                                 device_->GetAllocator(AllocatorAttributes()),
                                 node, TF_GRAPH_DEF_VERSION, &status);
    TF_CHECK_OK(status);
    return kernel;
  }

  void Run(OpKernel* kernel) {
    OpKernelContext::Params params;
    params.device = device_.get();
    params.resource_manager = device_->resource_manager();
    params.op_kernel = kernel;
    OpKernelContext ctx(&params, 0);
    kernel->Compute(&ctx);
    TF_CHECK_OK(ctx.status());
  }

  bool BufferExists() {
    TensorBuffer* buffer = nullptr;
    if (!device_->resource_manager()
             ->Lookup(StageTestGraph::kContainer, StageTestGraph().name,
                      &buffer)
             .ok()) {
      return false;
    }
    buffer->Unref();
    return true;
  }

  std::unique_ptr<Device> device_;
};

TEST_F(BufferReferenceTest, TheLastKernelDestroysTheBuffer) {
  auto first = MakeKernel();
  auto second = MakeKernel();
  EXPECT_FALSE(BufferExists());
  Run(first.get());
  Run(second.get());
  EXPECT_TRUE(BufferExists());
  first.reset();
  EXPECT_TRUE(BufferExists());
  second.reset();
  EXPECT_FALSE(BufferExists());
  auto later = MakeKernel();
  Run(later.get());
  EXPECT_TRUE(BufferExists());
}

TEST_F(BufferReferenceTest, TheDeviceMayBeDestroyedFirst) {
  auto kernel = MakeKernel();
  Run(kernel.get());
  device_.reset();
}

TEST_F(BufferReferenceTest, ConcurrentCreationAndDestructionOfKernels) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 500;
  {
    thread::ThreadPool pool(Env::Default(), "kernels", kThreads);
    for (int t = 0; t < kThreads; ++t) {
      pool.Schedule([this] {
        for (int i = 0; i < kRounds; ++i) Run(MakeKernel().get());
      });
    }
  }
  EXPECT_FALSE(BufferExists());
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
