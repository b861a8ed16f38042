// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/runtime/kept_devices.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/threadpool_interface.h"

namespace tensorflow {
namespace staging {
namespace {

class CallersThread : public thread::ThreadPoolInterface {
 public:
  void Schedule(std::function<void()> closure) override { closure(); }
  int NumThreads() const override { return 1; }
  int CurrentThreadId() const override { return -1; }
};

struct Partition {
  std::unique_ptr<Graph> graph;
};

Partition WithIterator(const std::string& shared_name) {
  Partition partition{std::make_unique<Graph>(OpRegistry::Global())};
  Node* node = nullptr;
  EXPECT_EQ(NodeBuilder("iterator", "IteratorV2")
                .Attr("shared_name", shared_name)
                .Attr("container", "")
                .Attr("output_types", DataTypeVector{DT_INT64})
                .Attr("output_shapes", std::vector<PartialTensorShape>{{}})
                .Finalize(partition.graph.get(), &node),
            OkStatus());
  return partition;
}

TEST(KeptDevicesTest, AnIteratorWithASharedNameKeepsTheDevice) {
  EXPECT_TRUE(KeepsDevice(*WithIterator("shared").graph));
  EXPECT_FALSE(KeepsDevice(*WithIterator("").graph));
  EXPECT_FALSE(KeepsDevice(Graph(OpRegistry::Global())));
}

TEST(KeptDevicesTest, ARunThatKeepsItsDeviceHasNoIntraOpPool) {
  CallersThread pool;
  thread::ThreadPoolOptions options;
  const auto of_run = [&options](const std::string& shared_name,
                                 bool is_known) {
    std::vector<Partition> partitions;
    partitions.push_back(WithIterator(""));
    partitions.push_back(WithIterator(shared_name));
    if (!is_known) partitions[0].graph.reset();
    return IntraOpPoolOfRun(options, partitions);
  };
  EXPECT_EQ(of_run("", true), nullptr);
  options.intra_op_threadpool = &pool;
  EXPECT_EQ(of_run("", true), options.intra_op_threadpool);
  EXPECT_EQ(of_run("shared", true), nullptr);
  EXPECT_EQ(of_run("", false), nullptr);
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
