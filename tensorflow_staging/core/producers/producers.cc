// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/producers/producers.h"

#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/framework/thread_name.h"
#include "tensorflow_staging/core/producers/producer.h"

namespace tensorflow {
namespace staging {
namespace {

size_t NumDifferent(const std::vector<std::string>& sources) {
  return std::set<std::string>(sources.begin(), sources.end()).size();
}

}  // namespace

Producers::Producers(ProducersOptions options, RegionRuns* runs)
    : options_(std::move(options)),
      runs_(runs),
      number_(options_.tuning->Begin()),
      team_(NumDifferent(options_.sources)) {
  if (options_.any_order) return;
  for (const std::string& source : options_.sources) {
    if (options_.tuning->tunes_threads() ||
        absl::c_count(options_.sources, source) > 1) {
      orders_.emplace(source, std::make_shared<RunOrder>());
    }
  }
}

bool Producers::Start() {
  return StartThreads(options_.tuning->tunes_threads()
                          ? options_.tuning->threads()
                          : options_.sources.size());
}

bool Producers::Begin() {
  int count = 0;
  {
    mutex_lock l(mu_);
    count = threads_.size();
  }
  return team_.SetActive(count);
}

bool Producers::StartThreads(int count) {
  mutex_lock l(mu_);
  if (team_.stopped()) return false;
  for (int i = threads_.size(); i < count; ++i) {
    ++working_;
    team_.Join();
    threads_.emplace_back(Env::Default()->StartThread(
        ThreadOptions(), strings::StrCat(options_.stage, "_prefetch_", i),
        [self = shared_from_this(), i]() { self->Work(i); }));
  }
  return true;
}

void Producers::Work(int index) {
  const ScopedStageThread thread(options_.stage);
  Producer::Options options;
  options.stage = options_.stage;
  options.index = index;
  options.source = index % options_.sources.size();
  options.source_name = options_.sources[options.source];
  const auto order = orders_.find(options.source_name);
  if (order != orders_.end()) options.order = order->second;
  if (index == 0 && (options_.tuning->tunes_threads() ||
                     runs_->FoundCapacity().has_value())) {
    options.on_record = [this] { OnRecord(); };
  }
  Producer(std::move(options), runs_, &team_).Work();
  team_.Leave();
  {
    mutex_lock l(mu_);
    if (working_ > 1) {
      --working_;
      return;
    }
  }
  if (options_.on_last_left != nullptr) options_.on_last_left();
  // From here on what they ran may be gone.
  mutex_lock l(mu_);
  --working_;
  left_.NotifyAll();
}

void Producers::OnRecord() {
  StageTuning* const tuning = options_.tuning.get();
  if (!options_.any_order && !CanKeepOrder()) return;
  const int before = tuning->threads();
  tuning->OnRecord(number_, options_.stage, team_.records(), runs_);
  const int threads = tuning->threads();
  if (!tuning->tunes_threads() || threads == before) return;
  StartThreads(threads);
  team_.SetActive(threads);
}

bool Producers::Stop() {
  bool is_first = false;
  {
    // No thread is started from here on.
    mutex_lock l(mu_);
    is_first = team_.Stop();
  }
  for (const auto& [source, order] : orders_) order->Release();
  return is_first;
}

bool Producers::keep_order() const {
  return !options_.any_order && NumDifferent(options_.sources) == 1 &&
         CanKeepOrder();
}

bool Producers::AwaitLeft(std::chrono::milliseconds patience,
                          const std::function<bool()>& is_awaited) {
  auto began = std::chrono::steady_clock::now();
  mutex_lock l(mu_);
  while (working_ > 0) {
    if (is_awaited != nullptr && is_awaited()) {
      left_.Wait(&mu_);
      began = std::chrono::steady_clock::now();
      continue;
    }
    const auto left = began + patience - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    left_.WaitFor(&mu_, left);
  }
  return true;
}

void Producers::CheckAwaited() {
  mutex_lock l(mu_);
  left_.NotifyAll();
}

void Producers::Join() {
  std::vector<std::unique_ptr<Thread>> threads;
  {
    mutex_lock l(mu_);
    threads.swap(threads_);
  }
}

}  // namespace staging
}  // namespace tensorflow
