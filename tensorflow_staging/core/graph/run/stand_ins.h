// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_RUN_STAND_INS_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_RUN_STAND_INS_H_

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace staging {

// After the rewrite a name of the user's graph belongs to a stand-in, on the
// step's side, and what it names runs ahead as a clone. Attributes keep the
// two together for those who name the node in a run.

// Makes `node` the stand-in of a node that runs ahead in `stage`. `used_ahead`
// are those outputs of it that other nodes use there.
void MarkStandIn(const std::string& stage, const std::vector<int>& used_ahead,
                 Node* node);

bool IsStandIn(const Node& node);

// Makes `node` the clone of `original` in `stage`. `taken_inputs` are the
// inputs that the Take of a stage of tf.staged gave to the original, as pairs
// of an input and an output of the Take; control edges are among them.
void MarkClone(const std::string& stage, const std::string& original,
               const std::vector<int>& taken_inputs, Node* node);

// Makes `node` a copy, for what runs ahead on the CPU, of `original`, which
// both sides use.
void MarkCopy(const std::string& original, Node* node);

// Makes `node` the Take of `stage`.
void MarkTake(const std::string& stage, Node* node);

// Finds out what a run is to run, which may feed or fetch stand-ins.
//
// To fetch a tensor that the records do not carry is FAILED_PRECONDITION.
//
// To feed a tensor that nothing uses ahead needs nothing: the fed value takes
// the place of the taken one. But what was computed ahead of a fed tensor, be
// it of a stand-in or of a constant that both sides use, has not seen the fed
// value. If the run needs no record at all, because what it feeds cuts it off
// from the sources, `*unstaged` gets a copy of `graph` in which the clones have
// their names back and run in the step: this run is as without the stage.
// Otherwise INVALID_ARGUMENT says what else would have to be fed.
//
// A run that computes what runs ahead, but puts no record, is none of the
// stage's runs: `*unstaged` gets a copy in which it does not wait for the stage
// to be restarted.
//
// `*unstaged` stays null where `graph` itself will do, as for every run of the
// step or of a stage without feeds.
Status UnstageForRun(const Graph& graph, const CallableOptions& run,
                     std::unique_ptr<Graph>* unstaged);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_RUN_STAND_INS_H_
