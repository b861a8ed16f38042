// SPDX-License-Identifier: Apache-2.0
//
// Checks the guarantees of the stacked relink in a C++ program that loads
// libtensorflow_cc.so.2 as any other program does.

#include <dlfcn.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/public/version.h"
#include "tensorflow/core/util/util.h"
#include "tensorflow/tsl/lib/monitoring/collection_registry.h"

namespace tensorflow {
namespace {

using ::testing::EndsWith;

// Returns the file from which the process takes a symbol.
std::string LibraryOf(const char* mangled_name) {
  void* address = dlsym(RTLD_DEFAULT, mangled_name);
  Dl_info info;
  if (address == nullptr || dladdr(address, &info) == 0) return "nowhere";
  return info.dli_fname;
}

GraphDef ConstantGraph() {
  Tensor seven(DT_INT32, TensorShape({}));
  seven.scalar<int32>()() = 7;
  GraphDef graph;
  TF_CHECK_OK(NodeDefBuilder("c", "Const")
                  .Attr("dtype", DT_INT32)
                  .Attr("value", seven)
                  .Finalize(graph.add_node()));
  return graph;
}

// Returns the value of a counter without labels, or -1 if it is not registered.
int64_t MetricValue(const std::string& name) {
  tsl::monitoring::CollectionRegistry::CollectMetricsOptions options;
  auto metrics =
      tsl::monitoring::CollectionRegistry::Default()->CollectMetrics(options);
  auto found = metrics->point_set_map.find(name);
  if (found == metrics->point_set_map.end()) return -1;
  const auto& points = found->second->points;
  return points.empty() ? 0 : points[0]->int64_value;
}

TEST(RelinkTest, ReplacedClassesComeFromTheOverlay) {
  for (const char* symbol : {"_ZN10tensorflow13DirectSession5CloseEv",
                             "_ZTVN10tensorflow13DirectSessionE",
                             "_ZN10tensorflow11GrpcSession5CloseEv",
                             "_ZTVN10tensorflow11GrpcSessionE",
                             "_ZTVN10tensorflow18GrpcSessionFactoryE",
                             "_ZN10tensorflow4data16IteratorResource7GetNextE"
                             "PNS_15OpKernelContextEPSt6vectorINS_6TensorESaI"
                             "S5_EEPb",
                             "_ZTVN10tensorflow4data16IteratorResourceE",
                             "_ZTVN10tensorflow4data19SerializeIteratorOpE",
                             "_ZN10tensorflow4data11RootDataset8Iterator10"
                             "InitializeEPNS0_15IteratorContextE",
                             "_ZN10tensorflow8GraphMgr10DeregisterERKNSt7__cxx"
                             "1112basic_stringIcSt11char_traitsIcESaIcEEE"}) {
    EXPECT_THAT(LibraryOf(symbol), EndsWith("libtensorflow_cc_staging.so.2"))
        << symbol;
  }
}

// The stock library has registered the kernel; its factory constructs the
// patched class.
TEST(RelinkTest, ARegisteredKernelIsThePatchedOne) {
  const std::unique_ptr<Device> device = DeviceFactory::NewDevice(
      "CPU", SessionOptions(), "/job:localhost/replica:0/task:0");
  NodeDef node;
  TF_ASSERT_OK(NodeDefBuilder("save", "SerializeIterator")
                   .Input("iterator", 0, DT_RESOURCE)
                   .Finalize(&node));
  Status status;
  const std::unique_ptr<OpKernel> kernel =
      CreateOpKernel(DEVICE_CPU, device.get(), cpu_allocator(), node,
                     TF_GRAPH_DEF_VERSION, &status);
  TF_ASSERT_OK(status);
  Dl_info info;
  const void* const vtable = *reinterpret_cast<void**>(kernel.get());
  ASSERT_NE(dladdr(vtable, &info), 0);
  EXPECT_THAT(info.dli_fname, EndsWith("libtensorflow_cc_staging.so.2"));
  EXPECT_NE(kernel->AsAsync(), nullptr);
}

// The pass that replaces ops by oneDNN's.
GraphOptimizationPass* MklLayoutPass() {
  GraphOptimizationPass* found = nullptr;
  for (const auto& [grouping, phases] :
       OptimizationPassRegistry::Global()->groups()) {
    for (const auto& [phase, passes] : phases) {
      for (const auto& pass : passes) {
        if (pass->name() != "MklLayoutRewritePass") continue;
        EXPECT_EQ(found, nullptr) << "registered twice";
        found = pass.get();
      }
    }
  }
  return found;
}

TEST(RelinkTest, ThePatchedPassTakesThePlaceOfTheStockCopy) {
  GraphOptimizationPass* const pass = MklLayoutPass();
  ASSERT_NE(pass, nullptr);
  Dl_info info;
  const void* const vtable = *reinterpret_cast<void**>(pass);
  ASSERT_NE(dladdr(vtable, &info), 0);
  EXPECT_THAT(info.dli_fname, EndsWith("libtensorflow_cc_staging.so.2"));
}

// Returns the microseconds that the pass takes for a graph of many types of
// ops, in a new thread.
uint64_t MicrosecondsOfPassInNewThread(GraphOptimizationPass* pass) {
  uint64_t microseconds = 0;
  std::unique_ptr<Thread>(Env::Default()->StartThread({}, "prepares", [&] {
    GraphOptimizationPassOptions options;
    SessionOptions session_options;
    options.session_options = &session_options;
    std::unordered_map<std::string, std::unique_ptr<Graph>> partitions;
    auto& graph = partitions["/job:localhost/replica:0/task:0/device:CPU:0"];
    graph = std::make_unique<Graph>(OpRegistry::Global());
    Node* input = nullptr;
    TF_CHECK_OK(NodeBuilder("input", "Placeholder")
                    .Attr("dtype", DT_FLOAT)
                    .Finalize(graph.get(), &input));
    for (const char* op : {"Abs", "Cos", "Elu", "Exp", "Floor", "Log", "Neg",
                           "Relu", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin",
                           "Softmax", "Sqrt", "Square", "Tan", "Tanh"}) {
      Node* node = nullptr;
      TF_CHECK_OK(
          NodeBuilder(op, op).Input(input).Finalize(graph.get(), &node));
    }
    FixupSourceAndSinkEdges(graph.get());
    options.partition_graphs = &partitions;
    const uint64_t began = Env::Default()->NowMicros();
    TF_CHECK_OK(pass->Run(options));
    microseconds = Env::Default()->NowMicros() - began;
  })).reset();
  return microseconds;
}

TEST(RelinkTest, OneThreadKnowsTheKernelsThatAnotherHasFound) {
  if (!IsMKLEnabled()) GTEST_SKIP() << "TF_ENABLE_ONEDNN_OPTS is off.";
  const uint64_t first = MicrosecondsOfPassInNewThread(MklLayoutPass());
  EXPECT_LT(MicrosecondsOfPassInNewThread(MklLayoutPass()) * 3, first);
}

TEST(RelinkTest, OtherSymbolsComeFromTheStockLibraries) {
  EXPECT_THAT(LibraryOf("_ZN10tensorflow10NewSessionERKNS_14SessionOptionsE"),
              EndsWith("libtensorflow_framework.so.2"));
  EXPECT_THAT(LibraryOf("TF_NewSession"),
              EndsWith("libtensorflow_cc_base.so.2"));
}

// Both libraries define the symbol. The base precedes the framework in the
// loader's scope, as the stock library does.
TEST(RelinkTest, BasePrecedesTheFramework) {
  EXPECT_THAT(LibraryOf("_ZN3tsl10monitoring18CollectionRegistry7DefaultEv"),
              EndsWith("libtensorflow_cc_base.so.2"));
}

// The patched copy increments its own counter, so the collected counter must
// not be the stock copy's, which has the same name.
TEST(RelinkTest, MetricsOfThePatchedFileAreTheOnesCollected) {
  const std::string runs = "/tensorflow/core/direct_session_runs";
  const int64_t before = MetricValue(runs);
  ASSERT_GE(before, 0);
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  ASSERT_NE(session, nullptr);
  TF_ASSERT_OK(session->Create(ConstantGraph()));
  std::vector<Tensor> outputs;
  for (int i = 0; i < 3; ++i) {
    TF_ASSERT_OK(session->Run({}, {"c:0"}, {}, &outputs));
  }
  EXPECT_EQ(outputs[0].scalar<int32>()(), 7);
  EXPECT_EQ(MetricValue(runs), before + 3);
}

}  // namespace
}  // namespace tensorflow
