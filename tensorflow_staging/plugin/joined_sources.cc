// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/plugin/joined_sources.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/graph_walk.h"
#include "tensorflow_staging/core/graph/facts/node_roles.h"
#include "tensorflow_staging/plugin/name_in_program.h"

namespace tensorflow {
namespace staging {
namespace {

// Of a Take: for each output, the names of its sources, with a comma between them.
constexpr char kSourcesAttr[] = "_staging_sources";

using Names = std::set<std::string>;

// Returns the sources of each tensor that `put` puts.
std::vector<Names> SourcesOf(const Node& put) {
  std::vector<Names> sources(put.num_inputs());
  for (const Edge* edge : put.in_edges()) {
    if (edge->IsControlEdge()) continue;
    for (const Node* node : WithAncestors({edge->src()})) {
      if (node->IsOp() && IsSourceOp(*node)) {
        sources[edge->dst_input()].insert(NameInProgram(*node));
      }
    }
  }
  return sources;
}

Names UnionOf(const std::vector<Names>& sources) {
  Names all;
  for (const Names& names : sources) all.insert(names.begin(), names.end());
  return all;
}

Status SkippedElements(const std::string& stage, const Names& needed,
                       const Names& all) {
  std::vector<std::string> skipped;
  for (const std::string& source : all) {
    if (needed.count(source) == 0) skipped.push_back(source);
  }
  return errors::FailedPrecondition(
      "The run needs the next element of '", absl::StrJoin(needed, "', '"),
      "', but not of '", absl::StrJoin(skipped, "', '"), "'. Stage '", stage,
      "' has joined them in one record, so that the run would skip the others. "
      "Fetch something of all of them in each run.");
}

}  // namespace

void NameSources(Graph* graph) {
  std::map<BufferKey, std::vector<Names>> of_buffer;
  for (const Node* node : graph->op_nodes()) {
    if (!IsBufferPut(*node)) continue;
    if (const auto buffer = BufferOf(*node)) {
      of_buffer[*buffer] = SourcesOf(*node);
    }
  }
  for (Node* node : graph->op_nodes()) {
    if (!IsBufferTake(*node)) continue;
    const auto buffer = BufferOf(*node);
    if (!buffer || UnionOf(of_buffer[*buffer]).size() < 2) continue;
    std::vector<std::string> texts;
    for (const Names& names : of_buffer[*buffer]) {
      texts.push_back(absl::StrJoin(names, ","));
    }
    node->AddAttr(kSourcesAttr, texts);
  }
}

Status CheckAllSourcesAreUsed(const Graph& graph) {
  for (const Node* node : graph.op_nodes()) {
    // The run of a later stage of a chain: its record has what steps use.
    if (IsBufferPut(*node)) return OkStatus();
  }
  for (const Node* node : graph.op_nodes()) {
    std::vector<std::string> texts;
    const auto buffer =
        IsBufferTake(*node) ? BufferOf(*node) : std::optional<BufferKey>();
    if (!buffer || !TryGetNodeAttr(node->attrs(), kSourcesAttr, &texts)) {
      continue;
    }
    std::vector<Names> sources;
    for (const std::string& text : texts) {
      sources.push_back(absl::StrSplit(text, ',', absl::SkipEmpty()));
    }
    std::vector<Names> used;
    for (const Edge* edge : node->out_edges()) {
      const size_t output = static_cast<size_t>(edge->src_output());
      if (!edge->IsControlEdge() && output < sources.size()) {
        used.push_back(sources[output]);
      }
    }
    const Names needed = UnionOf(used), all = UnionOf(sources);
    // A run that uses no tensor of the record only waits for it.
    if (!used.empty() && needed != all) {
      return SkippedElements(buffer->name, needed, all);
    }
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
