// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/functions/xla_kernels.h"

#include <algorithm>

#include "tensorflow/compiler/tf2xla/xla_op_registry.h"
#include "tensorflow/core/framework/op_kernel.h"

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
  const auto can_compile = [&library, depth](const NameAttrList& called) {
    const FunctionDef* callee = library.Find(called.name());
    return callee == nullptr ||
           std::all_of(callee->node_def().begin(), callee->node_def().end(),
                       [&library, depth](const NodeDef& inner) {
                         return CanCompile(inner, library, depth - 1);
                       });
  };
  for (const auto& [name, attr] : node.attr()) {
    if (attr.has_func() && !can_compile(attr.func())) return false;
    for (const NameAttrList& called : attr.list().func()) {
      if (!can_compile(called)) return false;
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
