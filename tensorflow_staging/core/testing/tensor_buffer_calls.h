// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_TENSOR_BUFFER_CALLS_H_
#define TENSORFLOW_STAGING_CORE_TESTING_TENSOR_BUFFER_CALLS_H_

// Blocking calls of a TensorBuffer, and results of asynchronous ones, its runs
// and what they read, for tests.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/platform/thread_annotations.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/sources/ledger.h"
#include "tensorflow_staging/core/sources/read_set.h"
#include "tensorflow_staging/core/sources/roll_back.h"
#include "tensorflow_staging/core/sources/save_moment.h"
#include "tensorflow_staging/core/sources/source.h"
#include "tensorflow_staging/core/sources/staged_run.h"

namespace tensorflow {
namespace staging {

using Record = TensorBuffer::Record;

// As a put's timeout, 0 sets no limit.
constexpr int64_t kNoTimeout = 0;
constexpr int64_t kShortMillis = 2;

inline core::RefCountPtr<TensorBuffer> MakeBuffer(int64_t capacity,
                                                  int64_t capacity_bytes = 0) {
  TensorBuffer::Options options;
  options.name = "prefetch";
  options.capacity = capacity;
  options.capacity_bytes = capacity_bytes;
  return core::RefCountPtr<TensorBuffer>(new TensorBuffer(options));
}

inline Record MakeRecord(int64_t value) { return {Tensor(value)}; }

// The outcome of one asynchronous put. The callback shares it, because it may
// come in another thread after the test that did not wait for it has ended.
class PutResult {
 public:
  TensorBuffer::PutDone Callback() {
    return [outcome = outcome_](const Status& status) {
      outcome->status = status;
      outcome->done.Notify();
    };
  }

  bool done() const { return outcome_->done.HasBeenNotified(); }
  Status Wait() {
    outcome_->done.WaitForNotification();
    return outcome_->status;
  }

 private:
  struct Outcome {
    Status status;
    Notification done;
  };
  const std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();
};

// The outcome of one asynchronous take, shared in the same way.
class TakeResult {
 public:
  TensorBuffer::TakeDone Callback() {
    return
        [outcome = outcome_](const Status& status, TensorBuffer::Taken taken) {
          outcome->status = status;
          outcome->taken = std::move(taken);
          outcome->done.Notify();
        };
  }

  bool done() const { return outcome_->done.HasBeenNotified(); }
  Status Wait() {
    outcome_->done.WaitForNotification();
    return outcome_->status;
  }
  const TensorBuffer::Taken& taken() {
    outcome_->done.WaitForNotification();
    return outcome_->taken;
  }
  // Waits for the take. Returns the number in the record, or -1 without one.
  int64_t value() {
    outcome_->done.WaitForNotification();
    const Record& record = outcome_->taken.record;
    return record.empty() ? -1 : record[0].scalar<int64_t>()();
  }

 private:
  struct Outcome {
    Status status;
    TensorBuffer::Taken taken;
    Notification done;
  };
  const std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();
};

inline Status Put(TensorBuffer* buffer, Record record,
                  int64_t timeout_millis = kNoTimeout,
                  StagedRun* run = nullptr) {
  PutResult result;
  buffer->PutAsync(std::move(record), timeout_millis, nullptr,
                   result.Callback(), run);
  return result.Wait();
}

inline Status Put(TensorBuffer* buffer, int64_t value) {
  return Put(buffer, MakeRecord(value));
}

// Takes one record and returns its number, or -1 if the take failed.
inline int64_t Take(TensorBuffer* buffer) {
  TakeResult result;
  buffer->TakeAsync(nullptr, result.Callback());
  return result.value();
}

inline Status TakeStatus(TensorBuffer* buffer) {
  TakeResult result;
  buffer->TakeAsync(nullptr, result.Callback());
  return result.Wait();
}

// Begins a run of a producer.
inline std::unique_ptr<StagedRun> BeginRun(TensorBuffer* buffer,
                                           uint64_t producer = 1) {
  return std::make_unique<StagedRun>(tsl::core::GetNewRef<Stage>(buffer),
                                     producer);
}

// Puts a record as the Put of a run does.
inline Status Put(StagedRun* run, int64_t value) {
  const Status status = Put(static_cast<TensorBuffer*>(run->stage()),
                            MakeRecord(value), kNoTimeout, run);
  if (status.ok()) run->NotePut();
  return status;
}

// Begins a save of iterators, which ends with the result.
inline core::RefCountPtr<SaveMoment> BeginSave() {
  return core::RefCountPtr<SaveMoment>(new SaveMoment);
}

using Numbers = std::vector<int64_t>;

// What a read of a TestIterator returns instead of a number.
constexpr int64_t kEndOfData = -1;
constexpr int64_t kStaleRead = -2;

// An iterator over numbers, as stages see it. It is read and changed as
// IteratorResource does it. Thread-safe.
class TestIterator {
 public:
  explicit TestIterator(int64_t begin = 0, int64_t end = kNoEnd)
      : data_(std::make_shared<Data>(begin, end)) {}
  ~TestIterator() { Source::Forget(&iterator_); }

  const std::shared_ptr<Source>& source() const { return source_; }

