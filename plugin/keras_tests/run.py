# SPDX-License-Identifier: Apache-2.0
"""Runs Keras's own tests without the callback `SmartStage` and with it, and fails if a test's outcome differs.

pip fetches the source archive that requirements.txt pins by its hash. With arguments, runs these files of Keras.
"""

import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

_HERE = pathlib.Path(__file__).resolve().parent
_SECONDS_OF_A_TEST = 300


def _fetch(folder: pathlib.Path) -> pathlib.Path:
  """Fetches Keras's sources and returns the folder that has them."""
  options = ("--disable-pip-version-check", "--quiet", "--no-deps", "--no-binary=keras", "--no-build-isolation")
  pinned = ("--require-hashes", f"--requirement={_HERE / 'requirements.txt'}")
  subprocess.run([sys.executable, "-m", "pip", "download", *options, *pinned, f"--dest={folder}"], check=True)
  archive, = folder.glob("keras-*.tar.gz")
  with tarfile.open(archive) as sources:
    sources.extractall(folder, filter="data")
  return folder / archive.name.removesuffix(".tar.gz")


def _files() -> list[str]:
  lines = (line.partition("#")[0].strip() for line in (_HERE / "files.txt").read_text().splitlines())
  return [line for line in lines if line]


def _run(sources: pathlib.Path, files: list[str], setting: str) -> tuple[dict[str, str], int]:
  """Runs tests with a value of the variable that gives each `fit` the callback.

  Returns:
    The outcome of each test, and how many records the steps of all calls of `fit` took from stages.
  """
  outcomes = sources / f"outcomes-{setting}"
  environment = {
      **os.environ, "KERAS_BACKEND": "tensorflow", "STAGING_OUTCOMES": str(outcomes), "TF_STAGING_SMART_STAGE": setting}
  # The installed Keras has the same sources.
  subprocess.run([
      sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-q", "--continue-on-collection-errors",
      f"--timeout={_SECONDS_OF_A_TEST}", *(f"keras/src/{file}" for file in files)
  ], cwd=sources, env=environment, check=False)
  found: dict[str, str] = {}
  records = 0
  for name, outcome in map(json.loads, outcomes.read_text().splitlines()):
    if name == "records":
      records += outcome
    elif found.get(name) != "failed":
      found[name] = outcome
  return found, records


def main() -> int:
  with tempfile.TemporaryDirectory() as folder:
    sources = _fetch(pathlib.Path(folder))
    (sources / "conftest.py").write_bytes((_HERE / "conftest.py").read_bytes())
    files = sys.argv[1:] or _files()
    without, _ = _run(sources, files, "off")
    with_callback, records = _run(sources, files, "1")
  different = [
      name for name in without | with_callback
      if without.get(name) != with_callback.get(name) or without[name] == "not collected"
  ]
  for name in different:
    print(f"{name}: {without.get(name)} without the callback, {with_callback.get(name)} with it")
  passed = sum(outcome == "passed" for outcome in with_callback.values())
  failed = sum(outcome == "failed" for outcome in without.values())
  print(f"{len(with_callback)} tests of Keras: {passed} passed with the callback, {failed} failed without it,"
        f" {len(different)} differ. Their steps took {records} records.")
  return 1 if different or not records else 0


if __name__ == "__main__":
  sys.exit(main())
