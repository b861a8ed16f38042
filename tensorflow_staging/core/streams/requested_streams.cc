// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/requested_streams.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

// Sets `*stream` to the number that `node` has, or to nothing.
Status ReadStream(const Node& node, int streams, std::optional<int>* stream) {
  stream->reset();
  const AttrValue* value = node.attrs().Find(kStreamAttr);
  if (value == nullptr) return OkStatus();
  if (value->value_case() != AttrValue::kI) {
    return errors::InvalidArgument(
        "Attribute ", kStreamAttr, " of node '", node.name(), "' is ",
        SummarizeAttrValue(*value),
        "; it must be an integer, the number of a GPU stream.");
  }
  if (value->i() < 0 || value->i() >= streams) {
    return errors::InvalidArgument(
        IsBufferPut(node)
            ? absl::StrCat("The stage of node '", node.name(),
                           "' has stage_subgraph_stream_id ", value->i())
            : absl::StrCat("Node '", node.name(), "' is in tf.stream(",
                           value->i(), ")"),
        ", but the session has ", streams,
        " GPU stream(s): the number must be from 0 to ", streams - 1,
        ". Choose such a stream, or raise "
        "rewrite_options.multi_stream_opts.multi_stream_num.");
  }
  *stream = value->i();
  return OkStatus();
}

// Returns whether a node leads to one of `ends`, or is one, by node id.
std::vector<bool> NodesBefore(const Graph& graph,
                              const std::vector<const Node*>& ends,
                              const EdgeFilter& follows = {}) {
  std::vector<bool> before(graph.num_node_ids(), false);
  ReverseDFSFrom(
      graph, ends, [&before](const Node* node) { before[node->id()] = true; },
      /*leave=*/{}, /*stable_comparator=*/{}, follows);
  return before;
}

// Returns the nodes that lead to `puts` and to nothing else.
std::vector<const Node*> NodesOnlyFor(const std::vector<const Node*>& puts,
                                      const Graph& graph) {
  const std::vector<bool> leads = NodesBefore(graph, puts);
  // What leads to other nodes, too. Those behind a Put only follow its run.
  std::vector<const Node*> others;
  for (const Node* node : graph.op_nodes()) {
    if (!leads[node->id()]) others.push_back(node);
  }
  const std::vector<bool> shared =
      NodesBefore(graph, others,
                  [](const Edge& edge) { return !IsBufferPut(*edge.src()); });
  std::vector<const Node*> only;
  for (const Node* node : graph.op_nodes()) {
    // The other ops of a buffer are where its records are.
    if (leads[node->id()] && !shared[node->id()] && !IsBufferOp(*node)) {
      only.push_back(node);
    }
  }
  return only;
}

}  // namespace

Status ReadRequestedStreams(const StreamSettings& settings, const Graph& graph,
                            RequestedStreams* requested) {
  requested->assign(graph.num_node_ids(), std::nullopt);
  std::map<int, std::vector<const Node*>> puts;
  for (const Node* node : graph.op_nodes()) {
    std::optional<int>& stream = (*requested)[node->id()];
    TF_RETURN_IF_ERROR(ReadStream(*node, settings.streams, &stream));
    if (!IsBufferPut(*node)) continue;
    if (stream.value_or(0) != 0) puts[*stream].push_back(node);
    stream.reset();
  }
  for (const auto& [stream, puts_on_stream] : puts) {
    if (!settings.stages) {
      LOG(WARNING) << "The stage of node '" << puts_on_stream.front()->name()
                   << "' asks for stream " << stream
                   << ", but optimizer_options.stage_multi_stream is off: the "
                      "stage runs where it would run without a number. Turn "
                      "stage_multi_stream on.";
      continue;
    }
    for (const Node* node : NodesOnlyFor(puts_on_stream, graph)) {
      (*requested)[node->id()] = stream;
    }
    for (const Node* put : puts_on_stream) {
      const bool delivers = put->attrs().Find(kDeliversAttr) != nullptr;
      if (!delivers) (*requested)[put->id()] = stream;
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
