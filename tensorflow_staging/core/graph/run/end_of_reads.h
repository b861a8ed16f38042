// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_END_OF_READS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_END_OF_READS_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Lets a run say when it reads no iterator and draws no random number any more, if
// the graph of the run has a Put of several producers that keep an order
// (kIsOrderedAttr): from then on the next run may begin (sources/run_order.h). Adds a
// node after everything that has to happen in the order of the runs: reads, draws,
// and whatever else is stateful, but not checks, messages and Python functions.
//
// Adds nothing if one of these may have no value, because it belongs to a branch of
// a conditional or to a loop: then the run reads until it puts its record.
Status AddEndOfReads(Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_END_OF_READS_H_
