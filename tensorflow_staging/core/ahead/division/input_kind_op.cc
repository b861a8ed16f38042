// SPDX-License-Identifier: Apache-2.0
//
// The op that says what a handle stands for. Only its kernel sees the resource.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/lookup_interface.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/kernels/initializable_lookup_table.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace staging {
namespace {

REGISTER_OP("StepInputKind")
    .Input("resource: resource")
    .Output("kind: string")
    .SetIsStateful()
    .SetShapeFn(shape_inference::ScalarShape)
    .Doc(R"doc(
Says what a handle stands for.

resource: Scalar. The handle.
kind: Scalar. "table" for a table that nothing changes any more, "variable", or
  "other".
)doc");

// Returns the resource of a handle, or null.
core::RefCountPtr<ResourceBase> ResourceOf(const ResourceHandle& handle,
                                           ResourceMgr* manager) {
  if (handle.IsRefCounting()) {
    return tsl::core::GetNewRef(handle.resource().get());
  }
  ResourceBase* found = nullptr;
  if (!manager->Lookup(handle, &found).ok()) found = nullptr;
  return core::RefCountPtr<ResourceBase>(found);
}

class StepInputKindOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    const Tensor& handle = ctx->input(0);
    OP_REQUIRES(ctx, handle.NumElements() == 1,
                errors::InvalidArgument("resource must be a scalar, got shape ",
                                        handle.shape().DebugString(), "."));
    const core::RefCountPtr<ResourceBase> resource =
        ResourceOf(handle.flat<ResourceHandle>()(0), ctx->resource_manager());
    Tensor* kind = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &kind));
    kind->scalar<tstring>()() = KindOf(resource.get());
  }

 private:
  static const char* KindOf(const ResourceBase* resource) {
    const auto* table =
        dynamic_cast<const lookup::InitializableLookupTable*>(resource);
    // Whoever initialises it later changes it.
    if (table != nullptr && table->is_initialized()) return "table";
    return dynamic_cast<const Var*>(resource) != nullptr ? "variable" : "other";
  }
};

REGISTER_KERNEL_BUILDER(Name("StepInputKind").Device(DEVICE_CPU),
                        StepInputKindOp);
REGISTER_KERNEL_BUILDER(Name("StepInputKind")
                            .Device(DEVICE_GPU)
                            .HostMemory("resource")
                            .HostMemory("kind"),
                        StepInputKindOp);

}  // namespace
}  // namespace staging
}  // namespace tensorflow
