// SPDX-License-Identifier: Apache-2.0
//
// GPUs for tests of Python programs on machines that have none: a device plug-in
// for `load_pluggable_device_library`. They have memory and copies, and no kernels
// but TensorFlow's own for all devices and those that add: to a variable, and what
// the devices of a strategy have. All other ops of a program are on the CPU, and
// what they exchange with variables and iterators on these devices is copied.
//
// What is in the memory of a device has all bits inverted, so that a value read
// in the wrong memory is wrong. Copies are over when they return. Strings cannot
// be copied, as for any GPU.
//
// FAKE_GPUS says how many there are; 2 by default.

#include <cstdlib>
#include <cstring>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"

struct SP_Stream_st {};
struct SP_Event_st {};
struct SP_Timer_st {};

namespace tensorflow {
namespace {

using Bool = TF_Bool;  // A macro.

void Invert(void* to, const void* from, uint64_t size) {
  auto* const target = static_cast<unsigned char*>(to);
  const auto* const source = static_cast<const unsigned char*>(from);
  for (uint64_t i = 0; i < size; ++i) target[i] = ~source[i];
}

// Aligned, as kernels that share memory with a device expect it.
void* Allocate(uint64_t size) {
  return aligned_alloc(64, (size + 63) / 64 * 64);
}

void* AllocateHost(const SP_Device*, uint64_t size) { return Allocate(size); }

void FreeHost(const SP_Device*, void* memory) { free(memory); }

void FillExecutor(SP_StreamExecutor* executor) {
  using Device = const SP_Device*;
  executor->allocate = [](Device, uint64_t size, int64_t,
                          SP_DeviceMemoryBase* memory) {
    memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
    memory->opaque = Allocate(size);
    memory->size = size;
  };
  executor->deallocate = [](Device, SP_DeviceMemoryBase* memory) {
    free(memory->opaque);
    memory->opaque = nullptr;
    memory->size = 0;
  };
  executor->host_memory_allocate = AllocateHost;
  executor->host_memory_deallocate = FreeHost;
  executor->unified_memory_allocate = AllocateHost;
  executor->unified_memory_deallocate = FreeHost;
  executor->get_allocator_stats = [](Device, SP_AllocatorStats*) {
    return Bool{0};
  };
  executor->device_memory_usage = [](Device, int64_t* free, int64_t* total) {
    *free = *total = int64_t{1} << 30;
    return Bool{1};
  };
  executor->create_stream = [](Device, SP_Stream* stream, TF_Status*) {
    *stream = new SP_Stream_st;
  };
  executor->destroy_stream = [](Device, SP_Stream stream) { delete stream; };
  executor->create_stream_dependency = [](Device, SP_Stream, SP_Stream,
                                          TF_Status*) {};
  executor->get_stream_status = [](Device, SP_Stream, TF_Status*) {};
  executor->create_event = [](Device, SP_Event* event, TF_Status*) {
    *event = new SP_Event_st;
  };
  executor->destroy_event = [](Device, SP_Event event) { delete event; };
  executor->get_event_status = [](Device, SP_Event) {
    return SE_EVENT_COMPLETE;
  };
  executor->record_event = [](Device, SP_Stream, SP_Event, TF_Status*) {};
  executor->wait_for_event = [](Device, SP_Stream, SP_Event, TF_Status*) {};
  executor->create_timer = [](Device, SP_Timer* timer, TF_Status*) {
    *timer = new SP_Timer_st;
  };
  executor->destroy_timer = [](Device, SP_Timer timer) { delete timer; };
  executor->start_timer = [](Device, SP_Stream, SP_Timer, TF_Status*) {};
  executor->stop_timer = [](Device, SP_Stream, SP_Timer, TF_Status*) {};
  executor->memcpy_dtoh = [](Device, SP_Stream, void* to,
                             const SP_DeviceMemoryBase* from, uint64_t size,
                             TF_Status*) { Invert(to, from->opaque, size); };
  executor->memcpy_htod = [](Device, SP_Stream, SP_DeviceMemoryBase* to,
                             const void* from, uint64_t size,
                             TF_Status*) { Invert(to->opaque, from, size); };
  executor->memcpy_dtod = [](Device, SP_Stream, SP_DeviceMemoryBase* to,
                             const SP_DeviceMemoryBase* from, uint64_t size,
                             TF_Status*) {
    memmove(to->opaque, from->opaque, size);
  };
  executor->sync_memcpy_dtoh =
      [](Device, void* to, const SP_DeviceMemoryBase* from, uint64_t size,
         TF_Status*) { Invert(to, from->opaque, size); };
  executor->sync_memcpy_htod = [](Device, SP_DeviceMemoryBase* to,
                                  const void* from, uint64_t size, TF_Status*) {
    Invert(to->opaque, from, size);
  };
  executor->sync_memcpy_dtod = [](Device, SP_DeviceMemoryBase* to,
                                  const SP_DeviceMemoryBase* from,
                                  uint64_t size, TF_Status*) {
    memmove(to->opaque, from->opaque, size);
  };
  executor->block_host_for_event = [](Device, SP_Event, TF_Status*) {};
  executor->block_host_until_done = [](Device, SP_Stream, TF_Status*) {};
  executor->synchronize_all_activity = [](Device, TF_Status*) {};
  executor->mem_zero = [](Device, SP_Stream, SP_DeviceMemoryBase* memory,
                          uint64_t size,
                          TF_Status*) { memset(memory->opaque, 0xff, size); };
  executor->memset = [](Device, SP_Stream, SP_DeviceMemoryBase* memory,
                        uint8_t pattern, uint64_t size, TF_Status*) {
    memset(memory->opaque, static_cast<uint8_t>(~pattern), size);
  };
  executor->memset32 = [](Device, SP_Stream, SP_DeviceMemoryBase* memory,
                          uint32_t pattern, uint64_t size, TF_Status*) {
    for (uint64_t i = 0; i + sizeof(pattern) <= size; i += sizeof(pattern)) {
      Invert(static_cast<char*>(memory->opaque) + i, &pattern, sizeof(pattern));
    }
  };
  executor->host_callback = [](Device, SP_Stream, SE_StatusCallbackFn callback,
                               void* argument) {
    TF_Status* const status = TF_NewStatus();
    callback(argument, status);
    const bool ok = TF_GetCode(status) == TF_OK;
    TF_DeleteStatus(status);
    return Bool{ok};
  };
}

void FillPlatform(SP_PlatformFns* functions) {
  using Platform = const SP_Platform*;
  functions->get_device_count = [](Platform, int* count, TF_Status*) {
    const char* const wanted = getenv("FAKE_GPUS");
    *count = wanted == nullptr ? 2 : atoi(wanted);
  };
  functions->create_device = [](Platform, SE_CreateDeviceParams* params,
                                TF_Status*) {
    params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
    params->device->ordinal = params->ordinal;
    params->device->hardware_name = "fake";
    params->device->device_vendor = "none";
    params->device->pci_bus_id = "";
  };
  functions->destroy_device = [](Platform, SP_Device*) {};
  functions->create_device_fns = [](Platform, SE_CreateDeviceFnsParams* params,
                                    TF_Status*) {
    params->device_fns->get_numa_node = [](const SP_Device*) { return 0; };
    params->device_fns->get_memory_bandwidth = [](const SP_Device*) {
      return int64_t{0};
    };
    params->device_fns->get_gflops = [](const SP_Device*) { return 0.0; };
  };
  functions->destroy_device_fns = [](Platform, SP_DeviceFns*) {};
  functions->create_stream_executor =
      [](Platform, SE_CreateStreamExecutorParams* params, TF_Status*) {
        FillExecutor(params->stream_executor);
      };
  functions->destroy_stream_executor = [](Platform, SP_StreamExecutor*) {};
  functions->create_timer_fns = [](Platform, SP_TimerFns* timer, TF_Status*) {
    timer->nanoseconds = [](SP_Timer) { return uint64_t{0}; };
  };
  functions->destroy_timer_fns = [](Platform, SP_TimerFns*) {};
}

// Writes `a + sign * b`, all in the memory of a device.
template <typename T>
void Add(const Tensor& a, const Tensor& b, int sign, Tensor* sum) {
  const T* const first = static_cast<const T*>(a.data());
  const T* const second = static_cast<const T*>(b.data());
  T* const to = static_cast<T*>(sum->data());
  for (int64_t i = 0; i < sum->NumElements(); ++i) {
    T number, added;
    Invert(&number, &first[i], sizeof(T));
    Invert(&added, &second[i], sizeof(T));
    number += sign * added;
    Invert(&to[i], &number, sizeof(T));
  }
}

Status CheckAlike(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype() && a.shape() == b.shape()) return OkStatus();
  return errors::InvalidArgument("A ", b.DebugString(), " for a ",
                                 a.DebugString(), ".");
}

// Adds `sign` times the value to the variable.
template <typename T, int sign>
class AddToVariable : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    core::RefCountPtr<Var> variable;
    OP_REQUIRES_OK(ctx,
                   LookupResource(ctx, HandleFromInput(ctx, 0), &variable));
    const mutex_lock lock(*variable->mu());
    const Tensor old = *variable->tensor();
    OP_REQUIRES_OK(ctx, CheckAlike(old, ctx->input(1)));
    Tensor sum;
    OP_REQUIRES_OK(ctx, ctx->allocate_temp(old.dtype(), old.shape(), &sum));
    Add<T>(old, ctx->input(1), sign, &sum);
    *variable->tensor() = sum;
  }
};

