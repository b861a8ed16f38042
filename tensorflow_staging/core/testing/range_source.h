// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_STAGING_CORE_TESTING_RANGE_SOURCE_H_
#define TENSORFLOW_STAGING_CORE_TESTING_RANGE_SOURCE_H_

#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow_staging/core/testing/stage_graph.h"

namespace tensorflow {
namespace staging {

// Adds the node `record`, which yields the next int64 of 0, 1, 2, ... at each
// run, up to `stop` - 1, and the nodes that it needs, all on the CPU. The node
// `initializer` must have run first.
inline void AddRangeSource(int64_t stop, GraphDef* graph) {
  const std::vector<DataType> types = {DT_INT64};
  const std::vector<PartialTensorShape> shapes = {PartialTensorShape({})};
  const auto add = [graph](NodeDefBuilder builder) {
    StageTestGraph::Add(builder.Device("/device:CPU:0"), graph);
  };
  add(StageTestGraph::Const("start", Tensor(int64_t{0})));
  add(StageTestGraph::Const("stop", Tensor(stop)));
  add(StageTestGraph::Const("step", Tensor(int64_t{1})));
  add(NodeDefBuilder("dataset", "RangeDataset")
          .Input("start", 0, DT_INT64)
          .Input("stop", 0, DT_INT64)
          .Input("step", 0, DT_INT64)
          .Attr("output_types", types)
          .Attr("output_shapes", shapes));
  add(NodeDefBuilder("iterator", "IteratorV2")
          .Attr("shared_name", "iterator")
          .Attr("container", "")
          .Attr("output_types", types)
          .Attr("output_shapes", shapes));
  add(NodeDefBuilder("initializer", "MakeIterator")
          .Input("dataset", 0, DT_VARIANT)
          .Input("iterator", 0, DT_RESOURCE));
  add(NodeDefBuilder("record", "IteratorGetNext")
          .Input("iterator", 0, DT_RESOURCE)
          .Attr("output_types", types)
          .Attr("output_shapes", shapes));
}

}  // namespace staging
}  // namespace tensorflow

#endif  // TENSORFLOW_STAGING_CORE_TESTING_RANGE_SOURCE_H_
