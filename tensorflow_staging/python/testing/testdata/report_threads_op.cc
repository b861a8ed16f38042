// SPDX-License-Identifier: Apache-2.0
//
// An op that reports two threads: the inter-op thread that runs its kernel, and
// one of the intra-op threads, which share the work of a kernel.

#define EIGEN_USE_THREADS

#include <pthread.h>
#include <sched.h>

#include <string>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/notification.h"
#include "third_party/eigen3/unsupported/Eigen/CXX11/Tensor"

namespace {

using tensorflow::Env;
using tensorflow::Notification;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;

// Each output has two elements: the first describes the inter-op thread, the
// second the intra-op thread.
REGISTER_OP("ReportThreads")
    .Output("names: string")
    .Output("kernel_names: string")
    .Output("cores: int32")
    .SetIsStateful()
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      for (int i = 0; i < 3; ++i) c->set_output(i, c->Vector(2));
      return tensorflow::OkStatus();
    });

class ReportThreadsOp : public OpKernel {
 public:
  explicit ReportThreadsOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    Tensor* names = nullptr;
    Tensor* kernel_names = nullptr;
    Tensor* cores = nullptr;
    const TensorShape shape({2});
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &names));
    OP_REQUIRES_OK(context, context->allocate_output(1, shape, &kernel_names));
    OP_REQUIRES_OK(context, context->allocate_output(2, shape, &cores));
    const auto report = [&](int i) {
      std::string name;
      Env::Default()->GetCurrentThreadName(&name);
      names->vec<tstring>()(i) = name;
      char kernel_name[16] = "";
      pthread_getname_np(pthread_self(), kernel_name, sizeof(kernel_name));
      kernel_names->vec<tstring>()(i) = kernel_name;
      cores->vec<int>()(i) = sched_getcpu();
    };
    report(0);
    Notification reported;
    context->eigen_device<Eigen::ThreadPoolDevice>().enqueueNoNotification([&] {
      report(1);
      reported.Notify();
    });
    reported.WaitForNotification();
  }

  // Keeps the executor from running the op on the thread that made it ready.
  bool IsExpensive() override { return true; }
};

REGISTER_KERNEL_BUILDER(Name("ReportThreads").Device(tensorflow::DEVICE_CPU),
                        ReportThreadsOp);

}  // namespace
