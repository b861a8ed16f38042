// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_FRAMEWORK_DEVICE_SHARES_H_
#define TENSORFLOW_STAGING_CORE_FRAMEWORK_DEVICE_SHARES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace staging {

// A step may use a record on several accelerators. One of them has the Take; each
// further one gets a *share* of the record: copies of the tensors that it uses,
// in its own memory, ahead of the step.
struct DeviceShare {
  // The full name of the accelerator.
  std::string device;
  // The indices of the tensors in the record, in ascending order.
  std::vector<int> tensors;
};

// The tensors of shares, by accelerator.
using SharesByDevice = std::map<std::string, std::set<int>>;

// Says on `node`, a Put or a Take, which shares the records of its stage have, if
// they have any.
void WriteShares(const SharesByDevice& shares, Node* node);

// Whether WriteShares has written shares on a node.
bool HasShares(const NodeDef& node);

// Sets `*shares` to what WriteShares has written on `node`, whose records have
// `num_tensors` tensors. Returns INVALID_ARGUMENT if its attributes, which anybody
// can write, are wrong.
Status ReadShares(const NodeDef& node, int num_tensors,
                  std::vector<DeviceShare>* shares);

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_FRAMEWORK_DEVICE_SHARES_H_
