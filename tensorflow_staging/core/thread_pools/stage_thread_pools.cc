// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/thread_pools/stage_thread_pools.h"

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <system_error>  // NOLINT
#include <thread>        // NOLINT
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/process_util.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/platform/cpu_info.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/strcat.h"
#include "tensorflow_staging/core/protobuf/staging_fields_decoder.h"
#include "tensorflow_staging/core/thread_pools/keyed_turns.h"
#include "tensorflow_staging/core/thread_pools/stage_thread_pools_env.h"

namespace tensorflow {
namespace staging {

struct StageThreadPoolsSpec {
  std::string name;
  int inter_op_threads;
  int intra_op_threads;
  // Empty means any core.
  Cores cores;
  // Whether idle threads spin before they sleep.
  bool spin;

  bool operator<(const StageThreadPoolsSpec& other) const {
    return std::tie(name, inter_op_threads, intra_op_threads, cores, spin) <
           std::tie(other.name, other.inter_op_threads, other.intra_op_threads,
                    other.cores, other.spin);
  }
};

namespace {

// Users do not use this container, so Session::Reset() does not clear it.
constexpr char kContainer[] = "_tensorflow_staging";
constexpr char kResource[] = "stage_thread_pools";

// The most threads of one pool: Eigen's EventCount, in which the threads of a
// pool wait, has 14 bits to count them.
constexpr int kMaxThreads = (1 << 14) - 2;
// The most threads of all pools of the process. One pair may have as many.
constexpr int kMaxThreadsOfProcess = 2 * kMaxThreads;

std::atomic<int>* ThreadsOfProcess() {
  static auto* const threads = new std::atomic<int>(0);
  return threads;
}

// Counts the threads of new pools.
Status ClaimThreads(int count) {
  const int before = ThreadsOfProcess()->fetch_add(count);
  if (before + count <= kMaxThreadsOfProcess) return OkStatus();
  ThreadsOfProcess()->fetch_sub(count);
  return errors::ResourceExhausted("A stage thread pool with ", count,
                                   " threads cannot be created: those "
                                   "of this process have ",
                                   before, ", and may have ",
                                   kMaxThreadsOfProcess, " together.");
}

// Presents a thread pool as a ThreadPoolInterface, the interface for pools that
// the caller of a run provides.
class OwnedThreadPool : public thread::ThreadPoolInterface {
 public:
  OwnedThreadPool(const std::string& name, int num_threads, const Cores& cores,
                  bool spin)
      : env_(name, cores),
        pool_(&env_, ThreadOptions(), name, num_threads, spin) {}

  void Schedule(std::function<void()> closure) override {
    pool_.Schedule(std::move(closure));
  }
  void ScheduleWithHint(std::function<void()> closure, int start,
                        int end) override {
    pool_.ScheduleWithHint(std::move(closure), start, end);
  }
  void Cancel() override { pool_.AsEigenThreadPool()->Cancel(); }
  int NumThreads() const override { return pool_.NumThreads(); }
  int CurrentThreadId() const override { return pool_.CurrentThreadId(); }

 private:
  StageThreadPoolsEnv env_;
  thread::ThreadPool pool_;
};

// Describes the properties in which pools of the same name may differ.
std::string Describe(const StageThreadPoolsSpec& spec) {
  return strings::StrCat(spec.inter_op_threads, " inter-op and ",
                         spec.intra_op_threads, " intra-op threads on ",
                         spec.cores.empty()
                             ? "any core"
                             : "cores " + absl::StrJoin(spec.cores, ", "));
}

// The pools of one session.
struct SessionStageThreadPools : public ResourceBase {
  std::string DebugString() const override {
    return strings::StrCat(pools.size(), " stage thread pools");
  }

  std::vector<std::shared_ptr<StageThreadPools>> pools;
};

// The pools of this process that have a global_name and are in use.
class GlobalPools {
 public:
  Status GetOrCreate(const StageThreadPoolsSpec& spec,
                     std::shared_ptr<StageThreadPools>* pools) {
    const KeyedTurns<StageThreadPoolsSpec>::Turn turn(&turns_, spec);
    {
      mutex_lock lock(mu_);
      const auto known = pools_.find(spec);
      if (known != pools_.end()) *pools = known->second.lock();
      if (*pools != nullptr) return OkStatus();
    }
    std::shared_ptr<StageThreadPools> created;
    TF_RETURN_IF_ERROR(StageThreadPools::Create(spec, &created));
    // The entry goes with the pools, so that a process which creates pools of
    // ever new names does not grow.
    StageThreadPools* const raw = created.get();
    *pools = {raw, [this, spec,
                    created = std::move(created)](StageThreadPools*) mutable {
                created.reset();
                Forget(spec);
              }};
    mutex_lock lock(mu_);
    WarnIfNameIsInUse(spec);
    pools_[spec] = *pools;
    return OkStatus();
  }

  int size() {
    mutex_lock lock(mu_);
    return pools_.size();
  }

