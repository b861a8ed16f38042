# SPDX-License-Identifier: Apache-2.0
"""Pins what the plugin needs for a version of TensorFlow, as pip resolves it today for the Python that runs this.

  python3.13 plugin/pin_requirements.py 2.20   writes plugin/requirements/2.20/3.13.txt
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

_FOLDER = pathlib.Path(__file__).resolve().parent / "requirements"
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# The tests need tf-keras, pytest and its plugin; the C++ needs pybind11's headers.
_WANTED = ("tensorflow=={0}.*", "tf-keras=={0}.*", "pybind11==2.13.6", "pytest", "pytest-timeout")


def _pinned(entry: dict) -> str:
  """Returns the line that pins one package of pip's report by its version and hash."""
  name = re.sub(r"[-_.]+", "-", entry["metadata"]["name"]).lower()
  digest = entry["download_info"]["archive_info"]["hashes"]["sha256"]
  return f"{name}=={entry['metadata']['version']} --hash=sha256:{digest}\n"


def pin(tensorflow: str) -> pathlib.Path:
  """Writes the file for a minor version of TensorFlow, and returns its path."""
  done = subprocess.run(
      [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--only-binary=:all:", "--quiet",
       "--disable-pip-version-check", "--report=-", *(wanted.format(tensorflow) for wanted in _WANTED)],
      stdout=subprocess.PIPE, check=True)
  lines = sorted(_pinned(entry) for entry in json.loads(done.stdout)["install"])
  file = _FOLDER / tensorflow / f"{_PYTHON}.txt"
  file.parent.mkdir(parents=True, exist_ok=True)
  file.write_text(
      "# SPDX-License-Identifier: Apache-2.0\n"
      f"# Pinned: what the plugin for TensorFlow {tensorflow} and Python {_PYTHON} is compiled and tested with.\n"
      + "".join(lines))
  return file


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("tensorflow", nargs="+", help="minor versions, such as 2.20")
  for tensorflow in parser.parse_args().tensorflow:
    print(pin(tensorflow))


if __name__ == "__main__":
  main()
