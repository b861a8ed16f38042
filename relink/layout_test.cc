// SPDX-License-Identifier: Apache-2.0
//
// The overlay replaces classes whose objects the stock library's code also
// creates and reads. The stock library allocates the objects with the sizes
// that it was compiled with, and its inline functions read members at the
// offsets that it was compiled with. So the overlay's classes must have the
// same layout. Headers of another version, or a missing NDEBUG, would change
// it.
//
// Each test looks up functions of the stock library by the names of their
// symbols, lets them create an object and write a member, and inspects the
// object through the class as it is compiled here (with -fno-access-control).

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/common_runtime/direct_session.h"
#include "tensorflow/core/common_runtime/graph_execution_state.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/common_runtime/session_factory.h"
#include "tensorflow/core/distributed_runtime/graph_mgr.h"
#include "tensorflow/core/distributed_runtime/master_session.h"
#include "tensorflow/core/distributed_runtime/rpc/grpc_session.h"
#include "tensorflow/core/distributed_runtime/server_lib.h"
#include "tensorflow/core/distributed_runtime/worker_env.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/kernels/data/iterator_ops.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/protobuf/cluster.pb.h"
#include "tensorflow/core/protobuf/tensorflow_server.pb.h"
#include "tensorflow/core/public/version.h"

namespace {

// The sizes of the blocks that `new` returned, by address. The table has a
// fixed size, because recording an allocation must not allocate. A block that
// finds no slot within kProbes slots is not recorded; a test fails if that
// happens to a block that it needs.
class Blocks {
 public:
  void Record(void* block, size_t size) {
    const size_t home = Home(block);
    for (size_t i = 0; i < kProbes; ++i) {
      Slot& slot = slots_[(home + i) % kSlots];
      void* expected = nullptr;
      if (slot.block.compare_exchange_strong(expected, block) ||
          expected == block) {
        slot.size = size;
        return;
      }
    }
  }

  void Forget(void* block) {
    if (Slot* slot = Find(block)) slot->size = 0;
  }

  // Returns the size of a live block, or 0 if it is not known.
  size_t SizeOf(const void* block) {
    Slot* slot = Find(block);
    return slot == nullptr ? 0 : slot->size.load();
  }

  // Returns a live block that begins with `word`, or null if there is none.
  void* FindBeginningWith(const void* word) {
    for (Slot& slot : slots_) {
      void* block = slot.block;
      if (block == nullptr || slot.size < sizeof(void*)) continue;
      if (*static_cast<void**>(block) == word) return block;
    }
    return nullptr;
  }

 private:
  struct Slot {
    std::atomic<void*> block;
    std::atomic<size_t> size;
  };
  static constexpr size_t kSlots = size_t{1} << 21;
  static constexpr size_t kProbes = 64;

  static size_t Home(const void* block) {
    return (reinterpret_cast<size_t>(block) >> 4) * 0x9E3779B97F4A7C15 % kSlots;
  }

  Slot* Find(const void* block) {
    const size_t home = Home(block);
    for (size_t i = 0; i < kProbes; ++i) {
      Slot& slot = slots_[(home + i) % kSlots];
      if (slot.block == block) return &slot;
      if (slot.block == nullptr) return nullptr;
    }
    return nullptr;
  }

  std::array<Slot, kSlots> slots_;
};

Blocks blocks;  // Zero-initialized before any code runs.

}  // namespace

void* operator new(size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  blocks.Record(block, size);
  return block;
}

void operator delete(void* block) noexcept {
  blocks.Forget(block);
  std::free(block);
}

void operator delete(void* block, size_t size) noexcept {
  operator delete(block);
}

