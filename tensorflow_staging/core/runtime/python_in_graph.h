// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_RUNTIME_PYTHON_IN_GRAPH_H_
#define TENSORFLOW_STAGING_CORE_RUNTIME_PYTHON_IN_GRAPH_H_

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace staging {

// Returns whether a run of `graph` may call Python, which can wait for anything
// for any time: in its own ops, in the functions among `functions` that these
// call, also through a dataset, or in the datasets that other runs give to its
// iterators. The graph does not show those datasets, so if it has an iterator
// of another run, all of `functions` count.
bool MayCallPython(const Graph& graph,
                   const FunctionLibraryDefinition& functions);

// Returns whether `graph` uses an iterator that another run gives its dataset.
bool UsesIteratorOfOtherRun(const Graph& graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_RUNTIME_PYTHON_IN_GRAPH_H_
