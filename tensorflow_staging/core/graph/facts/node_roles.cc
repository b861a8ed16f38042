// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/facts/node_roles.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/framework/buffer_nodes.h"
#include "tensorflow_staging/core/framework/node_marks.h"
#include "tensorflow_staging/core/framework/vocabulary.h"
#include "tensorflow_staging/core/graph/facts/called_functions.h"

namespace tensorflow {
namespace staging {
namespace {

using OpSet = absl::flat_hash_set<absl::string_view>;

bool IsSource(absl::string_view op) {
  static const OpSet* const kOps =
      new OpSet({"IteratorGetNext", "IteratorGetNextAsOptional",
                 "IteratorGetNextSync", "MultiDeviceIteratorGetNextFromShard"});
  return kOps->contains(op);
}

bool IsMutableTable(absl::string_view op) {
  static const OpSet* const kOps =
      new OpSet({"MutableDenseHashTable", "MutableDenseHashTableV2",
                 "MutableHashTable", "MutableHashTableOfTensors",
                 "MutableHashTableOfTensorsV2", "MutableHashTableV2"});
  return kOps->contains(op);
}

// Ops on the arrays of version 1 loops, which live in one run.
bool IsTensorArrayOp(absl::string_view op) {
  static const OpSet* const kOps = new OpSet(
      {"TensorArrayCloseV3", "TensorArrayConcatV3", "TensorArrayGatherV3",
       "TensorArrayGradV3", "TensorArrayGradWithShape", "TensorArrayReadV3",
       "TensorArrayScatterV3", "TensorArraySizeV3", "TensorArraySplitV3",
       "TensorArrayV3", "TensorArrayWriteV3"});
  return kOps->contains(op);
}

// Stateful ops whose state or side effect concerns only the record that they
// work on.
bool IsOncePerRecord(absl::string_view op) {
  static const OpSet* const kOps = new OpSet({
      // Random numbers.
      "AllCandidateSampler",
      "FixedUnigramCandidateSampler",
      "LearnedUnigramCandidateSampler",
      "LogUniformCandidateSampler",
      "Multinomial",
      "NonDeterministicInts",
      "ParameterizedTruncatedNormal",
      "RandomCrop",
      "RandomGamma",
      "RandomPoisson",
      "RandomPoissonV2",
      "RandomShuffle",
      "RandomStandardNormal",
      "RandomUniform",
      "RandomUniformInt",
      // From the state that its first input is the handle of.
      "RngReadAndSkip",
      "SampleDistortedBoundingBox",
      "SampleDistortedBoundingBoxV2",
      "StatelessRandomGetAlg",
      "ThreadUnsafeUnigramCandidateSampler",
      "TruncatedNormal",
      "UniformCandidateSampler",
      // Checks and messages.
      "Assert",
      "CheckNumerics",
      "CheckNumericsV2",
      "Print",
      "PrintV2",
      // Python.
      "EagerPyFunc",
      "PyFunc",
      // Stateful only to prevent constant folding.
      "Empty",
      "GuaranteeConst",
  });
  return kOps->contains(op) || IsTableRead(op) || IsTensorArrayOp(op);
}

// Stateful ops of IsOncePerRecord that yield the same again, without a side
// effect.
bool IsRepeatableOp(absl::string_view op) {
  static const OpSet* const kOps =
      new OpSet({"Assert", "CheckNumerics", "CheckNumericsV2", "GuaranteeConst",
                 "ReadVariableOp", "ResourceGather", "ResourceGatherNd",
                 kStagedNodeOp, "StatelessRandomGetAlg"});
  return kOps->contains(op) || IsTableRead(op) || IsTensorArrayOp(op);
}

// Control flow that the partition does not follow. TensorFlow creates these ops
// for gradients of loops, and after the passes of SmartStage.
bool IsOtherControlFlow(absl::string_view op) {
  return op == "ControlTrigger" || op == "_SwitchN" || op == "_XlaMerge";
}

bool IsCollective(absl::string_view op) {
  static const OpSet* const kOps =
      new OpSet({"AllToAll", "CrossReplicaSum", "HostRecv", "HostSend", "Recv",
                 "Send", "_HostRecv", "_HostSend", "_Recv", "_Send"});
  return absl::StartsWith(op, "Collective") || absl::StartsWith(op, "Nccl") ||
         absl::StartsWith(op, "_Nccl") || kOps->contains(op);
}

bool IsSaver(absl::string_view op) {
  static const OpSet* const kOps =
      new OpSet({"MergeV2Checkpoints", "Restore", "RestoreSlice", "RestoreV2",
                 "Save", "SaveSlices", "SaveV2"});
  return kOps->contains(op);
}

bool IsSummaryOp(absl::string_view op) {
  return absl::EndsWith(op, "Summary") || absl::EndsWith(op, "SummaryV2");
}

bool HasRefOutput(const Node& node) {
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (IsRefType(node.output_type(i))) return true;
  }
  return false;
}

// Whether `node` is a stand-in that passes on all its outputs that have users.
bool PassesOnWhatIsUsed(const Node& node) {
  std::vector<int> outputs;
  if (!IsStandIn(node) || !OutputsOfInputs(node, &outputs).ok()) return false;
  return absl::c_all_of(node.out_edges(), [&outputs](const Edge* edge) {
    return edge->IsControlEdge() ||
           absl::c_linear_search(outputs, edge->src_output());
  });
}

}  // namespace

bool IsSourceOp(const Node& node) {
  return IsBufferTake(node) || IsSource(node.type_string());
}

bool IsSummary(const Node& node) { return IsSummaryOp(node.type_string()); }

bool IsTensorArray(const Node& node) {
  return node.type_string() == "TensorArrayV3" ||
         node.type_string() == "TensorArrayGradV3" ||
         node.type_string() == "TensorArrayGradWithShape";
}

bool IsTensorArrayFlow(const Node& node, int output) {
  static const OpSet* const kReads = new OpSet(
      {"TensorArrayConcatV3", "TensorArrayGatherV3", "TensorArrayReadV3"});
  return node.output_type(output) == DT_FLOAT &&
         IsTensorArrayOp(node.type_string()) &&
         !kReads->contains(node.type_string());
}

bool IsIteratorHandle(const Node& node) {
  static const OpSet* const kOps = new OpSet(
      {"Iterator", "IteratorFromStringHandle", "IteratorFromStringHandleV2",
       "IteratorV2", "MultiDeviceIterator", "OneShotIterator"});
  return kOps->contains(node.type_string());
}

bool IsIteratorInitializer(const Node& node) {
  return std::any_of(
      std::begin(kIteratorInitializerOps), std::end(kIteratorInitializerOps),
      [&node](const char* op) { return node.type_string() == op; });
}

bool IsIteratorToStringHandle(const Node& node) {
  return node.type_string() == "IteratorToStringHandle" ||
         node.type_string() == "MultiDeviceIteratorToStringHandle";
}

bool IsIteratorFromStringHandle(const Node& node) {
  return absl::StartsWith(node.type_string(), "IteratorFromStringHandle");
}

bool MayReadIterator(const Node& node) {
  static const OpSet* const kOtherOps = new OpSet(
      {"DeserializeIterator", "Identity", "IdentityN", "IteratorGetDevice",
       "IteratorGetModelProto", "SerializeIterator"});
  return !IsSource(node.type_string()) && !IsIteratorInitializer(node) &&
         !IsIteratorToStringHandle(node) &&
         !kOtherOps->contains(node.type_string());
}

NodeRoles::NodeRoles(const Graph& graph, const NodeFilter& counts,
                     const StaleReads* stale)
    : graph_(graph),
      counts_(counts),
      stale_(stale),
      functions_(graph.flib_def()),
      effects_(graph.flib_def()) {}

RoleAndReason NodeRoles::Find(const Node& node) {
  const auto step = [](StepReason reason) {
    return RoleAndReason{NodeRole::kStepOnly, reason};
  };
  const std::string& op = node.type_string();
  if (IsBufferTake(node)) return {NodeRole::kSource};
  if (IsBufferOp(node)) {
    return step(StepReason::kManualStage);
  }
  if (IsSource(op)) return {NodeRole::kSource};
  if (IsMarkedTarget(node)) return step(StepReason::kTarget);
  if (stale_ != nullptr) {
    if (const StaleReads::Use* use = stale_->Find(node)) {
      switch (use->part) {
        case StaleReads::Part::kVariable:
          return {NodeRole::kHandle};
        case StaleReads::Part::kRead:
        case StaleReads::Part::kLookup:
          return {NodeRole::kPure};
        case StaleReads::Part::kOther:
          return step(StepReason::kVariable);
      }
    }
  }
  // It passes on what the record of the stage before carries.
  if (op == kStagedNodeOp && (stale_ != nullptr || PassesOnWhatIsUsed(node))) {
    return {NodeRole::kPure};
  }
  if (IsIteratorHandle(node)) return {NodeRole::kHandle};
  if (IsFixedTable(op) || IsMutableTable(op)) {
    if (!IsConstantTable(node)) return step(StepReason::kTable);
    return {NodeRole::kHandle};
  }
  if (IsOtherControlFlow(op)) return step(StepReason::kControlFlow);
  if (op == "VarHandleOp" || op == "_VarHandlesOp" || HasRefOutput(node)) {
    return step(StepReason::kVariable);
  }
  if (node.IsArg() || absl::StartsWith(op, "Placeholder")) {
    return step(StepReason::kPlaceholder);
  }
  if (IsSaver(op)) return step(StepReason::kSaver);
  if (IsSummaryOp(op)) return step(StepReason::kSummary);
  if (IsCollective(op)) return step(StepReason::kCollective);
  if (!node.op_def().is_stateful()) return {NodeRole::kPure};
  if (IsOncePerRecord(op) || CallsOnly(&stageable_, node.def())) {
    return {NodeRole::kOncePerRecord};
  }
  return step(StepReason::kSideEffect);
}

bool NodeRoles::IsConstantTable(const Node& handle) {
  if (resources_ == nullptr) {
    resources_ = std::make_unique<Resources>(graph_, counts_);
  }
  const Node& owner = *resources_->OwnerOf(handle);
  const std::vector<const Node*> handles = resources_->HandlesOf(owner);
  const std::vector<ResourceUse>& uses = resources_->UsesOf(owner);
  return absl::c_all_of(handles,
                        [](const Node* node) {
                          return IsFixedTable(node->type_string());
                        }) ||
         absl::c_all_of(uses, [this](const ResourceUse& use) {
           return effects_.Find(use) <= ResourceEffect::kInitialize;
         });
}

std::vector<std::string> NodeRoles::FunctionsOfCall(const NodeDef& def) const {
  const std::string& op = def.op();
  const bool calls = functions_.Contains(op) || op == "If" || op == "While" ||
                     op == "Case" || op == "StatefulPartitionedCall";
  return calls ? CalledFunctions(def, functions_) : std::vector<std::string>();
}

bool NodeRoles::CallsOnly(Examined* functions, const NodeDef& def) {
  const std::vector<std::string> called = FunctionsOfCall(def);
  return !called.empty() &&
         absl::c_all_of(called, [this, functions](const std::string& name) {
           return Passes(functions, name);
         });
}

bool NodeRoles::Passes(Examined* functions, const std::string& name) {
  const auto [it, inserted] = functions->passes.try_emplace(name, false);
  if (!inserted) return it->second;
  const FunctionDef* function = functions_.Find(name);
  const bool passes =
      function != nullptr &&
      absl::c_all_of(function->node_def(), [&](const NodeDef& def) {
        return (this->*functions->accepts)(def);
      });
  return functions->passes[name] = passes;
}

bool NodeRoles::IsStageable(const NodeDef& def) {
  const OpDef* op = nullptr;
  if (!functions_.LookUpOpDef(def.op(), &op).ok()) return false;
  if (IsCollective(def.op()) || IsSummaryOp(def.op())) return false;
  if (!op->is_stateful()) return true;
  return IsOncePerRecord(def.op()) || CallsOnly(&stageable_, def);
}

bool NodeRoles::IsRepeatable(const Node& node) {
  return !IsSource(node.type_string()) && !IsBufferOp(node) &&
         IsRepeatableNode(node.def());
}

bool NodeRoles::IsRepeatableNode(const NodeDef& def) {
  const OpDef* op = nullptr;
  if (!functions_.LookUpOpDef(def.op(), &op).ok()) return false;
  return !op->is_stateful() || IsRepeatableOp(def.op()) ||
         CallsOnly(&repeatable_, def);
}

}  // namespace staging
}  // namespace tensorflow
