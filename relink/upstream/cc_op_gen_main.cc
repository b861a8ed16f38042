// SPDX-License-Identifier: Apache-2.0

// Usage: cc_op_gen OUT.h OUT.cc OP...
//
// Writes the C++ interface of the named ops.

#include <iostream>
#include <string>
#include <unordered_set>

#include "tensorflow/cc/framework/cc_op_gen.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/op_gen_lib.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: cc_op_gen OUT.h OUT.cc OP...\n";
    return 2;
  }
  std::unordered_set<std::string> names(argv + 3, argv + argc);
  tensorflow::OpList all, ops;
  tensorflow::OpRegistry::Global()->Export(/*include_internal=*/true, &all);
  for (const tensorflow::OpDef& op : all.op()) {
    if (names.erase(op.name()) > 0) *ops.add_op() = op;
  }
  if (!names.empty()) {
    std::cerr << "there is no op " << *names.begin() << "\n";
    return 2;
  }
  tensorflow::ApiDefMap docs(ops);
  docs.UpdateDocs();
  tensorflow::cc_op::WriteCCOps(ops, docs, argv[1], argv[2]);
}
