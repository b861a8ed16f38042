// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_VOCABULARY_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_VOCABULARY_H_

#include <cstdint>

namespace tensorflow {
namespace staging {

// The names and numbers that this code shares with graphs, configurations and
// the Python side. Graphs are saved and sent to servers, so a released name
// must not change. vocabulary_test.py compares Python's copies with this file.

// The ops around a stage's buffer.
inline constexpr char kPutOp[] = "TensorBufferPut";
inline constexpr char kTakeOp[] = "TensorBufferTake";
inline constexpr char kCancelOp[] = "TensorBufferCancel";
inline constexpr char kResumeOp[] = "TensorBufferResume";
inline constexpr char kCloseOp[] = "TensorBufferClose";
inline constexpr char kSizeOp[] = "TensorBufferSize";
inline constexpr char kStatsOp[] = "TensorBufferStats";
inline constexpr char kDiscardOp[] = "TensorBufferDiscard";
inline constexpr const char* kBufferOps[] = {kPutOp,    kTakeOp,   kCancelOp,
                                             kResumeOp, kCloseOp,  kSizeOp,
                                             kStatsOp,  kDiscardOp};

// What a staged run does when it reads and draws no more.
inline constexpr char kEndReadsOp[] = "StagedRunEndReads";

// What gives an accelerator its share of the record that a Take has taken
// (device_shares.h).
inline constexpr char kShareOp[] = "RecordShare";

// The stand-in of a node that has several outputs, or an output that no record
// carries.
inline constexpr char kStagedNodeOp[] = "StagedNode";

// Attributes of the ops around a buffer. The first two identify the buffer
// (BufferKey in buffer_nodes.h). Whichever op runs first creates the buffer
// with the others.
inline constexpr char kContainerAttr[] = "container";
inline constexpr char kSharedNameAttr[] = "shared_name";
inline constexpr char kCapacityAttr[] = "capacity";
inline constexpr char kCapacityBytesAttr[] = "capacity_bytes";
inline constexpr char kDeviceCapacityBytesAttr[] = "device_capacity_bytes";
inline constexpr char kTimeoutMillisAttr[] = "timeout_millis";

// Which inputs a Put on an accelerator copies there from the host; set after
// placement.
inline constexpr char kCopiedInputsAttr[] = "_staging_copied_inputs";

// On a Put whose stage delivers its records to where the step uses them.
inline constexpr char kDeliversAttr[] = "_staging_delivers";

// Whether several producers make the records of a Put, in order: then the graph of
// their runs says when they read no more.
inline constexpr char kIsOrderedAttr[] = "_staging_is_ordered";

// Whether a Put waits until its stream has computed the record, because a Take
// is on another stream of the GPU; and the device of the Puts from which a Take
// borrows the memory of records. Set after placement.
inline constexpr char kHandsOverAttr[] = "_staging_hands_over";
inline constexpr char kBorrowsFromAttr[] = "_staging_borrows_from";

// On Puts and Takes: the shares of further accelerators, as device_shares.h
// writes and reads them; set after placement. And whether a Take gives them to
// these accelerators, as its last output; set in the graph of a run.
inline constexpr char kShareDevicesAttr[] = "_staging_share_devices";
inline constexpr char kShareTensorsAttr[] = "_staging_share_tensors";
inline constexpr char kGivesSharesAttr[] = "_staging_gives_shares";

// Attributes of Put, Take and StagedNode.
inline constexpr char kDtypesAttr[] = "dtypes";
inline constexpr char kShapesAttr[] = "shapes";

// Attributes of StagedNode: the outputs to which its inputs belong, and the
// name of the stage.
inline constexpr char kIndicesAttr[] = "indices";
inline constexpr char kStageNameAttr[] = "stage";

// On what the feeds of a manual stage name: the indices of the outputs that a
// stage feeds; whether a run before the stage's own computes a value to feed.
inline constexpr char kFedOutputsAttr[] = "_staging_fed_outputs";
inline constexpr char kFeedValueAttr[] = "_staging_feed_value";

// Marks on nodes of the user's graph: the mark of tf.train.mark_target_node,
// that of tf.staging.allow_stale, on variables, that of
// tf.async_embedding_mark_node, and the number of a GPU stream. On a Put, it is
// the stream for which the stage asks; on any other node, it is that of
// tf.stream.
inline constexpr char kTargetAttr[] = "_staging_target";
inline constexpr char kMayBeStaleAttr[] = "_staging_may_be_stale";
inline constexpr char kEmbeddingAttr[] = "_staging_embedding";
inline constexpr char kStreamAttr[] = "_stream_id";

// Marks a call of a Python function, in a tf.function, that stays in the step: it
// may read what the program changes.
inline constexpr char kStaysInStepAttr[] = "_staging_stays_in_step";

// Marks a restore of save_iterators(): the position waits in the iterator for
// the initialiser of its dataset, which may run after the restore.
inline constexpr char kAwaitsInitializerAttr[] = "_staging_awaits_initializer";

// Marks on nodes that SmartStage creates; node_marks.h writes and reads them.
inline constexpr char kMarkedStageAttr[] = "_staging_stage";
inline constexpr char kStandInAttr[] = "_staging_stand_in";
inline constexpr char kOriginalAttr[] = "_staging_original";
inline constexpr char kTakenInputsAttr[] = "_staging_taken_inputs";
inline constexpr char kCopyOfAttr[] = "_staging_copy_of";
inline constexpr char kPassesOnAttr[] = "_staging_passes_on";
inline constexpr char kReadsBesideAttr[] = "_staging_reads_beside";
inline constexpr char kReadForFeedsAttr[] = "_staging_read_for_feeds";
inline constexpr char kHasFeedsAttr[] = "_staging_has_feeds";

// The name scope, in that of the stage, of the clones that lead to the Put of a
// manual stage.
inline constexpr char kManualRegionScope[] = "region";

// The attribute of a StagedNode that names the node for which it stands in. It
// keeps TensorFlow from merging two equal ones. A StagedNode is not stateful: a
// session keeps the kernels of stateful nodes by name, and other runs may have
// the node itself.
inline constexpr char kStandsForAttr[] = "_stands_for";

// The attribute of TensorFlow's Enter that names the frame of its loop.
inline constexpr char kFrameNameAttr[] = "frame_name";

// What follows the name of a Put in the name of the constant that is alive if
// the Put has put a record.
inline constexpr char kPutDoneSuffix[] = "/done";

// The node of a session's graph that lists the runners of its stages. No node
// of a user can have a name that begins with an underscore.
inline constexpr char kRunnersNode[] = "_staging/runners";
// Its attribute with the session's handle.
inline constexpr char kSessionAttr[] = "_staging_session";
// The node of that graph that lists what a program has to know of its stages.
inline constexpr char kNotesNode[] = "_staging/notes";

// The ops that give an iterator its dataset.
inline constexpr const char* kIteratorInitializerOps[] = {
    "MakeIterator", "MultiDeviceIteratorInit"};

// The name of a stage that the user does not name.
inline constexpr char kDefaultStageName[] = "prefetch";

// The name of the stage whose region looks up embeddings.
inline constexpr char kAsyncEmbeddingStageName[] = "async_embedding";

// As a capacity or a number of threads: the stage chooses it. The value of
// tf.data.AUTOTUNE.
inline constexpr int64_t kAutotune = -1;

// The largest number of producers of a stage. Each is a thread, and Linux
// starts 32768 threads at most unless it is told otherwise.
inline constexpr int kMaxThreads = 4096;

// The default capacity of a buffer, except for SmartStage's, and the default
// time that a record waits for room in it.
inline constexpr int64_t kDefaultCapacity = 1;
inline constexpr int64_t kDefaultTimeoutMillis = 300000;

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_VOCABULARY_H_
