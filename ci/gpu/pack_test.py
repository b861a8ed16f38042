# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess

import pack
import pytest

_REQUIRED = [
    "numpy (<2.0.0,>=1.23.5)",
    "nvidia-cublas-cu11 (==11.11.3.6) ; extra == 'and-cuda'",
    "nvidia-nccl-cu11 (==2.16.5) ; extra == 'and-cuda'",
]


def test_versions_of_the_extra():
  pack.check_versions(_REQUIRED, {"numpy": "1.26.4", "nvidia-cublas-cu11": "11.11.3.6"})


@pytest.mark.parametrize("name", ["nvidia-cublas-cu11", "nvidia-other"])
def test_other_versions_are_refused(name):
  with pytest.raises(ValueError, match=f"ci/gpu/requirements.txt has {name} 12.1, but the wheel requires"):
    pack.check_versions(_REQUIRED, {name: "12.1"})


def test_a_wheel_for_cpus_is_refused():
  with pytest.raises(ValueError, match="not a CUDA wheel: build it with ci/build_wheel.sh --config=cuda"):
    pack.check_versions(_REQUIRED[:1], {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--chips", "sm_90"], "unknown option --chips"),
        (["--chip"], "--chip needs a value"),
        (["/missing.whl"], "No wheel /missing.whl: build it with ci/build_wheel.sh --config=cuda"),
    ],
)
def test_wrong_arguments(arguments, message):
  script = pathlib.Path(__file__).with_name("pack.sh")
  done = subprocess.run([script, *arguments], capture_output=True, text=True, timeout=30)
  assert done.returncode == 1
  assert message in done.stderr
