// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_REGION_OPS_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_REGION_OPS_H_

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// The properties of a run's ops that decide on which threads it runs.

// Returns whether a run of `graph` may call Python, which can wait for anything
// for any time: in its own ops, in the functions among `functions` that these
// call, also through a dataset, or in the datasets that other runs give to its
// iterators. The graph does not show those datasets, so if it has an iterator
// of another run, all of `functions` count.
bool MayCallPython(const Graph& graph,
                   const FunctionLibraryDefinition& functions);

// Returns whether `graph` uses an iterator that another run gives its dataset.
bool UsesIteratorOfOtherRun(const Graph& graph);

// Returns whether a run of `graph` only moves records, from iterators, queues
// and buffers to a buffer: what takes time in it waits for a record, and none
// of its ops computes, runs functions on the threads of the run, or blocks its
// thread, where a master could not cancel it. The ops that are known to do none
// of this are listed; any other op may.
bool OnlyMovesRecords(const Graph& graph);

// Returns how many ops of such a graph get a record, for which they may wait, from
// an iterator, a queue or a buffer.
int NumReads(const Graph& graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_REGION_OPS_H_