// With it a collective op merges what the devices have.
template <typename T>
class Merge : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    const Tensor &a = ctx->input(0), &b = ctx->input(1);
    OP_REQUIRES_OK(ctx, CheckAlike(a, b));
    Tensor* sum = nullptr;
    // The op expects the sum where the first input is.
    OP_REQUIRES_OK(
        ctx, ctx->forward_input_or_allocate_output({0}, 0, a.shape(), &sum));
    Add<T>(a, b, 1, sum);
  }
};

#define REGISTER_ADD(type)                                                     \
  REGISTER_KERNEL_BUILDER(Name("AssignAddVariableOp")                          \
                              .Device("GPU")                                   \
                              .HostMemory("resource")                          \
                              .TypeConstraint<type>("dtype"),                  \
                          AddToVariable<type, 1>);                             \
  REGISTER_KERNEL_BUILDER(Name("AssignSubVariableOp")                          \
                              .Device("GPU")                                   \
                              .HostMemory("resource")                          \
                              .TypeConstraint<type>("dtype"),                  \
                          AddToVariable<type, -1>);                            \
  REGISTER_KERNEL_BUILDER(Name("Add").Device("GPU").TypeConstraint<type>("T"), \
                          Merge<type>)

REGISTER_ADD(float);
REGISTER_ADD(int64_t);

#undef REGISTER_ADD

}  // namespace
}  // namespace tensorflow

// The C API calls these two.
extern "C" void TF_InitKernel() {}

extern "C" void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                              TF_Status*) {
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = "FAKE";
  params->platform->type = "GPU";
  params->platform->supports_unified_memory = 0;
  params->platform->use_bfc_allocator = 1;
  params->platform->force_memory_growth = 1;
  tensorflow::FillPlatform(params->platform_fns);
  params->destroy_platform = [](SP_Platform*) {};
  params->destroy_platform_fns = [](SP_PlatformFns*) {};
}
