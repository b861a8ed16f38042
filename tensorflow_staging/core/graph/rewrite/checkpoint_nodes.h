// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_CHECKPOINT_NODES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_CHECKPOINT_NODES_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// The nodes that keep the records of stages in a checkpoint, beside the
// positions of the iterators that have run ahead of the step. Without them, a
// restored program would miss the records between the step and the saved
// position. Dotted arrows are control edges:
//
//   <stage>/TensorBufferPause ..> <stage>/SerializeIterator
//       --> <stage>/TensorBufferSave --> SaveV2
//
//   RestoreV2 --> <stage>/StagedIteratorPosition -->
//   <stage>/DeserializeIterator
//       <stage>/TensorBufferRestart ..^                 ..> Restore ..> NoOp
//
// The last TensorBufferSave takes the name of the user's SerializeIterator, and
// the NoOp that of the DeserializeIterator, so that whoever names them gets the
// records, too.

// A stage whose records are saved.
struct CheckpointedStage {
  std::string name;
  const Node* put = nullptr;
};

// Adds a node that pauses the stage before `savers`, the ops that write the
// positions of its iterators. Sets `*pause` to it, or to null if there is no
// saver.
Status AddPause(const CheckpointedStage& stage,
                const std::vector<Node*>& savers, Graph* graph, Node** pause);

// Adds the nodes that save the records of `stages` with the position that
// `saver` writes.
Status SaveRecordsWith(const std::vector<CheckpointedStage>& stages,
                       Node* saver, Graph* graph);

// Adds the nodes that restore the records of `stages` with the position that
// `restorer` reads. Each stage restarts before `restorer`.
Status RestoreRecordsWith(const std::vector<CheckpointedStage>& stages,
                          Node* restorer, Graph* graph);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_REWRITE_CHECKPOINT_NODES_H_
