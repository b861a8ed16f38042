// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/sources/dataset_identity.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/data/hash_utils.h"
#include "tensorflow/core/data/serialization_utils.h"
#include "tensorflow/core/framework/dataset.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"
#include "tensorflow/core/platform/hash.h"
namespace tensorflow {
namespace staging {

std::string NameOfInitializer(OpKernelContext* ctx) {
  const OpKernel& op = ctx->op_kernel();
  if (op.type_string() == "OneShotIterator") return "";
  absl::string_view name = op.name();
  std::string iterator;
  // The inputs of MakeIterator are the dataset and the iterator, whose resource
  // has the name of its op, after a number if it has no shared_name: _0_scope/it.
  if (ctx->num_inputs() > 1 && ctx->input_dtype(1) == DT_RESOURCE) {
    iterator = HandleFromInput(ctx, 1).name();
    const size_t number_end = iterator.find_first_not_of("0123456789", 1);
    if (absl::StartsWith(iterator, "_") && number_end != std::string::npos &&
        number_end > 1 && iterator[number_end] == '_') {
      iterator.erase(0, number_end + 1);
    }
  }
  size_t begin = 0;
  for (size_t i = 0; i < std::min(name.size(), iterator.size()); ++i) {
    if (name[i] != iterator[i]) break;
    if (name[i] == '/') begin = i + 1;
  }
  return std::string(name.substr(begin));
}

uint64_t FingerprintOfDataset(OpKernelContext* ctx) {
  constexpr size_t kLargestTensor = 1 << 20;
  data::DatasetBase* dataset = nullptr;
  std::vector<std::pair<std::string, Tensor>> tensors;
  GraphDef graph;
  std::string node;
  if (ctx->num_inputs() == 0 || ctx->input_dtype(0) != DT_VARIANT ||
      !data::GetDatasetFromVariantTensor(ctx->input(0), &dataset).ok() ||
      !data::AsGraphDefForRewrite(ctx, dataset, &tensors, &graph, &node).ok()) {
    return 0;
  }
  // TensorFlow's HashGraph differs for equal graphs that have two functions: it
  // knows their nodes by addresses, which the second function may have again.
  uint64_t fingerprint = 0;
  for (NodeDef& def : *graph.mutable_node()) {
    // Has the number of the dataset in this process.
    def.mutable_attr()->erase("metadata");
    fingerprint = Hash64Combine(fingerprint, DeterministicProtoHash64(def));
  }
  uint64_t functions = 0;
  for (const FunctionDef& function : graph.library().function()) {
    functions =
        Hash64CombineUnordered(functions, DeterministicProtoHash64(function));
  }
  fingerprint = Hash64Combine(fingerprint, functions);
  for (const auto& [name, tensor] : tensors) {
    uint64_t hash = Hash64(strings::StrCat(DataTypeString(tensor.dtype()),
                                           tensor.shape().DebugString()));
    uint64_t content = 0;
    if (tensor.TotalBytes() <= kLargestTensor &&
        data::HashTensor(tensor, &content).ok()) {
      hash = Hash64Combine(hash, content);
    }
    fingerprint = Hash64Combine(fingerprint, hash);
  }
  return fingerprint;
}

}  // namespace staging
}  // namespace tensorflow
