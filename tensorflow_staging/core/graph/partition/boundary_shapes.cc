// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/core/graph/partition/boundary_shapes.h"

#include "tensorflow/core/common_runtime/shape_refiner.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/graph/algorithm.h"

namespace tensorflow {
namespace staging {
namespace {

PartialTensorShape ShapeOf(const ShapeRefiner& refiner,
                           const StagedTensor& tensor) {
  shape_inference::InferenceContext* context = refiner.GetContext(tensor.node);
  if (context == nullptr) return PartialTensorShape();
  TensorShapeProto proto;
  context->ShapeHandleToProto(context->output(tensor.index), &proto);
  PartialTensorShape shape;
  if (!PartialTensorShape::BuildPartialTensorShape(proto, &shape).ok()) {
    return PartialTensorShape();
  }
  return shape;
}

}  // namespace

std::vector<PartialTensorShape> BoundaryShapes(const Graph& graph,
                                               const StagedRegion& region) {
  std::vector<const Node*> ends;
  for (const StagedTensor& tensor : region.boundary) {
    ends.push_back(tensor.node);
  }
  // A reverse depth-first search leaves each node after the node's inputs.
  std::vector<const Node*> order;
  ReverseDFSFrom(graph, ends, /*enter=*/{},
                 [&order](const Node* node) { order.push_back(node); });
  ShapeRefiner refiner(graph.versions(), graph.op_registry());
  refiner.set_require_shape_inference_fns(false);
  for (const Node* node : order) {
    if (node->IsOp()) refiner.AddNode(node).IgnoreError();
  }
  std::vector<PartialTensorShape> shapes;
  for (const StagedTensor& tensor : region.boundary) {
    shapes.push_back(ShapeOf(refiner, tensor));
  }
  return shapes;
}

}  // namespace staging
}  // namespace tensorflow
