// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_TENSOR_BUFFER_CALLS_H_
#define TENSORFLOW_STAGING_CORE_TESTING_TENSOR_BUFFER_CALLS_H_

// Blocking calls of a TensorBuffer, and results of asynchronous ones, its runs
// and what they read, for tests.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_staging/core/buffer/tensor_buffer.h"
#include "tensorflow_staging/core/sources/read_set.h"
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
                  const StagedRun* run = nullptr) {
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
  return std::make_unique<StagedRun>(tsl::core::GetNewRef<SourceReader>(buffer),
                                     producer);
}

// Puts a record as the Put of a run does.
inline Status Put(StagedRun* run, int64_t value) {
  const Status status = Put(static_cast<TensorBuffer*>(run->stage()),
                            MakeRecord(value), kNoTimeout, run);
  if (status.ok()) run->NotePut();
  return status;
}

// An iterator, as stages see it.
class TestIterator {
 public:
  ~TestIterator() { Source::Forget(&iterator_); }

  const std::shared_ptr<Source>& source() const { return source_; }

  // What a run has read that has read this iterator now.
  ReadSet reads() const {
    ReadSet reads;
    reads.Add(source_, source_->version());
    return reads;
  }

  // Takes the numbers that it has got back.
  std::vector<int64_t> TakeGivenBack() const {
    std::vector<int64_t> numbers;
    while (auto element = source_->TakeGivenBack(source_->version())) {
      numbers.push_back(element->tensors[0].scalar<int64_t>()());
    }
    return numbers;
  }

  // Gives the iterator other data, in the session's run number `step`.
  void Change(int64_t step = 1, Source::RestoredRecords restored = {}) {
    for (const auto& reader : source_->Change(restored)) {
      reader->OnSourceChanged(step, restored[reader->name()], reads())();
    }
  }

 private:
  // Only its address counts.
  const char iterator_ = 0;
  const std::shared_ptr<Source> source_ = Source::Of(&iterator_);
};

// Expects that each record that was put was taken, was discarded or is still in
// the buffer.
inline void ExpectBalanced(const TensorBuffer& buffer) {
  const BufferStats stats = buffer.GetStats();
  EXPECT_EQ(stats.put(), stats.taken() + stats.discarded() + stats.records());
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_TENSOR_BUFFER_CALLS_H_
