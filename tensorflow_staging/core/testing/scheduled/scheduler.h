// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_SCHEDULER_H_
#define TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_SCHEDULER_H_

#include <chrono>  // NOLINT
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow_staging/core/testing/scheduled/fiber.h"
#include "tensorflow_staging/core/testing/scheduled/random.h"

namespace tensorflow {
namespace scheduled {

// A simulated thread.
class SimulatedThread {
 public:
  const std::string& name() const { return name_; }
  bool has_ended() const { return fiber_.has_returned(); }

 private:
  friend class Scheduler;

  SimulatedThread(std::string name, std::function<void()> body)
      : name_(std::move(name)), fiber_(std::move(body)) {}

  const std::string name_;
  Fiber fiber_;
  // What it waits for; null if it may go on.
  const char* waits_for_ = nullptr;
  // When it goes on at the latest.
  int64_t wakes_at_ = 0;
  bool has_timed_out_ = false;
  // It does not go on before this step, if another one can: it may be slow.
  int64_t sleeps_until_ = 0;
};

// Runs simulated threads, of which exactly one runs at a time. Which one goes on,
// and how slow each one is, depends on a seed alone; so does the time, which is
// that of a simulated clock.
//
// The primitives of this folder call Point where another thread may go on, and
// Wait where another one has to.
class Scheduler {
 public:
  // The one that runs the caller; null if none does.
  static Scheduler* Current();

  explicit Scheduler(uint64_t seed);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Runs `main` and what it starts until all have ended. Returns what went wrong:
  // that no thread can go on, with what each one waits for, or that some never
  // end. Empty if nothing did.
  std::string Run(std::function<void()> main);

  // ---- For the threads.

  std::shared_ptr<SimulatedThread> Start(std::string name,
                                         std::function<void()> body);
  SimulatedThread* thread() const { return running_; }

  // Another thread may go on here.
  void Point();
  // Waits until another thread calls Wake, or until `time` has passed. Returns
  // whether it was Wake.
  bool Wait(const char* what,
            std::chrono::nanoseconds time = std::chrono::nanoseconds::max());
  void Wake(SimulatedThread* thread);

  std::chrono::nanoseconds now() const {
    return std::chrono::nanoseconds(now_);
  }
  Random& random() { return random_; }
  // A number that no other scheduler of the process has.
  int64_t number() const { return number_; }
  int64_t steps() const { return steps_; }
  // Differs if anything has happened in another order.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  static constexpr int64_t kNever = INT64_MAX;

  // Returns null if none can go on.
  SimulatedThread* Choose();
  // The clock passes the earliest time for which a thread waits. Returns false if
  // none waits for a time.
  bool PassTime();
  void MakeSlow(SimulatedThread* thread);
  std::string Describe(const std::string& failure) const;

  const int64_t number_;
  Random random_;
  // How likely a thread goes on at a Point: all but one in so many times, how
  // often one is slow, and how often time passes while threads can go on.
  const int64_t switch_one_in_;
  const int64_t slow_one_in_;
  const int64_t time_one_in_;

  std::vector<std::shared_ptr<SimulatedThread>> threads_;
  std::vector<SimulatedThread*> ready_;
  SimulatedThread* running_ = nullptr;
  int64_t now_ = 0;
  int64_t steps_ = 0;
  uint64_t fingerprint_ = 0;
};

}  // namespace scheduled
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_SCHEDULED_SCHEDULER_H_
