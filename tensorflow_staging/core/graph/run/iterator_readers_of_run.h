// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_ITERATOR_READERS_OF_RUN_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_ITERATOR_READERS_OF_RUN_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Look for what a run would share with a stage: an iterator that the stage
// reads ahead. `graph` is the graph of the run.

// Returns FAILED_PRECONDITION if the run needs a source that would read such an
// iterator beside the stage (MarkReadsBeside): each such run would make the stage
// do its work again.
Status CheckNoSourceReadsBeside(const Graph& graph);

// Returns FAILED_PRECONDITION if the run takes a record of a manual stage with
// feeds, and needs what is drawn for these (MarkReadForFeeds): the record was
// computed from another draw.
Status CheckFeedsAreNotDrawnAgain(const Graph& graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_ITERATOR_READERS_OF_RUN_H_
