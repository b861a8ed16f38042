# SPDX-License-Identifier: Apache-2.0
"""Checks the files of the installation. Needs no TensorFlow, so it also works where TensorFlow cannot be imported."""

import base64
import csv
import hashlib
import importlib.metadata
import pathlib
import re
from typing import Optional

from tensorflow_staging.python.doctor import finding

REINSTALL = (
    "Uninstall every distribution that installs the package tensorflow (pip uninstall tensorflow tensorflow-cpu"
    " tf-nightly), then install the fork's wheel again.")

# The official library is too large to be read at each call: its size must do.
_MAX_HASHED_BYTES = 100_000_000
_MAX_NAMED = 3


def check_version(site_packages: pathlib.Path) -> list[finding.Finding]:
  """Checks that the distribution tensorflow in a folder is this fork."""
  distribution = _distribution(site_packages)
  if distribution is None:
    return [
        finding.Finding("version", f"No distribution named tensorflow is installed in {site_packages}.", REINSTALL)
    ]
  version = distribution.version
  if not re.search(r"\+staging\.\d+$", version):
    return [
        finding.Finding("version", f"The distribution tensorflow has version {version}; it is not the fork.", REINSTALL)
    ]
  return [finding.Finding("version", f"tensorflow {version}.")]


def check_other_distributions(site_packages: pathlib.Path) -> list[finding.Finding]:
  """Checks that no other distribution in a folder installs into the package tensorflow."""
  others = sorted(
      distribution.metadata["Name"]
      for distribution in importlib.metadata.distributions(path=[str(site_packages)])
      if "tensorflow" in (distribution.read_text("top_level.txt") or "").split()
      and distribution.metadata["Name"] != "tensorflow")
  if others:
    return [
        finding.Finding(
            "other distributions", f"{', '.join(others)} installs into the same folder as the fork.", REINSTALL)
    ]
  return [finding.Finding("other distributions", "None installs into the folder of the fork.")]


def check_files(site_packages: pathlib.Path) -> list[finding.Finding]:
  """Checks that the files in a folder are those that pip installed there: their sizes, and our own by their content."""
  distribution = _distribution(site_packages)
  record = distribution.read_text("RECORD") if distribution else None
  if record is None:
    return [finding.Finding("files", f"The list of the installed files is not in {site_packages}.", REINSTALL)]
  changed = _changed_files(distribution)
  missing = []
  wrong = []
  count = 0
  for name, digest, size in csv.reader(record.splitlines()):
    if not digest or name.startswith(".."):
      continue
    count += 1
    path = site_packages / name
    try:
      found = path.stat().st_size
    except OSError:
      missing.append(name)
      continue
    ours = name.startswith("tensorflow_staging/") or name in changed
    if found != int(size) or (ours and found <= _MAX_HASHED_BYTES and _digest(path) != digest):
      wrong.append(name)
  problems = [
      finding.Finding("files", f"{_named(names)} {what}.", REINSTALL)
      for names, what in ((missing, "missing"), (wrong, "not what pip installed")) if names
  ]
  return problems or [finding.Finding("files", f"All {count} files are as pip installed them.")]


def _distribution(site_packages: pathlib.Path) -> Optional[importlib.metadata.Distribution]:
  return next(iter(importlib.metadata.distributions(name="tensorflow", path=[str(site_packages)])), None)


def _changed_files(distribution: importlib.metadata.Distribution) -> frozenset[str]:
  """Returns the files that replace TensorFlow's."""
  notice = distribution.read_text("NOTICE") or ""
  replaced = re.findall(r"^  (\S+): changed$", notice, re.MULTILINE)
  libraries = ("tensorflow/libtensorflow_cc.so.2", "tensorflow/libtensorflow_cc_staging.so.2")
  return frozenset([*replaced, *libraries, "tensorflow/__init__.py"])


def _digest(path: pathlib.Path) -> str:
  digest = hashlib.sha256(path.read_bytes()).digest()
  return "sha256=" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _named(names: list[str]) -> str:
  """Returns the first names with a verb, such as "a and 2 more are"."""
  shown = ", ".join(names[:_MAX_NAMED])
  if len(names) > _MAX_NAMED:
    shown += f" and {len(names) - _MAX_NAMED} more"
  return f"{shown} {'is' if len(names) == 1 else 'are'}"
