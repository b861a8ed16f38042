// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_GRAPH_PLACE_RECORD_USES_H_
#define TENSORFLOW_STAGING_CORE_GRAPH_PLACE_RECORD_USES_H_

#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// The attributes that tell the executor which inputs and outputs of a kernel
// are on the host although the kernel runs on an accelerator.
inline constexpr char kInputHostMemoryAttr[] = "_input_hostmem";
inline constexpr char kOutputHostMemoryAttr[] = "_output_hostmem";

// Finds out in which memory `node` has its inputs and outputs if it runs on
// `device`.
Status MemoryOn(const std::string& device, const Graph& graph, const Node& node,
                MemoryTypeVector* inputs, MemoryTypeVector* outputs);

// Whether `device` is the name of a device that is no CPU.
bool IsAccelerator(const std::string& device);

// Returns the numbers from 0 to `size` - 1 that are not in `some`.
std::vector<int> IndicesWithout(const std::set<int>& some, int size);

// The ops that touch the records of one stage.
struct StageRecords {
  std::vector<Node*> puts;
  std::vector<Node*> takes;
};

// Returns those of all stages of the graph.
std::vector<StageRecords> FindStageRecords(const Graph& graph);

// How the step gets a tensor of a record.
struct Carried {
  int take_output;
  // The stand-in that passes the tensor on, or null if nodes of the step use
  // the output of the Take.
  Node* stand_in = nullptr;
  int stand_in_input = 0;
  int stand_in_output = 0;
};

// The records behind one Take of a placed graph, and where the step uses them.
class RecordUses {
 public:
  RecordUses(const Graph& graph, Node* take) : graph_(graph), take_(take) {}

  // Must be called first. Returns INVALID_ARGUMENT if a stand-in has wrong
  // attributes.
  Status Find();

  const std::vector<Carried>& carried() const { return carried_; }

  // The accelerator of the Take's task in whose memory the step has the most
  // uses of the records; empty if it has none.
  const std::string& device() const { return device_; }

  // Sets `*uses` to the edges by which the step uses `carried` in the memory of an
  // accelerator of the Take's task.
  Status FindUses(const Carried& carried, std::vector<const Edge*>* uses) const;
  // Sets `*devices` to these accelerators.
  Status FindDevices(const Carried& carried,
                     std::set<std::string>* devices) const;

  // Moves the Take and its stand-ins to `device`, where the outputs `delivered`
  // of the Take are in the memory of the device, and the others on the host.
  void MoveTake(const std::string& device, const std::set<int>& delivered);

 private:
  Status FindCarried();

  const Graph& graph_;
  Node* const take_;
  std::vector<Carried> carried_;
  std::string device_;
};

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_GRAPH_PLACE_RECORD_USES_H_