namespace tensorflow {
namespace {

// Returns the stock library's own function, even if the overlay replaces it.
template <typename Function>
Function* Stock(const char* mangled_name) {
  void* base = dlopen("libtensorflow_cc_base.so.2", RTLD_NOW | RTLD_NOLOAD);
  CHECK(base != nullptr) << dlerror();
  void* address = dlsym(base, mangled_name);
  CHECK(address != nullptr) << mangled_name;
  Dl_info info;
  CHECK(dladdr(address, &info) != 0);
  CHECK(std::string(info.dli_fname).find("cc_base") != std::string::npos)
      << mangled_name << " comes from " << info.dli_fname;
  return reinterpret_cast<Function*>(address);
}

TEST(LayoutTest, DirectSession) {
  // The factory's class is declared in a source file.
  SessionFactory* factory = nullptr;
  TF_ASSERT_OK(SessionFactory::GetFactory(SessionOptions(), &factory));
  Session* made = nullptr;
  auto* stock_new_session =
      Stock<Status(SessionFactory*, const SessionOptions&, Session**)>(
          "_ZN10tensorflow20DirectSessionFactory10NewSessionERKNS_"
          "14SessionOptionsEPPNS_7SessionE");
  TF_ASSERT_OK(stock_new_session(factory, SessionOptions(), &made));
  std::unique_ptr<Session> owner(made);
  auto* session = static_cast<DirectSession*>(made);
  EXPECT_EQ(blocks.SizeOf(session), sizeof(DirectSession));

  auto* stock_local_device_manager =
      Stock<Status(DirectSession*, const DeviceMgr**)>(
          "_ZN10tensorflow13DirectSession18LocalDeviceManagerEPPKNS_"
          "9DeviceMgrE");
  const DeviceMgr* devices = nullptr;
  TF_ASSERT_OK(stock_local_device_manager(session, &devices));
  EXPECT_EQ(devices, session->device_mgr_.get());

  auto* stock_close =
      Stock<Status(DirectSession*)>("_ZN10tensorflow13DirectSession5CloseEv");
  EXPECT_FALSE(session->closed_);
  TF_ASSERT_OK(stock_close(session));
  EXPECT_TRUE(session->closed_);
}

TEST(LayoutTest, GraphExecutionState) {
  auto* stock_make = Stock<Status(GraphDef&&, const GraphExecutionStateOptions&,
                                  std::unique_ptr<GraphExecutionState>*)>(
      "_ZN10tensorflow19GraphExecutionState16MakeForBaseGraphEONS_"
      "8GraphDefERKNS_26GraphExecutionStateOptionsEPSt10unique_ptrIS0_"
      "St14default_deleteIS0_EE");
  DeviceSet devices;
  SessionOptions session_options;
  session_options.config.mutable_graph_options()->set_place_pruned_graph(true);
  GraphExecutionStateOptions options;
  options.device_set = &devices;
  options.session_options = &session_options;
  options.session_handle = "handle";
  GraphDef graph;
  graph.add_node()->set_name("node");
  graph.mutable_node(0)->set_op("NoOp");
  std::unique_ptr<GraphExecutionState> state;
  TF_ASSERT_OK(stock_make(std::move(graph), options, &state));
  EXPECT_EQ(blocks.SizeOf(state.get()), sizeof(GraphExecutionState));
  EXPECT_EQ(state->device_set_, &devices);
  EXPECT_EQ(state->session_options_, &session_options);
  EXPECT_EQ(state->session_handle_, "handle");
  ASSERT_NE(state->original_graph_def_, nullptr);
  EXPECT_EQ(state->original_graph_def_->node(0).name(), "node");
}

TEST(LayoutTest, GrpcSessionAndMasterSession) {
  ServerDef definition;
  definition.set_protocol("grpc");
  definition.set_job_name("worker");
  JobDef* job = definition.mutable_cluster()->add_job();
  job->set_name("worker");
  (*job->mutable_tasks())[0] = "localhost:0";
  std::unique_ptr<ServerInterface> owner;
  TF_ASSERT_OK(NewServer(definition, &owner));
  // Never deleted: TensorFlow's servers cannot be stopped.
  ServerInterface* const server = owner.release();
  TF_ASSERT_OK(server->Start());

  auto* stock_create =
      Stock<Status(const SessionOptions&, std::unique_ptr<GrpcSession>*)>(
          "_ZN10tensorflow11GrpcSession6CreateERKNS_14SessionOptionsEPSt10uni"
          "que_ptrIS0_St14default_deleteIS0_EE");
  SessionOptions options;
  options.target = server->target();
  std::unique_ptr<GrpcSession> session;
  TF_ASSERT_OK(stock_create(options, &session));
  EXPECT_EQ(blocks.SizeOf(session.get()), sizeof(GrpcSession));

  // The stock server creates the MasterSession, and the stock library's code
  // reads the handle that the server sends to the client.
  GraphDef graph;
  graph.add_node()->set_name("node");
  graph.mutable_node(0)->set_op("NoOp");
  TF_ASSERT_OK(session->Create(graph));
  void** vtable = static_cast<void**>(dlsym(RTLD_DEFAULT,
                                            "_ZTVN10tensorflow13MasterSessio"
                                            "nE"));
  ASSERT_NE(vtable, nullptr);
  // An object points to the entry after the offset to the top and the type
  // information.
  auto* master =
      static_cast<MasterSession*>(blocks.FindBeginningWith(vtable + 2));
  ASSERT_NE(master, nullptr);
  EXPECT_EQ(blocks.SizeOf(master), sizeof(MasterSession));
  {
    mutex_lock l(session->mu_);
    EXPECT_EQ(session->handle_, master->handle_);
  }
  EXPECT_EQ(master->graph_version_, 0);

  auto* stock_set_handle = Stock<void(GrpcSession*, std::string, int64_t)>(
      "_ZN10tensorflow11GrpcSession24SetHandleAndGraphVersionENSt7__cxx1112bas"
      "ic_stringIcSt11char_traitsIcESaIcEEEl");
  std::string handle;
  {
    mutex_lock l(session->mu_);
    handle = session->handle_;
  }
  stock_set_handle(session.get(), handle, 7);
  {
    mutex_lock l(session->mu_);
    EXPECT_EQ(session->handle_, handle);
    EXPECT_EQ(session->current_graph_version_, 7);
  }
  TF_EXPECT_OK(session->Close());
}

// Servers of the stock library allocate the object.
TEST(LayoutTest, GraphMgr) {
  auto* stock_construct =
      Stock<void(GraphMgr*, const WorkerEnv*, const DeviceMgr*)>(
          "_ZN10tensorflow8GraphMgrC1EPKNS_9WorkerEnvEPKNS_9DeviceMgrE");
  const WorkerEnv worker_env;
  const StaticDeviceMgr devices(std::vector<std::unique_ptr<Device>>{});
  // The last member has to be the last that the stock constructor writes.
  alignas(GraphMgr) std::array<unsigned char, sizeof(GraphMgr) + 64> memory;
  memory.fill(0xee);
  auto* manager = reinterpret_cast<GraphMgr*>(memory.data());
  stock_construct(manager, &worker_env, &devices);
  EXPECT_EQ(manager->worker_env_, &worker_env);
  EXPECT_EQ(manager->device_mgr_, &devices);
  EXPECT_EQ(manager->next_id_, 0);
  EXPECT_TRUE(manager->sync_on_finish_);
  EXPECT_TRUE(manager->table_.empty());
  EXPECT_TRUE(manager->skip_cost_models_);
  for (size_t i = sizeof(GraphMgr); i < memory.size(); ++i) {
    EXPECT_EQ(memory[i], 0xee) << i;
  }
  manager->~GraphMgr();
}

// Kernels of the stock library allocate the object.
TEST(LayoutTest, IteratorResource) {
  const DataTypeVector types = {DT_INT64, DT_STRING};
  const std::vector<PartialTensorShape> shapes(2);
  GraphDef graph;
  TF_ASSERT_OK(NodeDefBuilder("iterator", "IteratorV2")
                   .Attr("shared_name", "iterator")
                   .Attr("container", "")
                   .Attr("output_types", types)
                   .Attr("output_shapes", shapes)
                   .Finalize(graph.add_node()));
  const std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_ASSERT_OK(session->Create(graph));
  TF_ASSERT_OK(session->Run({}, {}, {"iterator"}, nullptr));
  const DeviceMgr* devices = nullptr;
  TF_ASSERT_OK(session->LocalDeviceManager(&devices));
  ResourceMgr* resources = devices->ListDevices()[0]->resource_manager();
  data::IteratorResource* made = nullptr;
  TF_ASSERT_OK(
      resources->Lookup(resources->default_container(), "iterator", &made));
  const core::ScopedUnref unref(made);
  EXPECT_EQ(blocks.SizeOf(made), sizeof(data::IteratorResource));

  FunctionLibraryDefinition functions(OpRegistry::Global(),
                                      FunctionDefLibrary());
  ProcessFunctionLibraryRuntime runtime(
      devices, Env::Default(), /*config=*/nullptr, TF_GRAPH_DEF_VERSION,
      &functions, OptimizerOptions());
  auto* stock_construct = Stock<void(
      data::IteratorResource*, Env*, const DataTypeVector&,
      const std::vector<PartialTensorShape>&, std::unique_ptr<DeviceMgr>,
      std::unique_ptr<FunctionLibraryDefinition>,
      std::unique_ptr<ProcessFunctionLibraryRuntime>, FunctionLibraryRuntime*)>(
      "_ZN10tensorflow4data16IteratorResourceC1EPN3tsl3EnvERKN4absl12lts_202301"
      "2513InlinedVectorINS_8DataTypeELm4ESaIS8_EEERKSt6vectorINS_18PartialTens"
      "orShapeESaISE_EESt10unique_ptrINS_9DeviceMgrESt14default_deleteISK_EESJ_"
      "INS_25FunctionLibraryDefinitionESL_ISO_EESJ_INS_29ProcessFunctionLibrary"
      "RuntimeESL_ISR_EEPNS_22FunctionLibraryRuntimeE");
  alignas(data::IteratorResource)
      std::array<unsigned char, sizeof(data::IteratorResource) + 64>
          memory;
  memory.fill(0xee);
  auto* iterator = reinterpret_cast<data::IteratorResource*>(memory.data());
  stock_construct(iterator, Env::Default(), types, shapes, nullptr, nullptr,
                  nullptr, runtime.GetFLR(devices->ListDevices()[0]->name()));
  EXPECT_EQ(iterator->output_dtypes_, types);
  EXPECT_EQ(iterator->output_shapes_.size(), shapes.size());
  EXPECT_EQ(&iterator->env_, Env::Default());
  ASSERT_NE(iterator->iterator_state_, nullptr);
  EXPECT_EQ(iterator->iterator_state_->iterator(), nullptr);
  for (size_t i = sizeof(data::IteratorResource); i < memory.size(); ++i) {
    EXPECT_EQ(memory[i], 0xee) << i;
  }
  iterator->~IteratorResource();
}

// The stock library's factories allocate kernels.
class KernelLayoutTest : public ::testing::Test {
 protected:
  std::unique_ptr<OpKernel> Create(const NodeDefBuilder& builder) {
    NodeDef node;
    TF_CHECK_OK(NodeDefBuilder(builder).Finalize(&node));
    Status status;
    std::unique_ptr<OpKernel> kernel =
        CreateOpKernel(DEVICE_CPU, device_.get(), cpu_allocator(), node,
                       TF_GRAPH_DEF_VERSION, &status);
    TF_CHECK_OK(status);
    return kernel;
  }

 private:
  const std::unique_ptr<Device> device_ = DeviceFactory::NewDevice(
      "CPU", SessionOptions(), "/job:localhost/replica:0/task:0");
};

// The patch gives it another base class, which has to be as large.
TEST_F(KernelLayoutTest, SerializeIteratorOp) {
  EXPECT_EQ(sizeof(AsyncOpKernel), sizeof(OpKernel));
  NodeDefBuilder node("save", "SerializeIterator");
  const auto kernel = Create(node.Input("iterator", 0, DT_RESOURCE));
  EXPECT_EQ(blocks.SizeOf(kernel.get()), sizeof(data::SerializeIteratorOp));
}

// Kernels of the stock library have it as their base class.
TEST_F(KernelLayoutTest, HybridAsyncOpKernel) {
  NodeDefBuilder node("read", "IteratorGetNext");
  node.Input("iterator", 0, DT_RESOURCE)
      .Attr("output_types", {DT_INT64})
      .Attr("output_shapes", {TensorShape({})});
  const auto kernel = Create(node);
  EXPECT_EQ(blocks.SizeOf(kernel.get()), sizeof(data::IteratorGetNextOp));
}

}  // namespace
}  // namespace tensorflow
