// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_PRODUCERS_RUN_OUTCOME_H_
#define TENSORFLOW_STAGING_CORE_PRODUCERS_RUN_OUTCOME_H_

namespace tensorflow {
namespace staging {

// What a run of a region means for its stage, and what its producer does then.
enum class RunOutcome {
  kRecord,   // It put a record. Counts it, continues.
  kStale,    // It failed only because something else gets what it has read.
             // Repeats it, whatever its error.
  kIgnored,  // It failed with an error that the stage ignores. Counts and logs
             // it, continues.
  kEndOfData,  // It found the end of its data. Closes the buffer, once all
               // sources of the stage have ended.
  kFailed,     // It failed otherwise, or put no record. Closes the buffer with
               // the error. The first such error is the cause that ends the
               // stage.
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_PRODUCERS_RUN_OUTCOME_H_
