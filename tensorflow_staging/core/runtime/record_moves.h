// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_RECORD_MOVES_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_RECORD_MOVES_H_

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// Returns whether a run of `graph` only moves records, from iterators, queues
// and buffers to a buffer: what takes time in it waits for a record, and none
// of its ops computes, runs functions on the threads of the run, or blocks its
// thread, where a master could not cancel it. The ops that are known to do none
// of this are listed; any other op may.
bool OnlyMovesRecords(const Graph& graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_RECORD_MOVES_H_
