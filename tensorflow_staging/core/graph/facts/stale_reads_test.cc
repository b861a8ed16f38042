// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/stale_reads.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/testing/lookup_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using Part = StaleReads::Part;
using Strings = std::vector<std::string>;

Strings Variables(LookupGraph* graph) {
  return Names(StaleReads(*graph->get()).variables());
}

Part PartOf(const Node* node, LookupGraph* graph) {
  const StaleReads stale(*graph->get());
  const StaleReads::Use* use = stale.Find(*node);
  CHECK(use != nullptr) << node->name();
  return use->part;
}

TEST(StaleReadsTest, AnEmbeddingVariableIsOneThatIsOnlyLookedUp) {
  LookupGraph graph;
  Node* ids = graph.Source("ids");
  Node* handle = graph.Handle("table");
  Node* row = graph.ResourceGather("row", handle, ids);
  Node* update = graph.Update("update", handle, ids, row);
  EXPECT_EQ(Variables(&graph), Strings{"table"});
  EXPECT_EQ(PartOf(handle, &graph), Part::kVariable);
  EXPECT_EQ(PartOf(row, &graph), Part::kLookup);
  EXPECT_EQ(PartOf(update, &graph), Part::kOther);
}

TEST(StaleReadsTest, AVariableWithReferencesIsLookedUpThroughItsRead) {
  LookupGraph graph;
  Node* ids = graph.Source("ids");
  Node* variable = graph.RefVariable("table");
  Node* read = graph.Identity("read", variable);
  Node* row = graph.Gather("row", graph.Identity("again", read), ids);
  Node* direct = graph.Gather("direct", variable, ids);
  EXPECT_EQ(Variables(&graph), Strings{"table"});
  EXPECT_EQ(PartOf(read, &graph), Part::kRead);
  EXPECT_EQ(PartOf(row, &graph), Part::kLookup);
  EXPECT_EQ(PartOf(direct, &graph), Part::kLookup);
}

TEST(StaleReadsTest, AVariableThatIsAlsoReadAsAWholeIsNone) {
  LookupGraph graph;
  Node* ids = graph.Source("ids");
  Node* handle = graph.Handle("table");
  graph.ResourceGather("row", handle, ids);
  graph.Neg("all", graph.Read("read", handle));
  EXPECT_EQ(Variables(&graph), Strings{});
}

TEST(StaleReadsTest, AVariableWithoutLookupsIsNone) {
  LookupGraph graph;
  graph.Read("read", graph.Handle("weight"));
  EXPECT_EQ(Variables(&graph), Strings{});
}

TEST(StaleReadsTest, SavingAndSummariesAndShapesDoNotCount) {
  LookupGraph graph;
  Node* handle = graph.Handle("table");
  graph.ResourceGather("row", handle, graph.Source("ids"));
  Node* read = graph.Read("read", handle);
  NodeBuilder shape("shape", "Shape");
  shape.Input(read);
  graph.Finalize(&shape);
  NodeBuilder summary("summary", "HistogramSummary");
  NodeBuilder tag("tag", "Const");
  tag.Attr("dtype", DT_STRING).Attr("value", Tensor(tstring("tag")));
  summary.Input(graph.Finalize(&tag)).Input(read);
  graph.Finalize(&summary);
  EXPECT_EQ(Variables(&graph), Strings{"table"});
}

// tf.async_embedding_mark_node: what leads to a marked node may read any
// variable.
TEST(StaleReadsTest, WhatLeadsToAMarkIsALookup) {
  LookupGraph graph;
  Node* ids = graph.Source("ids");
  Node* handle = graph.Handle("table");
  Node* read = graph.Read("read", handle);
  Node* product = graph.AddN("product", {ids, read});
  graph.Neg("marked", product)->AddAttr(kEmbeddingAttr, true);
  Node* row = graph.ResourceGather("row", handle, ids);
  Node* whole = graph.Neg("whole", graph.Read("again", handle));
  Node* update = graph.Update("update", handle, ids, row);
  graph.Read("weight/read", graph.Handle("weight"));
  EXPECT_EQ(Variables(&graph), Strings{"table"});
  EXPECT_EQ(PartOf(read, &graph), Part::kRead);
  EXPECT_EQ(PartOf(product, &graph), Part::kLookup);
  // The program needs these as they are in the step.
  EXPECT_EQ(PartOf(row, &graph), Part::kOther);
  EXPECT_EQ(PartOf(whole, &graph), Part::kOther);
  EXPECT_EQ(PartOf(update, &graph), Part::kOther);
}