 private:
  // Removes the entry of pools that have ended, unless it has new ones.
  void Forget(const StageThreadPoolsSpec& spec) {
    mutex_lock lock(mu_);
    const auto it = pools_.find(spec);
    if (it != pools_.end() && it->second.expired()) pools_.erase(it);
  }

  // Warns if a pool of the same name, but with other properties, is in use.
  void WarnIfNameIsInUse(const StageThreadPoolsSpec& spec)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const auto& [other, pools] : pools_) {
      if (other.name != spec.name || pools.expired()) continue;
      LOG(WARNING) << "The stage thread pool '" << spec.name
                   << "' already exists with " << Describe(other)
                   << "; a second one is created with " << Describe(spec)
                   << ". Give each pool a global_name of its own.";
      return;
    }
  }

  // Those of threads that create pools, which takes long if they have many
  // threads.
  KeyedTurns<StageThreadPoolsSpec> turns_;
  mutex mu_;
  std::map<StageThreadPoolsSpec, std::weak_ptr<StageThreadPools>> pools_
      TF_GUARDED_BY(mu_);
};

GlobalPools* Globals() {
  static GlobalPools* const globals = new GlobalPools;
  return globals;
}

Status CheckNumThreads(int id, const char* field, int num_threads) {
  if (num_threads >= 0 && num_threads <= kMaxThreads) return OkStatus();
  return errors::InvalidArgument(
      "ConfigProto.session_stage_subgraph_thread_pool[", id, "].", field,
      " must be from 1 to ", kMaxThreads,
      ", or 0, which means the number that the session itself uses; got ",
      num_threads, ".");
}

Status CheckSizes(const StageThreadPoolOptions& entry, int id) {
  TF_RETURN_IF_ERROR(CheckNumThreads(id, "inter_op_threads_num",
                                     entry.inter_op_threads_num()));
  return CheckNumThreads(id, "intra_op_threads_num",
                         entry.intra_op_threads_num());
}

Status ReadCores(const StageThreadPoolOptions& entry, int id, Cores* cores) {
  if (entry.cpu_affinity().empty()) return OkStatus();
  const Cores available = AvailableCores();
  for (const int core : entry.cpu_affinity()) {
    if (available.count(core) == 0) {
      return errors::InvalidArgument(
          "ConfigProto.session_stage_subgraph_thread_pool[", id,
          "].cpu_affinity has ", core, "; this process may use the cores ",
          absl::StrJoin(available, ", "), ". An empty list means any core.");
    }
    cores->insert(core);
  }
  return OkStatus();
}

// For an entry of 0: the number that a session without stages uses.
int DefaultIntraOpThreads(const SessionOptions& options) {
  const int configured = options.config.intra_op_parallelism_threads();
  return configured > 0 ? configured : port::MaxParallelism();
}

Status ReadSpec(const SessionOptions& options,
                const StageThreadPoolOptions& entry, int id,
                StageThreadPoolsSpec* spec) {
  const int inter_op = entry.inter_op_threads_num();
  const int intra_op = entry.intra_op_threads_num();
  TF_RETURN_IF_ERROR(CheckSizes(entry, id));
  TF_RETURN_IF_ERROR(ReadCores(entry, id, &spec->cores));
  spec->name = entry.global_name();
  spec->inter_op_threads =
      inter_op > 0 ? inter_op : NumInterOpThreadsFromSessionOptions(options);
  spec->intra_op_threads =
      intra_op > 0 ? intra_op : DefaultIntraOpThreads(options);
  // What the session itself uses comes from its configuration, too.
  TF_RETURN_IF_ERROR(
      CheckNumThreads(id, "inter_op_threads_num", spec->inter_op_threads));
  TF_RETURN_IF_ERROR(
      CheckNumThreads(id, "intra_op_threads_num", spec->intra_op_threads));
  spec->spin = !options.config.experimental().disable_thread_spinning();
  return OkStatus();
}

// Shares pools with a global_name. The threads of a session's own pools have
// the entry's index in their names.
Status GetOrCreatePools(StageThreadPoolsSpec spec, int id,
                        std::shared_ptr<StageThreadPools>* pools) {
  if (!spec.name.empty()) return Globals()->GetOrCreate(spec, pools);
  spec.name = strings::StrCat("stage", id);
  return StageThreadPools::Create(spec, pools);
}

}  // namespace

Status CheckAsksForNoOtherThreads(const RunOptions& run_options) {
  const char* other = nullptr;
  if (run_options.inter_op_thread_pool() != 0) {
    other = "inter_op_thread_pool";
  } else if (run_options.experimental().use_run_handler_pool()) {
    other = "experimental.use_run_handler_pool";
  }
  if (other == nullptr) return OkStatus();
  return errors::InvalidArgument(
      "RunOptions.use_stage_subgraph_thread_pool and RunOptions.", other,
      " each choose the threads of a run; set only one of them.");
}

int CountSharedStageThreadPools() { return Globals()->size(); }

