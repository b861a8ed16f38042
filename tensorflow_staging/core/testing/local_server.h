// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_LOCAL_SERVER_H_
#define TENSORFLOW_STAGING_CORE_TESTING_LOCAL_SERVER_H_

#include <memory>
#include <string>

#include "tensorflow/core/distributed_runtime/server_lib.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/cluster.pb.h"
#include "tensorflow/core/protobuf/tensorflow_server.pb.h"

namespace tensorflow {
namespace staging {

// Returns the target of a server in this process, for sessions of tests. The
// first call starts it; nothing stops it, because TensorFlow's servers cannot
// be stopped.
inline std::string LocalServerTarget() {
  static const ServerInterface* const server = [] {
    ServerDef definition;
    definition.set_protocol("grpc");
    definition.set_job_name("worker");
    auto* job = definition.mutable_cluster()->add_job();
    job->set_name("worker");
    (*job->mutable_tasks())[0] = "localhost:0";
    std::unique_ptr<ServerInterface> started;
    TF_CHECK_OK(NewServer(definition, &started));
    TF_CHECK_OK(started->Start());
    return started.release();
  }();
  return server->target();
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_LOCAL_SERVER_H_
