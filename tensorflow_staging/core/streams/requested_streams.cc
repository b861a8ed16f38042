// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/streams/requested_streams.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/attr_value_util.h"
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

// The nodes that lead to the Puts of stages on one stream.
class StageNodes {
 public:
  StageNodes(const std::vector<const Node*>& puts, const Graph& graph)
      : leads_(graph.num_node_ids(), false), shared_(graph.num_node_ids()) {
    for (const Node* put : puts) leads_[put->id()] = true;
    nodes_ = puts;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const Edge* edge : nodes_[i]->in_edges()) {
        if (!edge->src()->IsOp() || leads_[edge->src()->id()]) continue;
        leads_[edge->src()->id()] = true;
        nodes_.push_back(edge->src());
      }
    }
    FindShared(puts.size());
  }

  // Calls `use` with each node that leads to nothing else.
  template <typename Use>
  void ForEachOwn(Use use) const {
    for (const Node* node : nodes_) {
      // The other ops of a buffer are where its records are.
      if (!shared_[node->id()] && !IsBufferOp(*node)) use(*node);
    }
  }

 private:
  // Finds the nodes that also lead to nodes outside. The first `puts` nodes are
  // the Puts.
  void FindShared(size_t puts) {
    std::vector<const Node*> shared;
    for (size_t i = puts; i < nodes_.size(); ++i) {
      for (const Edge* edge : nodes_[i]->out_edges()) {
        if (!edge->dst()->IsOp() || leads_[edge->dst()->id()]) continue;
        shared_[nodes_[i]->id()] = true;
        shared.push_back(nodes_[i]);
        break;
      }
    }
    while (!shared.empty()) {
      const Node* node = shared.back();
      shared.pop_back();
      for (const Edge* edge : node->in_edges()) {
        if (!edge->src()->IsOp() || shared_[edge->src()->id()]) continue;
        shared_[edge->src()->id()] = true;
        shared.push_back(edge->src());
      }
    }
  }

  // The Puts come first.
  std::vector<const Node*> nodes_;
  // By node id.
  std::vector<bool> leads_;
  std::vector<bool> shared_;
};

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
    StageNodes(puts_on_stream, graph).ForEachOwn([&](const Node& node) {
      (*requested)[node.id()] = stream;
    });
    if (settings.stages_on_cpu) continue;
    for (const Node* put : puts_on_stream) (*requested)[put->id()] = stream;
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
