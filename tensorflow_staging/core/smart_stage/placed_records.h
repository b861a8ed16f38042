// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_SMART_STAGE_PLACED_RECORDS_H_
#define TENSORFLOW_STAGING_CORE_SMART_STAGE_PLACED_RECORDS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace staging {

// What accelerators get of the records of a stage: the name of each with the names
// of the tensors. The first one gets them in place of the host, and further ones
// get copies.
using RecordDestinations =
    std::vector<std::pair<std::string, std::vector<std::string>>>;

// Sets `*stages`, by name, to where a session of this process would have the
// records of the stages of `graph`. Stages that are not there have them on the host.
// SmartStage counts as on, unless lookups run ahead.
//
// Places the graph as a session does, by TensorFlow's code and the graph passes,
// on devices that have only names. So it creates no device, and takes no memory.
//
// Returns UNIMPLEMENTED if the graph names devices that are not here, or if GPUs have
// several streams, and the error of TensorFlow if it cannot place the graph on the
// devices of this process.
Status FindRecordDestinations(
    const GraphDef& graph, const ConfigProto& config,
    std::map<std::string, RecordDestinations>* stages);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_SMART_STAGE_PLACED_RECORDS_H_
