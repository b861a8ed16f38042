// SPDX-License-Identifier: Apache-2.0
//
// A user's C++ program. It runs one op of the fork in a session, and prints the
// name of the library that implements the session.

#include <dlfcn.h>

#include <iostream>
#include <memory>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"

namespace {

using tensorflow::Session;
using tensorflow::Status;
using tensorflow::Tensor;

// Returns the file name of the library that defines the virtual table of
// `object`.
template <typename Object>
std::string LibraryOf(const Object& object) {
  const void* table = *reinterpret_cast<const void* const*>(&object);
  Dl_info info;
  if (dladdr(table, &info) == 0) return "no library";
  const std::string path = info.dli_fname;
  return path.substr(path.rfind('/') + 1);
}

Status Run(Session* session) {
  tensorflow::GraphDef graph;
  TF_RETURN_IF_ERROR(tensorflow::NodeDefBuilder("size", "TensorBufferSize")
                         .Attr("shared_name", "input")
                         .Finalize(graph.add_node()));
  TF_RETURN_IF_ERROR(session->Create(graph));
  std::vector<Tensor> outputs;
  TF_RETURN_IF_ERROR(session->Run({}, {"size:0"}, {}, &outputs));
  std::cout << "records: " << outputs[0].scalar<int64_t>()() << "\n";
  return session->Close();
}

}  // namespace

int main() {
  std::unique_ptr<Session> session(
      tensorflow::NewSession(tensorflow::SessionOptions()));
  std::cout << "session: " << LibraryOf(*session) << "\n";
  const Status status = Run(session.get());
  std::cout << "status: " << status.ToString() << "\n";
  return status.ok() ? 0 : 1;
}
