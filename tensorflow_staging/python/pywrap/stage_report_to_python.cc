// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/python/pywrap/stage_report_to_python.h"

#include <vector>

#include "pybind11/stl.h"

namespace py = pybind11;

namespace tensorflow {
namespace staging {
namespace {

py::object Convert(const PartialTensorShape& shape) {
  if (shape.unknown_rank()) return py::none();
  py::list dims;
  for (int i = 0; i < shape.dims(); ++i) dims.append(shape.dim_size(i));
  return std::move(dims);
}

py::object Convert(const StageReport::Tensor& tensor) {
  return py::make_tuple(tensor.name, static_cast<int>(tensor.dtype),
                        Convert(tensor.shape));
}

py::object Convert(const StageReport::Outside& node) {
  return py::make_tuple(node.name, node.op, node.why);
}

py::object Convert(const StageReport::Reason& reason) {
  return py::make_tuple(reason.nodes, Convert(reason.example), reason.about);
}

py::object Convert(const StageReport::GraphNode& node) {
  return py::make_tuple(node.name, node.op, node.side);
}

py::object Convert(const StageReport::Why& why) {
  return py::make_tuple(why.text, why.about, why.advice);
}

py::object Convert(const StageReport::GraphEdge& edge) {
  return py::make_tuple(edge.src, edge.src_output, edge.dst);
}

py::object Convert(const StageReport::Iterator& iterator) {
  return py::make_tuple(iterator.name, iterator.op, iterator.other_readers);
}

py::object Convert(const StageReport::State& state) {
  return py::make_tuple(state.name, state.op, state.changers);
}

py::object Convert(const StageReport::Stage& stage);

template <typename T>
py::list ConvertAll(const std::vector<T>& items) {
  py::list list;
  for (const T& item : items) list.append(Convert(item));
  return list;
}

py::object Convert(const StageReport::Stage& stage) {
  py::dict dict;
  dict["name"] = stage.name;
  dict["by_hand"] = stage.by_hand;
  dict["sources"] = stage.sources;
  dict["nodes"] = stage.nodes;
  dict["boundary"] = ConvertAll(stage.boundary);
  dict["elements"] = ConvertAll(stage.elements);
  dict["iterators"] = ConvertAll(stage.iterators);
  dict["changing"] = ConvertAll(stage.changing);
  dict["outside"] = ConvertAll(stage.outside);
  dict["variables"] = stage.variables;
  dict["stale_steps"] = stage.stale_steps;
  return std::move(dict);
}

}  // namespace

py::dict ToPython(const StageReport& report) {
  py::dict dict;
  dict["stages"] = ConvertAll(report.stages);
  dict["unstaged_sources"] = ConvertAll(report.unstaged_sources);
  dict["reasons"] = ConvertAll(report.reasons);
  dict["nodes"] = ConvertAll(report.nodes);
  dict["edges"] = ConvertAll(report.edges);
  dict["whys"] = ConvertAll(report.whys);
  py::list why_of;
  py::list step_only;
  for (size_t i = 0; i < report.nodes.size(); ++i) {
    why_of.append(report.nodes[i].why);
    if (report.nodes[i].step_only) step_only.append(i);
  }
  dict["why_of"] = std::move(why_of);
  dict["step_only"] = std::move(step_only);
  return dict;
}

}  // namespace staging
}  // namespace tensorflow