  // Reads the next number for a run. Gives back what a stale run has read.
  int64_t Read(const std::shared_ptr<ReadSet>& reads) {
    CancellationManager cancellation;
    const StatusOr<int64_t> turn = source_->AwaitTurn(&cancellation);
    TF_CHECK_OK(turn.status());
    const auto [data, version] = Capture(*turn);
    std::shared_ptr<const Outcome> outcome;
    Source::Got got = source_->TakeBack(version, reads, &outcome);
    if (got == Source::Got::kNothing) {
      outcome = data->Next();
      got = source_->Enter(version, reads, &outcome);
    }
    source_->EndTurn(*turn);
    if (got == Source::Got::kEntry) return NumberIn(*outcome);
    GiveBack(reads);
    return kStaleRead;
  }
  int64_t Read(const StagedRun& run) { return Read(run.reads()); }

  // The program itself reads the next number.
  int64_t ReadBeside() {
    CancellationManager cancellation;
    const StatusOr<int64_t> turn = source_->AwaitTurn(&cancellation);
    TF_CHECK_OK(turn.status());
    const auto [data, version] = Capture(*turn);
    RollBack().GiveBackAll(source_);
    std::shared_ptr<const Outcome> outcome;
    if (source_->TakeBack(version, /*reads=*/nullptr, &outcome) !=
        Source::Got::kEntry) {
      outcome = data->Next();
      source_->NoteUse();
    }
    source_->EndTurn(*turn);
    return NumberIn(*outcome);
  }

  // Gives the iterator other data, after the numbers `restored`.
  void Change(int64_t begin = 0, int64_t end = kNoEnd,
              const Numbers& restored = {}) {
    Outcomes outcomes;
    for (int64_t number : restored) outcomes.push_back(OutcomeOf(number));
    RollBack roll_back;
    mutex_lock l(mu_);
    data_ = std::make_shared<Data>(begin, end);
    roll_back.Change(source_, std::move(outcomes));
    // The lock is released before `roll_back` tells the stages.
  }

  // Calls `call` in the next read that gets no entry that is back.
  void DuringNextRead(std::function<void()> call) {
    mutex_lock l(mu_);
    mutex_lock l_data(data_->mu);
    data_->during_next = std::move(call);
  }

  // What a save from `moment` on would have beside the position.
  Numbers UnusedAt(int64_t moment) const {
    Numbers numbers;
    for (const auto& outcome : source_->UnusedAt(moment)) {
      numbers.push_back(NumberIn(*outcome));
    }
    return numbers;
  }
  Numbers Unused() const { return UnusedAt(BeginSave()->value()); }

 private:
  static constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

  static std::shared_ptr<const Outcome> OutcomeOf(int64_t number) {
    auto outcome = std::make_shared<Outcome>();
    outcome->is_end = number == kEndOfData;
    if (!outcome->is_end) outcome->element = MakeRecord(number);
    return outcome;
  }
  static int64_t NumberIn(const Outcome& outcome) {
    return outcome.is_end ? kEndOfData : outcome.element[0].scalar<int64_t>()();
  }

  struct Data {
    Data(int64_t begin, int64_t end) : next(begin), end(end) {}

    std::shared_ptr<const Outcome> Next() {
      std::function<void()> call;
      {
        mutex_lock l(mu);
        call = std::exchange(during_next, nullptr);
      }
      if (call != nullptr) call();
      mutex_lock l(mu);
      return OutcomeOf(next < end ? next++ : kEndOfData);
    }

    mutex mu;
    int64_t next TF_GUARDED_BY(mu);
    const int64_t end;
    std::function<void()> during_next TF_GUARDED_BY(mu);
  };

  std::pair<std::shared_ptr<Data>, int64_t> Capture(int64_t turn) {
    mutex_lock l(mu_);
    source_->NoteRead(turn);
    return {data_, source_->version()};
  }

  // Only its address counts.
  const char iterator_ = 0;
  const std::shared_ptr<Source> source_ = Source::Of(&iterator_);
  mutex mu_;
  std::shared_ptr<Data> data_ TF_GUARDED_BY(mu_);
};

// Runs a region that puts the next number of each of `iterators`, added up.
// Returns the put number, or what ended the run instead.
inline int64_t RunStage(TensorBuffer* buffer,
                        std::initializer_list<TestIterator*> iterators,
                        uint64_t producer = 1) {
  const auto run = BeginRun(buffer, producer);
  EXPECT_TRUE(run->is_admitted());
  int64_t sum = 0;
  for (TestIterator* iterator : iterators) {
    const int64_t number = iterator->Read(*run);
    if (number < 0) {
      run->End(number == kEndOfData ? errors::OutOfRange("End of sequence")
                                    : run->StaleStatus());
      return number;
    }
    sum += number;
  }
  EXPECT_EQ(Put(run.get(), sum), OkStatus());
  return sum;
}

// Takes `buffer`'s oldest record for `run`, as the Take of a later stage of a
// chain does. Returns its number.
inline int64_t Take(TensorBuffer* buffer, const StagedRun& run) {
  while (true) {
    TakeResult take;
    buffer->TakeAsync(nullptr, take.Callback(), &run);
    const TensorBuffer::Taken& taken = take.taken();
    if (taken.reads == nullptr || RollBack().Absorb(taken.reads, run.reads())) {
      return take.value();
    }
  }
}

// Expects that each record that was put was taken, was discarded or is still in
// the buffer.
inline void ExpectBalanced(const TensorBuffer& buffer) {
  const BufferStats stats = buffer.GetStats();
  EXPECT_EQ(stats.put(), stats.taken() + stats.discarded() + stats.records());
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_TENSOR_BUFFER_CALLS_H_
