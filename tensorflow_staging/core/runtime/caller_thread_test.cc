// SPDX-License-Identifier: Apache-2.0
//
// Tests that sessions compute a run in the thread of a caller that offers it.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/tsl/profiler/backends/cpu/traceme_recorder.h"
#include "tensorflow/tsl/profiler/lib/traceme.h"
#include "tensorflow_staging/core/runtime/staged_call.h"
#include "tensorflow_staging/core/testing/local_server.h"
#include "tensorflow_staging/core/testing/stage_graph.h"

namespace tensorflow {
namespace staging {
namespace {

using ::tsl::profiler::TraceMeRecorder;

constexpr int64_t kTenYearsMillis = int64_t{10} * 365 * 24 * 3600 * 1000;

// A call of a runner; 0 leaves the timeout to the session.
StagedCall Call(int64_t timeout_millis, bool in_caller = true) {
  StagedCall call;
  call.timeout_millis = timeout_millis;
  call.runs_in_caller = in_caller;
  return call;
}

// A session that can put records. The buffer has room for all.
class CallerSession {
 public:
  CallerSession(const std::string& target, const std::string& stage_name) {
    StageTestGraph stage;
    stage.name = stage_name;
    stage.capacity = 100;
    GraphDef graph;
    StageTestGraph::Add(StageTestGraph::Const("record", Tensor(int64_t{7})),
                        &graph);
    stage.AddTo(&graph, "record");
    SessionOptions options;
    options.target = target;
    session_.reset(NewSession(options));
    TF_CHECK_OK(session_->Create(graph));
    TF_CHECK_OK(
        session_->Run({}, {}, {stage.Node("TensorBufferResume")}, nullptr));
    CallableOptions put;
    put.add_target(stage.Node("TensorBufferPut"));
    TF_CHECK_OK(session_->MakeCallable(put, &put_));
  }
  ~CallerSession() { session_->Close().IgnoreError(); }

  Status Put() {
    std::vector<Tensor> nothing;
    return session_->RunCallable(put_, {}, &nothing, nullptr);
  }

  Session* get() { return session_.get(); }

 private:
  std::unique_ptr<Session> session_;
  Session::CallableHandle put_;
};

// Returns whether the kernel that puts a record ran in this thread.
bool PutsInThisThread(CallerSession* session) {
  EXPECT_TRUE(TraceMeRecorder::Start(tsl::profiler::TraceMeLevel::kInfo));
  EXPECT_EQ(session->Put(), OkStatus());
  int puts = 0;
  bool here = false;
  for (const auto& thread : TraceMeRecorder::Stop()) {
    for (const auto& event : thread.events) {
      // There is room, so the event ends in the thread in which it begins.
      if (!absl::StartsWith(event.name, "TensorBufferPut#")) continue;
      ++puts;
      here = thread.thread.tid ==
             static_cast<uint32_t>(Env::Default()->GetCurrentThreadId());
    }
  }
  EXPECT_EQ(puts, 1);
  return here;
}

TEST(CallerSessionTest, AServersSessionInThisProcessUsesTheCallersThread) {
  CallerSession session(LocalServerTarget(), "server");
  EXPECT_FALSE(PutsInThisThread(&session));
  {
    const ScopedStagedCall no_limit(Call(kTenYearsMillis, /*in_caller=*/false));
    EXPECT_FALSE(PutsInThisThread(&session));
  }
  const ScopedStagedCall in_caller(Call(kTenYearsMillis));
  EXPECT_TRUE(PutsInThisThread(&session));
}

TEST(CallerSessionTest, ACallThatIsGivenUpAfterATimeDoesNot) {
  CallerSession session(LocalServerTarget(), "limit");
  const ScopedStagedCall by_the_session(Call(0));
  EXPECT_FALSE(PutsInThisThread(&session));
  const ScopedStagedCall limit(Call(60000));
  EXPECT_FALSE(PutsInThisThread(&session));
}

TEST(CallerSessionTest, OtherSessionsOfTheServerMayEndMeanwhile) {
  CallerSession session(LocalServerTarget(), "first");
  {
    CallerSession other(LocalServerTarget(), "second");
  }
  const ScopedStagedCall in_caller(Call(kTenYearsMillis));
  EXPECT_TRUE(PutsInThisThread(&session));
}

TEST(CallerSessionTest, AClosedSessionIsNotCalled) {
  CallerSession session(LocalServerTarget(), "closed");
  const ScopedStagedCall in_caller(Call(kTenYearsMillis));
  EXPECT_TRUE(PutsInThisThread(&session));
  ASSERT_EQ(session.get()->Close(), OkStatus());
  EXPECT_TRUE(errors::IsInvalidArgument(session.Put()));
}

}  // namespace
}  // namespace staging
}  // namespace tensorflow