TEST(StaleReadsTest, AMarkAddsToTheVariablesThatTheProgramChooses) {
  LookupGraph graph;
  Node* ids = graph.Source("ids");
  Node* chosen = graph.Handle("chosen");
  chosen->AddAttr(kMayBeStaleAttr, true);
  graph.ResourceGather("row", chosen, ids);
  Node* read = graph.Read("read", graph.Handle("table"));
  graph.AddN("marked", {ids, read})->AddAttr(kEmbeddingAttr, true);
  graph.ResourceGather("other_row", graph.Handle("other"), ids);
  EXPECT_EQ(Variables(&graph), (Strings{"chosen", "table"}));
}

// An optimizer may look up the rows of its slot; these must be current.
TEST(StaleReadsTest, ASlotOfAnOptimizerIsNone) {
  LookupGraph graph;
  Node* ids = graph.Source("ids");
  graph.ResourceGather("row", graph.Handle("table"), ids);
  Node* slot = graph.Handle("slot");
  slot->AddAttr(kColocationAttrName, Strings{"loc:@table"});
  graph.ResourceGather("slot_row", slot, ids);
  EXPECT_EQ(Variables(&graph), Strings{"table"});
}

TEST(StaleReadsTest, AMarkChoosesTheVariables) {
  LookupGraph graph;
  Node* ids = graph.Source("ids");
  graph.ResourceGather("row", graph.Handle("table"), ids);
  Node* other = graph.Handle("other");
  other->AddAttr(kMayBeStaleAttr, true);
  Node* other_row = graph.ResourceGather("other_row", other, ids);
  Node* all = graph.Neg("all", graph.Read("read", other));
  EXPECT_EQ(Variables(&graph), Strings{"other"});
  EXPECT_EQ(PartOf(other_row, &graph), Part::kLookup);
  // Only a lookup may run ahead.
  EXPECT_EQ(PartOf(all, &graph), Part::kOther);
}

TEST(StaleReadsTest, AMarkedVariableWithoutLookupsIsReported) {
  LookupGraph graph;
  Node* weight = graph.Handle("weight");
  weight->AddAttr(kMayBeStaleAttr, true);
  graph.Neg("all", graph.Read("read", weight));
  const StaleReads stale(*graph.get());
  EXPECT_EQ(Names(stale.variables()), Strings{});
  EXPECT_EQ(Names(stale.without_lookups()), Strings{"weight"});
}

TEST(StaleReadsTest, HandlesOfOneVariableAreOneVariable) {
  LookupGraph graph;
  Node* ids = graph.Source("ids");
  graph.ResourceGather("row", graph.Handle("table"), ids);
  NodeBuilder same("same", "VarHandleOp");
  same.Attr("dtype", DT_INT64)
      .Attr("shape", TensorShape({10}))
      .Attr("shared_name", "table");
  Node* handle = graph.Finalize(&same);
  EXPECT_EQ(Variables(&graph), Strings{"table"});
  EXPECT_EQ(PartOf(handle, &graph), Part::kVariable);
  graph.Neg("all", graph.Read("read", handle));
  EXPECT_EQ(Variables(&graph), Strings{});
}

// The rows of one variable may be the ids of another.
TEST(StaleReadsTest, ALookupWhoseIdsAreAnotherVariableIsNone) {
  LookupGraph graph;
  Node* handle = graph.Handle("table");
  graph.ResourceGather("row", handle, graph.Source("ids"));
  Node* ids = graph.Handle("ids_table");
  ids->AddAttr(kMayBeStaleAttr, true);
  handle->AddAttr(kMayBeStaleAttr, true);
  graph.ResourceGather("id", ids, graph.Source("more"));
  Node* by_value =
      graph.ResourceGather("by_value", handle, graph.Read("read", ids));
  EXPECT_EQ(PartOf(by_value, &graph), Part::kOther);
}

TEST(StaleReadsTest, NodesThatDoNotCountChangeNothing) {
  LookupGraph graph;
  Node* handle = graph.Handle("table");
  graph.ResourceGather("row", handle, graph.Source("ids"));
  const Node* later = graph.Neg("all", graph.Read("read", handle));
  const StaleReads stale(*graph.get(), NodeFilter([later](const Node& node) {
    return &node != later;
  }));
  EXPECT_EQ(Names(stale.variables()), Strings{"table"});
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
