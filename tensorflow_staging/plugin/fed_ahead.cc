// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/plugin/fed_ahead.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/plugin/name_in_program.h"

namespace tensorflow {
namespace staging {
namespace {

// Of a Take: the names of the nodes from which its records are computed.
constexpr char kAheadAttr[] = "_staging_ahead";

// Walks from Puts back to what they put, through the stages of a chain.
class Walk {
 public:
  explicit Walk(const Graph& graph) {
    for (const Node* node : graph.op_nodes()) {
      if (!IsBufferPut(*node)) continue;
      if (const auto buffer = BufferOf(*node)) puts_[*buffer].push_back(node);
    }
  }

  std::set<std::string> NamesAheadOf(const Node& take) {
    std::set<std::string> names;
    std::set<BufferKey> seen;
    Visit(take, &seen, &names);
    return names;
  }

 private:
  void Visit(const Node& take, std::set<BufferKey>* seen,
             std::set<std::string>* names) {
    const std::optional<BufferKey> buffer = BufferOf(take);
    if (!buffer || !seen->insert(*buffer).second) return;
    for (const Node* node : WithAncestors(puts_[*buffer])) {
      if (!node->IsOp() || IsBufferPut(*node)) continue;
      names->insert(NameInProgram(*node));
      if (IsBufferTake(*node)) Visit(*node, seen, names);
    }
  }

  std::map<BufferKey, std::vector<const Node*>> puts_;
};

bool IsMadeFromFeed(const Node& node) {
  return absl::c_any_of(node.in_edges(), [](const Edge* edge) {
    return edge->src()->type_string() == "_Arg";
  });
}

// The names of tensors.
thread_local std::vector<std::string> feeds;

}  // namespace

void NameWhatIsAhead(Graph* graph) {
  Walk walk(*graph);
  for (Node* node : graph->op_nodes()) {
    if (!IsBufferTake(*node)) continue;
    const std::set<std::string> names = walk.NamesAheadOf(*node);
    node->AddAttr(kAheadAttr,
                  std::vector<std::string>(names.begin(), names.end()));
  }
}

void SetFeedsOfThread(std::vector<std::string> tensors) {
  feeds = std::move(tensors);
}

Status CheckNothingAheadIsFed(const Graph& graph) {
  if (feeds.empty()) return OkStatus();
  for (const Node* node : graph.op_nodes()) {
    if (IsStandIn(*node) && IsMadeFromFeed(*node)) {
      return errors::FailedPrecondition("The run needs '", node->name(),
                                        "', which a stage computes ahead, and "
                                        "feeds '",
                                        absl::StrJoin(feeds, "', '"),
                                        "', which has its value from "
                                        "the same record. Fetch '",
                                        node->name(),
                                        "' in a run that does not feed that.");
    }
    std::vector<std::string> ahead;
    const auto buffer =
        IsBufferTake(*node) ? BufferOf(*node) : std::optional<BufferKey>();
    if (!buffer || !TryGetNodeAttr(node->attrs(), kAheadAttr, &ahead)) continue;
    for (const std::string& fed : feeds) {
      const std::string name(ParseTensorName(fed).node());
      if (!absl::c_binary_search(ahead, name)) continue;
      return errors::FailedPrecondition(
          "The run feeds '", fed, "', which stage '", buffer->name,
          "' computes ahead, so the record that the run takes has been computed "
          "without the fed value. Beside an official TensorFlow, feed it with "
          "feed_dict of tf.staged, or in a session whose graph has no stage.");
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
