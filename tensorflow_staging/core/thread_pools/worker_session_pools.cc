// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/worker_session_pools.h"

#include <unordered_map>
#include <utility>

#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"

namespace tensorflow {
namespace staging {
namespace {

// Long enough that a training loop which pauses, for example to write a
// checkpoint, keeps its pools.
constexpr std::chrono::minutes kUnused(1);

// The sessions that have pools.
class Sessions {
 public:
  static Sessions* Get() {
    static auto* const sessions = new Sessions;
    return sessions;
  }

  // Returns those of `handle`, which `create` creates.
  template <typename Create>
  std::shared_ptr<WorkerSessionPools> GetOrCreate(const std::string& handle,
                                                  Create create) {
    mutex_lock l(mu_);
    std::weak_ptr<WorkerSessionPools>& known = sessions_[handle];
    std::shared_ptr<WorkerSessionPools> pools = known.lock();
    if (pools == nullptr) {
      pools = create();
      known = pools;
    }
    return pools;
  }

  std::vector<std::shared_ptr<WorkerSessionPools>> All() {
    std::vector<std::shared_ptr<WorkerSessionPools>> all;
    mutex_lock l(mu_);
    for (const auto& [handle, known] : sessions_) {
      std::shared_ptr<WorkerSessionPools> pools = known.lock();
      if (pools != nullptr) all.push_back(std::move(pools));
    }
    return all;
  }

  // Forgets `handle`, unless it has new pools.
  void Forget(const std::string& handle) {
    mutex_lock l(mu_);
    const auto known = sessions_.find(handle);
    if (known != sessions_.end() && known->second.expired()) {
      sessions_.erase(known);
    }
  }

 private:
  mutex mu_;
  std::unordered_map<std::string, std::weak_ptr<WorkerSessionPools>> sessions_
      TF_GUARDED_BY(mu_);
};

SessionOptions OptionsOf(const ConfigProto& config) {
  SessionOptions options;
  options.config = config;
  return options;
}

}  // namespace

Status WorkerSessionPools::OfSession(
    const std::string& handle, const ConfigProto& config,
    std::shared_ptr<WorkerSessionPools>* pools) {
  *pools = nullptr;
  ConfigFields fields;
  TF_RETURN_IF_ERROR(DecodeConfigFields(config, &fields));
  if (fields.session_stage_subgraph_thread_pool().empty()) return OkStatus();
  *pools = Sessions::Get()->GetOrCreate(handle, [&handle, &config]() {
    return std::shared_ptr<WorkerSessionPools>(
        new WorkerSessionPools(handle, config));
  });
  return OkStatus();
}

void WorkerSessionPools::ReleaseUnused(std::chrono::milliseconds time) {
  const Clock::time_point limit = Clock::now() - time;
  std::vector<std::shared_ptr<StageThreadPools>> unused;
  for (const auto& session : Sessions::Get()->All()) {
    session->TakeUnused(limit, &unused);
  }
}

WorkerSessionPools::WorkerSessionPools(const std::string& handle,
                                       const ConfigProto& config)
    : handle_(handle), options_(OptionsOf(config)) {}

WorkerSessionPools::~WorkerSessionPools() { Sessions::Get()->Forget(handle_); }

Status WorkerSessionPools::Find(int id,
                                std::shared_ptr<StageThreadPools>* pools) {
  {
    mutex_lock l(mu_);
    if (FindKnown(id, pools)) return OkStatus();
  }
  ReleaseUnused(kUnused);
  // Runs that begin meanwhile may need the same pool.
  const KeyedTurns<int>::Turn turn(&turns_, id);
  {
    mutex_lock l(mu_);
    if (FindKnown(id, pools)) return OkStatus();
  }
  TF_RETURN_IF_ERROR(CreateStageThreadPools(options_, id, pools));
  mutex_lock l(mu_);
  pools_[id] = {*pools, Clock::now()};
  return OkStatus();
}

void WorkerSessionPools::Release(int id) {
  // Ends the pools without the lock.
  std::map<int, Pool>::node_type released;
  mutex_lock l(mu_);
  released = pools_.extract(id);
}

bool WorkerSessionPools::FindKnown(int id,
                                   std::shared_ptr<StageThreadPools>* pools) {
  const auto known = pools_.find(id);
  if (known == pools_.end()) return false;
  known->second.last_run = Clock::now();
  *pools = known->second.pools;
  return true;
}

void WorkerSessionPools::TakeUnused(
    Clock::time_point limit,
    std::vector<std::shared_ptr<StageThreadPools>>* unused) {
  mutex_lock l(mu_);
  for (auto it = pools_.begin(); it != pools_.end();) {
    Pool& pool = it->second;
    // A run has a reference, and so has another session that shares the pool.
    if (pool.pools.use_count() > 1 || pool.last_run > limit) {
      ++it;
      continue;
    }
    unused->push_back(std::move(pool.pools));
    it = pools_.erase(it);
  }
}

}  // namespace staging
}  // namespace tensorflow
