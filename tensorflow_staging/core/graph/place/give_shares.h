// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PLACE_GIVE_SHARES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PLACE_GIVE_SHARES_H_

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// Lets each further accelerator of a step use its share of a record
// (framework/device_shares.h), in the graph of one run or of one function:
//
//   GPU:0 has the Take     Take ─▶ a      Take ──────────▶ a
//                           │       ▶       │ shares
//   GPU:1 has a share       └────▶ b        └─▶ RecordShare ─▶ b
//
// This must come after all that feeds or fetches a name: what is fed in the place
// of a tensor is no share of a record. In the graph of a run, the Take gets
// another name: a session keeps the kernels of stateful nodes by name, and runs
// that use no share have another one. A function knows by the name what it has to
// run.
Status GiveShares(bool is_function, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PLACE_GIVE_SHARES_H_
