// SPDX-License-Identifier: Apache-2.0
//
// Asks a machine, without TensorFlow, what a stage on a GPU can gain there: whether several threads launch kernels at the
// same time, whether kernels that fill a small part of the GPU overlap, how fast copies of each size are, and which of
// the driver's calls wait for kernels that are queued. Prints a table in Markdown, each row when it is known.
//
// It loads the driver by name and brings its kernels as PTX, so building it needs no CUDA.

#include <dlfcn.h>

#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

// The part of the driver's interface that is used; the names are the driver's.
using Status = int;
using Address = uint64_t;
using Handle = void*;

constexpr unsigned kNonBlocking = 1;

struct Driver {
  Status (*cuInit)(unsigned);
  Status (*cuDeviceGet)(int*, int);
  Status (*cuDevicePrimaryCtxRetain)(Handle*, int);
  Status (*cuCtxSetCurrent)(Handle);
  Status (*cuModuleLoadData)(Handle*, const void*);
  Status (*cuModuleGetFunction)(Handle*, Handle, const char*);
  Status (*cuStreamCreate)(Handle*, unsigned);
  Status (*cuStreamSynchronize)(Handle);
  Status (*cuMemAlloc_v2)(Address*, size_t);
  Status (*cuMemFree_v2)(Address);
  Status (*cuMemHostAlloc)(void**, size_t, unsigned);
  Status (*cuMemFreeHost)(void*);
  Status (*cuMemcpyHtoDAsync_v2)(Address, const void*, size_t, Handle);
  Status (*cuLaunchKernel)(Handle, unsigned, unsigned, unsigned, unsigned,
                           unsigned, unsigned, unsigned, Handle, void**,
                           void**);
};

constexpr char kKernels[] = R"(
.version 7.0
.target sm_70
.address_size 64

// Runs for a time in proportion to `count`.
.visible .entry spin(.param .u64 pointer, .param .u64 count)
{
  .reg .pred %more;
  .reg .f32 %value;
  .reg .u32 %thread;
  .reg .u64 %address, %left, %offset;
  ld.param.u64 %address, [pointer];
  ld.param.u64 %left, [count];
  cvta.to.global.u64 %address, %address;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %offset, %thread, 4;
  add.u64 %address, %address, %offset;
  ld.global.f32 %value, [%address];
again:
  fma.rn.f32 %value, %value, 0f3F7FFFFE, 0f33D6BF95;
  sub.u64 %left, %left, 1;
  setp.ne.u64 %more, %left, 0;
  @%more bra again;
  st.global.f32 [%address], %value;
  ret;
}
)";

constexpr int kStreams = 4;
constexpr int kBlocksOfASmallKernel = 4;
constexpr int kThreadsOfABlock = 64;
constexpr size_t kLargeCopy = 64 << 20;
constexpr double kLongKernelSeconds = 0.25;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "error: %s\n", what.c_str());
  std::exit(1);
}

void Check(Status status, const char* what) {
  if (status != 0)
    Fail(std::string(what) + " returned " + std::to_string(status));
}

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double SecondsOf(const std::function<void()>& work) {
  const double began = Now();
  work();
  return Now() - began;
}

void Row(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::printf("\n");
  std::fflush(stdout);
}

template <typename Function>
void Find(Handle library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr)
    Fail(std::string("the driver has no function ") + name);
}

Driver LoadDriver() {
  Handle library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) Fail(dlerror());
  Driver driver;
#define FIND(name) Find(library, #name, &driver.name)
  FIND(cuInit);
  FIND(cuDeviceGet);
  FIND(cuDevicePrimaryCtxRetain);
  FIND(cuCtxSetCurrent);
  FIND(cuModuleLoadData);
  FIND(cuModuleGetFunction);
  FIND(cuStreamCreate);
  FIND(cuStreamSynchronize);
  FIND(cuMemAlloc_v2);
  FIND(cuMemFree_v2);
  FIND(cuMemHostAlloc);
  FIND(cuMemFreeHost);
  FIND(cuMemcpyHtoDAsync_v2);
  FIND(cuLaunchKernel);
#undef FIND
  return driver;
}

