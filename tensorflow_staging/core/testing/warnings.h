// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_WARNINGS_H_
#define TENSORFLOW_STAGING_CORE_TESTING_WARNINGS_H_

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {
namespace staging {

// Collects the warnings with `word` that the process logs while this object
// exists.
class Warnings : public TFLogSink {
 public:
  explicit Warnings(const std::string& word) : word_(word) {
    TFAddLogSink(this);
  }
  ~Warnings() override { TFRemoveLogSink(this); }

  void Send(const TFLogEntry& entry) override {
    if (entry.log_severity() != absl::LogSeverity::kWarning) return;
    if (!absl::StrContains(entry.ToString(), word_)) return;
    mutex_lock l(mu_);
    texts_.push_back(entry.ToString());
  }
  void WaitTillSent() override {}

  std::vector<std::string> Texts() {
    mutex_lock l(mu_);
    return texts_;
  }

 private:
  const std::string word_;
  mutex mu_;
  std::vector<std::string> texts_ TF_GUARDED_BY(mu_);
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_WARNINGS_H_
