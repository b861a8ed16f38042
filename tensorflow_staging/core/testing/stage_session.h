// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_STAGE_SESSION_H_
#define TENSORFLOW_STAGING_CORE_TESTING_STAGE_SESSION_H_

// A session that runs single ops of a stage, for tests.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/testing/stage_graph.h"

namespace tensorflow {
namespace staging {

// A session over a graph with one stage that holds `capacity` records. Puts
// feed their records. `inter_op_threads` is the size of the session's own pool;
// -1 runs kernels on the caller's thread. `graph` may contain further nodes.
class StageSession {
 public:
  explicit StageSession(int64_t capacity, int inter_op_threads = 4)
      : StageSession(capacity, inter_op_threads, GraphDef()) {}

  StageSession(int64_t capacity, int inter_op_threads, GraphDef graph) {
    stage_.capacity = capacity;
    StageTestGraph::Add(
        NodeDefBuilder("record", "Placeholder").Attr("dtype", DT_INT64),
        &graph);
    StageTestGraph::Add(
        NodeDefBuilder("other_record", "Placeholder").Attr("dtype", DT_FLOAT),
        &graph);
    stage_.AddTo(&graph, "record");
    StageTestGraph::Add(NodeDefBuilder("other_put", "TensorBufferPut")
                            .Attr("shared_name", stage_.name)
                            .Attr("container", StageTestGraph::kContainer)
                            .Input(std::vector<NodeDefBuilder::NodeOut>{
                                {"other_record", 0, DT_FLOAT}}),
                        &graph);
    StageTestGraph::Add(NodeDefBuilder("nameless", "TensorBufferCancel"),
                        &graph);

    SessionOptions options;
    options.config.set_inter_op_parallelism_threads(inter_op_threads);
    options.config.set_use_per_session_threads(true);
    session_.reset(NewSession(options));
    TF_CHECK_OK(session_->Create(graph));
  }

  Status Put(int64_t value) {
    return session_->Run({{"record:0", Tensor(value)}}, {},
                         {stage_.Node("TensorBufferPut")}, nullptr);
  }

  Status PutOther() {
    return session_->Run({{"other_record:0", Tensor(1.0f)}}, {}, {"other_put"},
                         nullptr);
  }

  Status Take(int64_t* value) {
    std::vector<Tensor> outputs;
    TF_RETURN_IF_ERROR(session_->Run(
        {}, {strings::StrCat(stage_.Node("TensorBufferTake"), ":0")}, {},
        &outputs));
    *value = outputs[0].scalar<int64_t>()();
    return OkStatus();
  }

  // Takes one record and returns its number, or fails the test and returns -1.
  int64_t Take() {
    int64_t value = -1;
    const Status status = Take(&value);
    EXPECT_EQ(status, OkStatus());
    return value;
  }

  Status TakeStatus() {
    int64_t value;
    return Take(&value);
  }

  Status Run(const std::string& op) {
    return session_->Run({}, {}, {stage_.Node(op)}, nullptr);
  }

  Status CloseStage(const Tensor& code, const Tensor& message) {
    return session_->Run({{stage_.Node("error_code"), code},
                          {stage_.Node("error_message"), message}},
                         {}, {stage_.Node("TensorBufferClose")}, nullptr);
  }

  int64_t Size() { return Fetch("TensorBufferSize"); }

  int64_t Discard() { return Fetch("TensorBufferDiscard"); }

  BufferStats Stats() {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->Run(
        {}, {strings::StrCat(stage_.Node("TensorBufferStats"), ":0")}, {},
        &outputs));
    BufferStats stats;
    CHECK(stats.ParseFromString(outputs[0].scalar<tstring>()()));
    return stats;
  }

  ResourceMgr* resources() {
    const DeviceMgr* devices = nullptr;
    TF_CHECK_OK(session_->LocalDeviceManager(&devices));
    return devices->ListDevices()[0]->resource_manager();
  }

  // Returns the buffer's DebugString, or "" if there is no buffer.
  std::string Buffer() {
    TensorBuffer* buffer = nullptr;
    if (!resources()
             ->Lookup(StageTestGraph::kContainer, stage_.name, &buffer)
             .ok())
      return "";
    core::ScopedUnref unref(buffer);
    return buffer->DebugString();
  }

  // Waits until the buffer's DebugString contains `text`.
  void Await(const std::string& text) {
    while (!absl::StrContains(Buffer(), text)) std::this_thread::yield();
  }

  // Waits until the buffer reports that the calls `waiting`, for example
  // "1 puts and 2 takes", are waiting.
  void AwaitWaiting(const std::string& waiting) { Await(waiting + " waiting"); }

  Session* session() { return session_.get(); }

 private:
  int64_t Fetch(const std::string& op) {
    std::vector<Tensor> outputs;
    TF_CHECK_OK(session_->Run({}, {strings::StrCat(stage_.Node(op), ":0")}, {},
                              &outputs));
    return outputs[0].scalar<int64_t>()();
  }

  StageTestGraph stage_;
  std::unique_ptr<Session> session_;
};

// Runs `fn` in its own thread, and joins the thread at the end of the scope.
class InThread {
 public:
  explicit InThread(std::function<void()> fn)
      : thread_(Env::Default()->StartThread({}, "test", std::move(fn))) {}

 private:
  std::unique_ptr<Thread> thread_;
};

inline bool Contains(const Status& status, const std::string& text) {
  return absl::StrContains(status.message(), text);
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_STAGE_SESSION_H_
