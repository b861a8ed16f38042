// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SOURCES_RESUMED_STAGE_H_
#define TENSORFLOW_STAGING_CORE_SOURCES_RESUMED_STAGE_H_

#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_staging/core/framework/scoped_thread_value.h"
#include "tensorflow_staging/core/sources/source_reader.h"

namespace tensorflow {
namespace staging {

// How a runner finds the buffer of its stage, if the session is a local one:
// the op that opens the buffer runs in the thread that calls the session.

// Where the ops that the calling thread runs leave the stage that they open;
// null if nobody asks.
core::WeakPtr<SourceReader>* ResumedStage();

// Asks for it. Must live on the stack of one thread.
class ScopedResumedStage {
 public:
  explicit ScopedResumedStage(core::WeakPtr<SourceReader>* stage);

 private:
  const ScopedThreadValue<core::WeakPtr<SourceReader>*> stage_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SOURCES_RESUMED_STAGE_H_