class Gpu {
 public:
  Gpu() : driver_(LoadDriver()) {
    int device;
    Check(driver_.cuInit(0), "cuInit");
    Check(driver_.cuDeviceGet(&device, 0), "cuDeviceGet");
    Check(driver_.cuDevicePrimaryCtxRetain(&context_, device),
          "cuDevicePrimaryCtxRetain");
    Enter();
    Handle module;
    Check(driver_.cuModuleLoadData(&module, kKernels), "cuModuleLoadData");
    Check(driver_.cuModuleGetFunction(&spin_, module, "spin"),
          "cuModuleGetFunction");
    for (int i = 0; i < kStreams; ++i) {
      Check(driver_.cuStreamCreate(&streams_[i], kNonBlocking),
            "cuStreamCreate");
      memory_[i] = Allocate(4096);
    }
    Launch(0, 1);
    Wait(0);
    // How long the loop takes here, from the second of two runs.
    constexpr uint64_t kTrial = 1000000;
    for (int trial = 0; trial < 2; ++trial) {
      per_second_ = kTrial / SecondsOf([&] {
                      Launch(0, kTrial);
                      Wait(0);
                    });
    }
  }

  // Makes this GPU the one of the calling thread.
  void Enter() { Check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

  uint64_t CountFor(double seconds) const {
    return static_cast<uint64_t>(seconds * per_second_) + 1;
  }

  void Launch(int stream, uint64_t count) {
    void* arguments[] = {&memory_[stream], &count};
    Check(driver_.cuLaunchKernel(spin_, kBlocksOfASmallKernel, 1, 1,
                                 kThreadsOfABlock, 1, 1, 0, streams_[stream],
                                 arguments, nullptr),
          "cuLaunchKernel");
  }

  void Copy(int stream, Address to, const void* from, size_t bytes) {
    Check(driver_.cuMemcpyHtoDAsync_v2(to, from, bytes, streams_[stream]),
          "cuMemcpyHtoDAsync");
  }

  void Wait(int stream) {
    Check(driver_.cuStreamSynchronize(streams_[stream]), "cuStreamSynchronize");
  }

  Address Allocate(size_t bytes) {
    Address result;
    Check(driver_.cuMemAlloc_v2(&result, bytes), "cuMemAlloc");
    return result;
  }
  void Free(Address address) {
    Check(driver_.cuMemFree_v2(address), "cuMemFree");
  }

  char* AllocatePinned(size_t bytes) {
    void* result;
    Check(driver_.cuMemHostAlloc(&result, bytes, 0), "cuMemHostAlloc");
    return static_cast<char*>(result);
  }
  void FreePinned(void* memory) {
    Check(driver_.cuMemFreeHost(memory), "cuMemFreeHost");
  }

 private:
  const Driver driver_;
  Handle context_;
  Handle spin_;
  Handle streams_[kStreams];
  Address memory_[kStreams];
  double per_second_;
};

// Returns how long `threads` threads need, of which each uses the stream with its number.
double SecondsOfThreads(Gpu& gpu, int threads,
                        const std::function<void(int)>& work) {
  return SecondsOf([&] {
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&gpu, &work, i] {
        gpu.Enter();
        work(i);
        gpu.Wait(i);
      });
    }
    for (std::thread& thread : running) thread.join();
  });
}

void MeasureLaunches(Gpu& gpu) {
  constexpr int kLaunches = 20000;
  for (int threads = 1; threads <= kStreams; threads *= 2) {
    const double seconds = SecondsOfThreads(gpu, threads, [&](int stream) {
      for (int i = 0; i < kLaunches; ++i) gpu.Launch(stream, 1);
    });
    Row("| %d threads that launch short kernels, each on its stream | %.2f us a launch of each, %.0f launches/ms in all |",
        threads, seconds / kLaunches * 1e6,
        threads * kLaunches / seconds / 1e3);
  }
}

void MeasureSmallKernels(Gpu& gpu) {
  constexpr int kKernels = 50;
  const uint64_t count = gpu.CountFor(0.001);
  for (int threads = 1; threads <= kStreams; threads *= 2) {
    const double seconds = SecondsOfThreads(gpu, threads, [&](int stream) {
      for (int i = 0; i < kKernels; ++i) gpu.Launch(stream, count);
    });
    Row("| %d streams, each with %d kernels of 1 ms and %d blocks | %.1f ms |",
        threads, kKernels, kBlocksOfASmallKernel, seconds * 1e3);
  }
}

