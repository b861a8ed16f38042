# SPDX-License-Identifier: Apache-2.0
"""Checks the GPUs and their streams."""

import ctypes

from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.client import session
from tensorflow.python.framework import errors

from tensorflow_staging.python.doctor import finding

DRIVER = "libcuda.so.1"
_CUDA_RUNTIME = "libcudart.so.11.0"
_STREAMS = 2


def check_gpus(base: str, driver: str = DRIVER) -> list[finding.Finding]:
  """Checks that a wheel with CUDA can use the machine's GPUs, with several streams each.

  Args:
    base: The official wheel whose libraries the wheel has: "cpu" or "cuda".
    driver: The driver's library, which the loader looks for.
  """
  if base == "cpu":
    return [
        finding.Finding("GPUs", "None, because this wheel has no CUDA. docs/gpu.md says how to build one that has.")
    ]
  try:
    ctypes.CDLL(driver)
  except OSError as error:
    return [
        finding.Finding(
            "GPUs", f"There is no driver: {error}.", "Install NVIDIA's driver, or use the wheel without CUDA.")
    ]
  config = config_pb2.ConfigProto()
  config.gpu_options.allow_growth = True
  rewrite_options = config.graph_options.rewrite_options
  rewrite_options.use_multi_stream = rewriter_config_pb2.RewriterConfig.ON
  rewrite_options.multi_stream_opts.multi_stream_num = _STREAMS
  try:
    with session.Session(config=config) as sess:
      devices = [device.name for device in sess.list_devices() if device.device_type == "GPU"]
  except errors.OpError as error:
    return [
        finding.Finding(
            "GPUs", f"A session with {_STREAMS} streams fails: {error.message}", "docs/gpu.md lists what streams need.")
    ]
  if not devices:
    return [
        finding.Finding(
            "GPUs", "There is a driver, but TensorFlow finds no GPU.",
            f"Install CUDA's libraries, such as {_CUDA_RUNTIME}: the fork's wheel has the extra and-cuda for them.")
    ]
  return [finding.Finding("GPUs", f"{len(devices) // _STREAMS}, with {_STREAMS} streams each.")]
