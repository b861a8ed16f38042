// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/functions/xla_kernels.h"

#include "tensorflow/compiler/tf2xla/xla_op_registry.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_staging/core/graph/facts/function_names.h"

namespace tensorflow {
namespace staging {
namespace {

// Functions that are nested deeper count as compilable.
constexpr int kDeepest = 16;

bool CanCompile(const NodeDef& node, const FunctionLibraryDefinition& library,
                int depth) {
  if (library.Find(node.op()) == nullptr &&
      !FindKernelDef(DeviceType(DEVICE_CPU_XLA_JIT), node, /*def=*/nullptr,
                     /*kernel_class_name=*/nullptr)
           .ok()) {
    return false;
  }
  if (depth == 0) return true;
  for (const NameAttrList& called : FunctionAttrs(node)) {
    const FunctionDef* callee = library.Find(called.name());
    if (callee == nullptr) continue;
    for (const NodeDef& inner : callee->node_def()) {
      if (!CanCompile(inner, library, depth - 1)) return false;
    }
  }
  return true;
}

}  // namespace

bool XlaCanCompile(const NodeDef& node,
                   const FunctionLibraryDefinition& library) {
  XlaOpRegistry::RegisterCompilationKernels();  // Once a process.
  return CanCompile(node, library, kDeepest);
}

}  // namespace staging
}  // namespace tensorflow