void MeasureCopies(Gpu& gpu) {
  std::vector<char> pageable(kLargeCopy, 1);
  char* pinned;
  const double allocation =
      SecondsOf([&] { pinned = gpu.AllocatePinned(kLargeCopy); });
  Row("| allocation of 64 MiB of pinned memory | %.1f ms |", allocation * 1e3);
  std::memset(pinned, 1, kLargeCopy);
  const Address target = gpu.Allocate(kLargeCopy);
  for (size_t bytes :
       {4096, 16384, 65536, 262144, 400000, 1048576, 4194304, 67108864}) {
    const int copies = bytes > 1000000 ? 10 : 500;
    const size_t places = kLargeCopy / bytes;
    const auto time = [&](const std::function<void(size_t)>& copy) {
      return SecondsOf([&] {
               for (int i = 0; i < copies; ++i) copy(i % places * bytes);
               gpu.Wait(1);
             }) /
             copies * 1e6;
    };
    const double direct =
        time([&](size_t at) { gpu.Copy(1, target + at, pinned + at, bytes); });
    const double waiting = time([&](size_t at) {
      gpu.Copy(1, target + at, pinned + at, bytes);
      gpu.Wait(1);
    });
    const double unpinned = time([&](size_t at) {
      gpu.Copy(1, target + at, pageable.data() + at, bytes);
    });
    const double packing = time([&](size_t at) {
      std::memcpy(pinned + at, pageable.data() + at, bytes);
    });
    Row("| copies of %zu bytes to the GPU | %.1f us each from pinned memory, %.1f us if each is waited for, %.1f us from"
        " other memory; memcpy of one thread %.1f us |",
        bytes, direct, waiting, unpinned, packing);
  }
  // A copy beside a kernel.
  const auto copy = [&] {
    gpu.Copy(1, target, pinned, kLargeCopy);
    gpu.Wait(1);
  };
  const double alone = SecondsOf(copy);
  gpu.Launch(0, gpu.CountFor(kLongKernelSeconds));
  const double beside = SecondsOf(copy);
  gpu.Wait(0);
  Row("| copy of 64 MiB from pinned memory | %.1f ms alone, %.1f ms beside a kernel of %.0f ms |",
      alone * 1e3, beside * 1e3, kLongKernelSeconds * 1e3);
  gpu.Free(target);
  gpu.FreePinned(pinned);
}

// Which calls wait for a kernel that runs.
void MeasureCallsBesideAKernel(Gpu& gpu) {
  const auto measure = [&](const char* name,
                           const std::function<void()>& call) {
    const double idle = SecondsOf(call);
    gpu.Launch(0, gpu.CountFor(kLongKernelSeconds));
    const double busy = SecondsOf(call);
    gpu.Wait(0);
    Row("| %s | %.2f ms beside an idle GPU, %.2f ms beside a kernel of %.0f ms |",
        name, idle * 1e3, busy * 1e3, kLongKernelSeconds * 1e3);
  };
  std::vector<Address> blocks;
  for (size_t bytes : {size_t{4096}, size_t{2} << 20, kLargeCopy}) {
    measure(("cuMemAlloc of " + std::to_string(bytes) + " bytes").c_str(),
            [&] { blocks.push_back(gpu.Allocate(bytes)); });
  }
  measure("cuMemFree", [&] {
    gpu.Free(blocks.back());
    blocks.pop_back();
  });
  std::vector<void*> pinned;
  measure("cuMemHostAlloc of 2 MiB",
          [&] { pinned.push_back(gpu.AllocatePinned(2 << 20)); });
  measure("cuMemFreeHost", [&] {
    gpu.FreePinned(pinned.back());
    pinned.pop_back();
  });
}

void Run() {
  Gpu gpu;
  Row("| measured without TensorFlow | result |\n|---|---|");
  MeasureLaunches(gpu);
  MeasureSmallKernels(gpu);
  MeasureCopies(gpu);
  MeasureCallsBesideAKernel(gpu);
}

}  // namespace

int main() {
  Run();
  return 0;
}
