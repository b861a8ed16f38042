// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/smart_stage/whole_graph.h"

#include "tensorflow/core/platform/test.h"
#include "tensorflow_staging/core/protobuf/staging_fields.pb.h"

namespace tensorflow {
namespace staging {
namespace {

GraphDef GraphWith(const char* op) {
  GraphDef graph;
  graph.add_node()->set_op("Const");
  graph.add_node()->set_op(op);
  return graph;
}

SessionOptions PlacingPrunedGraphs() {
  SessionOptions options;
  options.config.mutable_graph_options()->set_place_pruned_graph(true);
  return options;
}

bool PlacesPrunedGraphs(const SessionOptions& options) {
  return options.config.graph_options().place_pruned_graph();
}

TEST(WholeGraphTest, WithoutAStageTheOptionStays) {
  SessionOptions options = PlacingPrunedGraphs();
  PlaceWholeGraphIfStaged(GraphWith("IteratorGetNext"), &options);
  EXPECT_TRUE(PlacesPrunedGraphs(options));
}

TEST(WholeGraphTest, AStageThatIsAddedLaterTurnsTheOptionOff) {
  SessionOptions options = PlacingPrunedGraphs();
  PlaceWholeGraphIfStaged(GraphWith("Const"), &options);
  PlaceWholeGraphIfStaged(GraphWith("TensorBufferTake"), &options);
  EXPECT_FALSE(PlacesPrunedGraphs(options));
}

TEST(WholeGraphTest, SmartStageTurnsTheOptionOff) {
  SessionOptions options = PlacingPrunedGraphs();
  OptimizerFields fields;
  fields.set_do_smart_stage(true);
  ASSERT_TRUE(options.config.mutable_graph_options()
                  ->mutable_optimizer_options()
                  ->MergeFromString(fields.SerializeAsString()));
  PlaceWholeGraphIfStaged(GraphWith("Const"), &options);
  EXPECT_FALSE(PlacesPrunedGraphs(options));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