StageThreadPools::StageThreadPools(const StageThreadPoolsSpec& spec)
    : inter_op_(std::make_unique<OwnedThreadPool>(
          strings::StrCat(spec.name, "_inter_op"), spec.inter_op_threads,
          spec.cores, spec.spin)),
      intra_op_(std::make_unique<OwnedThreadPool>(
          strings::StrCat(spec.name, "_intra_op"), spec.intra_op_threads,
          spec.cores, spec.spin)),
      options_{inter_op_.get(), intra_op_.get()} {}

StageThreadPools::~StageThreadPools() {
  ThreadsOfProcess()->fetch_sub(inter_op_->NumThreads() +
                                intra_op_->NumThreads());
}

Status StageThreadPools::Create(const StageThreadPoolsSpec& spec,
                                std::shared_ptr<StageThreadPools>* pools) {
  const int threads = spec.inter_op_threads + spec.intra_op_threads;
  TF_RETURN_IF_ERROR(ClaimThreads(threads));
  const Status status = CheckCanStartThreads(threads);
  if (!status.ok()) {
    ThreadsOfProcess()->fetch_sub(threads);
    return status;
  }
  *pools = {new StageThreadPools(spec), &End};
  return OkStatus();
}

void StageThreadPools::End(StageThreadPools* pools) {
  if (pools->inter_op_->CurrentThreadId() < 0 &&
      pools->intra_op_->CurrentThreadId() < 0) {
    delete pools;
    return;
  }
  try {
    std::thread([pools]() { delete pools; }).detach();
  } catch (const std::system_error& error) {
    LOG(ERROR) << "The process can start no thread to end a stage thread pool, "
                  "whose threads stay: "
               << error.what();
  }
}

Status CheckStageThreadPoolSizes(const ConfigProto& config) {
  ConfigFields fields;
  TF_RETURN_IF_ERROR(DecodeConfigFields(config, &fields));
  const auto& entries = fields.session_stage_subgraph_thread_pool();
  for (int id = 0; id < entries.size(); ++id) {
    TF_RETURN_IF_ERROR(CheckSizes(entries[id], id));
  }
  return OkStatus();
}

Status CreateStageThreadPools(const SessionOptions& options, int id,
                              std::shared_ptr<StageThreadPools>* pools) {
  ConfigFields fields;
  TF_RETURN_IF_ERROR(DecodeConfigFields(options.config, &fields));
  const auto& entries = fields.session_stage_subgraph_thread_pool();
  if (id < 0 || id >= entries.size()) {
    return NoSuchStageThreadPools(id, entries.size());
  }
  StageThreadPoolsSpec spec;
  TF_RETURN_IF_ERROR(ReadSpec(options, entries[id], id, &spec));
  return GetOrCreatePools(std::move(spec), id, pools);
}

Status NoSuchStageThreadPools(int id, int size) {
  return errors::InvalidArgument(
      "The run asks for stage thread pool ", id, ", but the session has ", size,
      " of them. Add an entry to "
      "ConfigProto.session_stage_subgraph_thread_pool for each pool, and "
      "set RunOptions.stage_subgraph_thread_pool_id to the index of one.");
}

Status AddStageThreadPools(const SessionOptions& options,
                           ResourceMgr* resources) {
  ConfigFields fields;
  TF_RETURN_IF_ERROR(DecodeConfigFields(options.config, &fields));
  const auto& entries = fields.session_stage_subgraph_thread_pool();
  if (entries.empty()) return OkStatus();

  // Validate every entry before any thread starts.
  std::vector<StageThreadPoolsSpec> specs(entries.size());
  for (int id = 0; id < entries.size(); ++id) {
    TF_RETURN_IF_ERROR(ReadSpec(options, entries[id], id, &specs[id]));
  }
  core::RefCountPtr<SessionStageThreadPools> session_pools(
      new SessionStageThreadPools);
  session_pools->pools.resize(entries.size());
  for (int id = 0; id < entries.size(); ++id) {
    TF_RETURN_IF_ERROR(
        GetOrCreatePools(specs[id], id, &session_pools->pools[id]));
  }
  return resources->Create(kContainer, kResource, session_pools.release());
}

Status FindStageThreadPools(const RunOptions& run_options,
                            ResourceMgr* resources,
                            const StageThreadPools** pools) {
  *pools = nullptr;
  RunFields fields;
  TF_RETURN_IF_ERROR(DecodeRunFields(run_options, &fields));
  if (!fields.use_stage_subgraph_thread_pool()) return OkStatus();
  TF_RETURN_IF_ERROR(CheckAsksForNoOtherThreads(run_options));

  const int id = fields.stage_subgraph_thread_pool_id();
  SessionStageThreadPools* found = nullptr;
  resources->Lookup(kContainer, kResource, &found).IgnoreError();
  // The session holds its own reference until its destruction.
  const core::RefCountPtr<SessionStageThreadPools> session_pools(found);
  const int size = session_pools ? session_pools->pools.size() : 0;
  if (id < 0 || id >= size) return NoSuchStageThreadPools(id, size);
  *pools = session_pools->pools[id].get();
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
