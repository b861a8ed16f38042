// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/framework/device_shares.h"

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {
namespace {

bool IsFullNameOfAccelerator(const std::string& device) {
  DeviceNameUtils::ParsedName name;
  return DeviceNameUtils::ParseFullName(device, &name) && name.has_type &&
         name.has_id && name.type != DEVICE_CPU;
}

}  // namespace

void WriteShares(const SharesByDevice& shares, Node* node) {
  if (shares.empty()) return;
  // One entry of each list for each tensor of a share.
  std::vector<std::string> devices;
  std::vector<int> tensors;
  for (const auto& [device, of_device] : shares) {
    devices.insert(devices.end(), of_device.size(), device);
    tensors.insert(tensors.end(), of_device.begin(), of_device.end());
  }
  node->AddAttr(kShareDevicesAttr, devices);
  node->AddAttr(kShareTensorsAttr, tensors);
}

bool HasShares(const NodeDef& node) {
  return node.attr().count(kShareDevicesAttr) > 0;
}

Status ReadShares(const NodeDef& node, int num_tensors,
                  std::vector<DeviceShare>* shares) {
  shares->clear();
  if (!HasShares(node)) return OkStatus();
  std::vector<std::string> devices;
  std::vector<int> tensors;
  TF_RETURN_IF_ERROR(GetNodeAttr(node, kShareDevicesAttr, &devices));
  TF_RETURN_IF_ERROR(GetNodeAttr(node, kShareTensorsAttr, &tensors));
  if (devices.size() != tensors.size()) {
    return errors::InvalidArgument(kShareDevicesAttr, " of ", node.name(),
                                   " has ", devices.size(), " entries and ",
                                   kShareTensorsAttr, " has ", tensors.size(),
                                   "; both must have as many.");
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!IsFullNameOfAccelerator(devices[i])) {
      return errors::InvalidArgument(
          kShareDevicesAttr, " of ", node.name(), " contains '", devices[i],
          "', which is no full name of an accelerator.");
    }
    if (shares->empty() || shares->back().device != devices[i]) {
      shares->push_back({devices[i]});
    }
    std::vector<int>& of_device = shares->back().tensors;
    if (tensors[i] < 0 || tensors[i] >= num_tensors ||
        (!of_device.empty() && tensors[i] <= of_device.back())) {
      return errors::InvalidArgument(
          kShareTensorsAttr, " of ", node.name(), " contains ", tensors[i],
          "; it must contain indices of the ", num_tensors,
          " tensors of a record, for each device in ascending order.");
    }
    of_device.push_back(tensors[i]);
  }
  return OkStatus();
}

}  // namespace staging
}  // namespace tensorflow
