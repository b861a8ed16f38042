// SPDX-License-Identifier: Apache-2.0

#include "tensorflow_staging/python/pywrap/buffer_stats_to_python.h"

namespace py = pybind11;

namespace tensorflow {
namespace staging {
namespace {

py::dict ToPython(const BufferStats::Waits& waits) {
  py::dict result;
  result["calls"] = waits.calls();
  result["waits"] = waits.waits();
  result["total_micros"] = waits.total_micros();
  result["p50_micros"] = waits.p50_micros();
  result["p99_micros"] = waits.p99_micros();
  return result;
}

}  // namespace

py::dict ToPython(const BufferStats& stats) {
  py::dict result;
  result["capacity"] = stats.capacity();
  result["room"] = stats.room();
  result["tunes_capacity"] = stats.tunes_capacity();
  result["capacity_bytes"] = stats.capacity_bytes();
  result["device_capacity_bytes"] = stats.device_capacity_bytes();
  result["records"] = stats.records();
  result["bytes"] = stats.bytes();
  py::dict device_bytes;
  for (int i = 0; i < stats.devices_size(); ++i) {
    device_bytes[py::str(stats.devices()[i])] = stats.device_bytes()[i];
  }
  result["device_bytes"] = device_bytes;
  result["put"] = stats.put();
  result["taken"] = stats.taken();
  result["dropped"] = stats.dropped();
  result["discarded"] = stats.discarded();
  result["kept_on_host"] = stats.kept_on_host();
  result["waiting_puts"] = stats.waiting_puts();
  result["waiting_takes"] = stats.waiting_takes();
  result["put_waits"] = ToPython(stats.put_waits());
  result["take_waits"] = ToPython(stats.take_waits());
  result["capacity_settled"] = stats.capacity_settled();
  result["steps"] = stats.steps().count();
  result["step_micros"] = stats.steps().total_micros();
  result["step_wait_micros"] = stats.steps().wait_micros();
  result["state"] = stats.state();
  result["error_code"] = stats.error_code();
  // The message may quote user data that is not valid UTF-8.
  result["error_message"] = py::bytes(stats.error_message());
  return result;
}

}  // namespace staging
}  // namespace tensorflow
