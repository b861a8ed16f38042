// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_LATE_ITERATOR_READERS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_LATE_ITERATOR_READERS_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow_staging/core/graph/facts/node_filter.h"

namespace tensorflow {
namespace staging {

// Connects late sources with running stages, in a graph that RewriteStages has
// rewritten. A late source is one that was added after the stages had begun to
// run: `counts` rejects it. The next elements of an iterator that a stage reads
// are in the buffer of the stage, so a late source of this iterator takes them
// from there:
//
//   before:   stage/...Take ----------> next (stand-in of the stage's source)
//             iterator ---------------> late (IteratorGetNext)
//
//   after:    stage/...Take ----------> next
//             stage/...Take/late -----> late, of the same op as next
//
// Each source of an iterator yields its next element whenever a run needs it,
// and no two of them yield the same. The same holds with a Take for each. In a
// chain of stages, the elements come from the last one.
//
// A late source that cannot take the place of the stage's source is marked, so
// that runs that need it fail (CheckNoSourceReadsBeside): a record holds the
// elements of several sources, or not all elements; the two sources are of
// different ops; or the late source leads to a Put.
//
// Returns ALREADY_EXISTS if a node has the name of a new Take, or
// INVALID_ARGUMENT if the marks of the graph are malformed.
Status ConnectLateSources(const NodeFilter& counts, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_LATE_ITERATOR_READERS_H_
