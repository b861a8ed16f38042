# SPDX-License-Identifier: Apache-2.0
"""Writes the module with the values of `tf.staging.build_info()`."""

from __future__ import annotations

import argparse
import pathlib
import pprint

_COMMIT_KEY = "STABLE_COMMIT"


def patch_names(series: str) -> tuple[str, ...]:
  """Returns the names of the patches in the text of a series, in their order."""
  lines = (line.strip() for line in series.splitlines())
  return tuple(line for line in lines if line and not line.startswith("#"))


def commit_of(status: str) -> str | None:
  """Returns the commit in the text of Bazel's stable status; None if it has none."""
  values = dict(line.partition(" ")[::2] for line in status.splitlines())
  return values.get(_COMMIT_KEY) or None


def render(values: dict[str, object]) -> str:
  """Returns the text of the module."""
  return (
      "# SPDX-License-Identifier: Apache-2.0\n"
      '"""From what the wheel was built; written by the build."""\n\n'
      f"VALUES = {pprint.pformat(values, width=110, sort_dicts=False)}\n")


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--tensorflow_version", required=True)
  parser.add_argument("--staging_version", required=True)
  parser.add_argument("--base", choices=("cpu", "cuda"), required=True)
  parser.add_argument("--chips", default="", help="the chips for which all GPU code is machine code, as sm_80,sm_90")
  parser.add_argument("--default_api_version", type=int, choices=(1, 2), required=True)
  parser.add_argument("--series", type=pathlib.Path, required=True, help="the list of the patches")
  parser.add_argument("--status", type=pathlib.Path, required=True, help="Bazel's stable status")
  parser.add_argument("--out", type=pathlib.Path, required=True, help="the file to write")
  arguments = parser.parse_args()
  arguments.out.write_text(
      render({
          "tensorflow_version": arguments.tensorflow_version,
          "staging_version": arguments.staging_version,
          "commit": commit_of(arguments.status.read_text()),
          "base": arguments.base,
          "chips": tuple(filter(None, arguments.chips.split(","))),
          "default_api_version": arguments.default_api_version,
          "patches": patch_names(arguments.series.read_text()),
      }))


if __name__ == "__main__":
  main()
