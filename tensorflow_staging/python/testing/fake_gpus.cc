// SPDX-License-Identifier: Apache-2.0
//
// GPUs for tests of Python programs on machines that have none: a device plug-in
// for `load_pluggable_device_library`. They have memory and copies, and no kernels
// but TensorFlow's own for all devices and those that add to a variable. All other
// ops of a program are on the CPU, and what they exchange with variables and
// iterators on these devices is copied.
//
// What is in the memory of a device has all bits inverted, so that a value read
// in the wrong memory is wrong. Copies are over when they return. Strings cannot
// be copied, as for any GPU.
//
// FAKE_GPUS says how many there are; 2 by default.

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/kernels_experimental.h"

struct SP_Stream_st {};
struct SP_Event_st {};
struct SP_Timer_st {};

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
    *free = *total = int64_t{1} << 28;
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

template <typename T>
void AddTo(TF_Tensor* variable, TF_Tensor* value, int sign) {
  auto* const to = static_cast<T*>(TF_TensorData(variable));
  auto* const from = static_cast<T*>(TF_TensorData(value));
  for (int64_t i = 0; i < TF_TensorElementCount(variable); ++i) {
    T sum, added;
    Invert(&sum, &to[i], sizeof(T));
    Invert(&added, &from[i], sizeof(T));
    sum += sign * added;
    Invert(&to[i], &sum, sizeof(T));
  }
}

// Adds `sign` times the value to the variable.
template <int sign>
void Assign(void*, TF_OpKernelContext* ctx) {
  TF_Status* const status = TF_NewStatus();
  TF_AssignUpdateVariable(
      ctx, /*input_index=*/0, /*value_index=*/1, sign, /*isVariantType=*/0,
      [](TF_OpKernelContext*, TF_Tensor* from, TF_Tensor* to) {
        memcpy(TF_TensorData(to), TF_TensorData(from), TF_TensorByteSize(to));
        TF_DeleteTensor(from);
        TF_DeleteTensor(to);
      },
      [](TF_OpKernelContext*, TF_Tensor* variable, TF_Tensor* value, int op) {
        if (TF_TensorType(variable) == TF_FLOAT) {
          AddTo<float>(variable, value, op);
        } else {
          AddTo<int64_t>(variable, value, op);
        }
        TF_DeleteTensor(variable);
        TF_DeleteTensor(value);
      },
      status);
  if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(ctx, status);
  TF_DeleteStatus(status);
}

template <int sign>
void RegisterAssign(const char* op) {
  for (const TF_DataType type : {TF_FLOAT, TF_INT64}) {
    TF_Status* const status = TF_NewStatus();
    TF_KernelBuilder* const builder = TF_NewKernelBuilder(
        op, "GPU", /*create_func=*/nullptr, &Assign<sign>, nullptr);
    TF_KernelBuilder_HostMemory(builder, "resource");
    TF_KernelBuilder_TypeConstraint(builder, "dtype", type, status);
    TF_RegisterKernelBuilder(op, builder, status);
    if (TF_GetCode(status) != TF_OK) abort();
    TF_DeleteStatus(status);
  }
}

}  // namespace

extern "C" void TF_InitKernel() {
  RegisterAssign<1>("AssignAddVariableOp");
  RegisterAssign<-1>("AssignSubVariableOp");
}

extern "C" void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                              TF_Status*) {
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = "FAKE";
  params->platform->type = "GPU";
  params->platform->supports_unified_memory = 0;
  params->platform->use_bfc_allocator = 1;
  params->platform->force_memory_growth = 1;
  FillPlatform(params->platform_fns);
  params->destroy_platform = [](SP_Platform*) {};
  params->destroy_platform_fns = [](SP_PlatformFns*) {};
}
