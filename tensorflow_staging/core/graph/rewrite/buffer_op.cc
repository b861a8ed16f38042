// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/rewrite/buffer_op.h"

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow_staging/core/framework/colocation.h"
#include "tensorflow_staging/core/framework/vocabulary.h"

namespace tensorflow {
namespace staging {

NodeBuilder BufferOp(const std::string& name, const char* op, const Node& put) {
  NodeBuilder builder(name, op);
  for (const char* attribute :
       {kSharedNameAttr, kContainerAttr, kCapacityAttr, kCapacityBytesAttr}) {
    if (const AttrValue* value = put.attrs().Find(attribute)) {
      builder.Attr(attribute, *value);
    }
  }
  builder.Attr(kColocationAttrName, ColocatedWith(put))
      .Device(put.requested_device());
  return builder;
}

}  // namespace staging
}  // namespace tensorflow
