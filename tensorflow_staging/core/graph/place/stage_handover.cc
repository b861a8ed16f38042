// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/place/stage_handover.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/place/record_uses.h"

namespace tensorflow {
namespace staging {
namespace {

// Sets `*lent` to the indices of the tensors of `put`'s record that are in the
// memory of its device, and `*can_lend` to whether all of them can be lent: a
// loan has one block of memory, so it does not hold what a variant refers to.
Status FindLent(const Graph& graph, const Node& put, std::set<int>* lent,
                bool* can_lend) {
  MemoryTypeVector inputs, outputs;
  TF_RETURN_IF_ERROR(
      MemoryOn(put.assigned_device_name(), graph, put, &inputs, &outputs));
  *can_lend = true;
  for (int i = 0; i < put.num_inputs(); ++i) {
    if (inputs[i] == HOST_MEMORY || DataTypeAlwaysOnHost(put.input_type(i))) {
      continue;
    }
    lent->insert(i);
    if (!DataTypeCanUseMemcpy(put.input_type(i))) *can_lend = false;
  }
  return OkStatus();
}

// Sets `*lent` to what all Puts of a stage can lend; empty if they differ, or
// if something cannot be lent.
Status FindLentByAll(const Graph& graph, const std::vector<Node*>& puts,
                     std::set<int>* lent) {
  for (const Node* put : puts) {
    std::set<int> of_put;
    bool can_lend = false;
    TF_RETURN_IF_ERROR(FindLent(graph, *put, &of_put, &can_lend));
    const bool differs =
        put != puts.front() &&
        (of_put != *lent ||
         put->assigned_device_name() != puts.front()->assigned_device_name());
    if (!can_lend || differs) {
      lent->clear();
      return OkStatus();
    }
    *lent = std::move(of_put);
  }
  return OkStatus();
}

Status HandOver(
    absl::FunctionRef<bool(const std::string&, const std::string&)> same_gpu,
    const StageRecords& stage, const Graph& graph) {
  if (stage.puts.empty()) return OkStatus();
  const std::string& lender = stage.puts.front()->assigned_device_name();
  if (!IsAccelerator(lender)) return OkStatus();
  std::set<int> lent;
  bool borrows = false;
  for (Node* take : stage.takes) {
    RecordUses uses(graph, take);
    TF_RETURN_IF_ERROR(uses.Find());
    const std::string& borrower = uses.device();
    if (borrower.empty() || borrower == lender || !same_gpu(lender, borrower)) {
      continue;
    }
    if (!borrows) TF_RETURN_IF_ERROR(FindLentByAll(graph, stage.puts, &lent));
    if (lent.empty()) return OkStatus();
    uses.MoveTake(borrower, lent);
    borrows = true;
  }
  if (!borrows) return OkStatus();
  for (Node* put : stage.puts) put->AddAttr(kHandsOverAttr, true);
  for (Node* take : stage.takes) take->AddAttr(kBorrowsFromAttr, lender);
  return OkStatus();
}

}  // namespace

Status HandOverRecords(
    absl::FunctionRef<bool(const std::string&, const std::string&)> same_gpu,
    Graph* graph) {
  for (const StageRecords& stage : FindStageRecords(*graph)) {
    TF_RETURN_IF_ERROR(HandOver(same_gpu, stage, *graph));
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
