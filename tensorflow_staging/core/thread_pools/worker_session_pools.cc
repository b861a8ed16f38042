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
struct Sessions {
  mutex mu;
  std::unordered_map<std::string, std::weak_ptr<WorkerSessionPools>> by_handle
      TF_GUARDED_BY(mu);
};

Sessions* GetSessions() {
  static auto* const sessions = new Sessions;
  return sessions;
}

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
  Sessions* const sessions = GetSessions();
  mutex_lock l(sessions->mu);
  std::weak_ptr<WorkerSessionPools>& known = sessions->by_handle[handle];
  *pools = known.lock();
  if (*pools == nullptr) {
    pools->reset(new WorkerSessionPools(handle, config));
    known = *pools;
  }
  return OkStatus();
}

void WorkerSessionPools::ReleaseUnused(std::chrono::milliseconds time) {
  const Clock::time_point limit = Clock::now() - time;
  std::vector<std::shared_ptr<WorkerSessionPools>> living;
  Sessions* const sessions = GetSessions();
  {
    mutex_lock l(sessions->mu);
    for (const auto& [handle, known] : sessions->by_handle) {
      living.push_back(known.lock());
    }
  }
  std::vector<std::shared_ptr<StageThreadPools>> unused;
  for (const auto& session : living) {
    if (session != nullptr) session->TakeUnused(limit, &unused);
  }
}

WorkerSessionPools::WorkerSessionPools(const std::string& handle,
                                       const ConfigProto& config)
    : handle_(handle), options_(OptionsOf(config)) {}

WorkerSessionPools::~WorkerSessionPools() {
  Sessions* const sessions = GetSessions();
  mutex_lock l(sessions->mu);
  // The session may have new pools.
  const auto known = sessions->by_handle.find(handle_);
  if (known != sessions->by_handle.end() && known->second.expired()) {
    sessions->by_handle.erase(known);
  }
}

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
