# SPDX-License-Identifier: Apache-2.0
"""The software bill of materials: what the wheel contains, from where and under which licence, in CycloneDX's JSON.

Python's wheels keep it in their metadata (PEP 770). It has no time and no random number, so that two builds are equal.
"""

from __future__ import annotations

import json
import typing

# Where the wheel keeps it, below its .dist-info.
PATH = "sboms/tensorflow.cdx.json"


class Component(typing.NamedTuple):
  """A package whose code is in the wheel.

  Attributes:
    name: Its name on PyPI.
    version: Its version.
    sha256: The hash of the archive that the build uses.
    licence: An SPDX identifier.
    contents: What of it is in the wheel.
  """

  name: str
  version: str
  sha256: str
  licence: str
  contents: str


def parse(text: str) -> Component:
  """Reads "NAME==VERSION|SHA256|LICENCE|CONTENTS".

  Raises:
    ValueError: If the text is not of this form.
  """
  parts = text.split("|")
  name, _, version = parts[0].partition("==")
  if len(parts) != 4 or not version:
    raise ValueError(f"{text!r} is not NAME==VERSION|SHA256|LICENCE|CONTENTS.")
  return Component(name, version, *parts[1:])


def render(name: str, version: str, contained: list[Component]) -> str:
  """Returns the bill of materials of a wheel, as JSON of CycloneDX 1.5."""
  references = [_purl(each.name, each.version) for each in contained]
  return json.dumps(
      {
          "bomFormat": "CycloneDX",
          "specVersion": "1.5",
          "version": 1,
          "metadata": {"component": _described(name, version, "Apache-2.0")},
          "components": [
              {
                  **_described(each.name, each.version, each.licence),
                  "description": each.contents,
                  "hashes": [{"alg": "SHA-256", "content": each.sha256}],
              }
              for each in contained
          ],
          "dependencies": [{"ref": _purl(name, version), "dependsOn": references}],
      },
      indent=2,
  ) + "\n"


def _described(name: str, version: str, licence: str) -> dict[str, object]:
  purl = _purl(name, version)
  return {
      "type": "library",
      "bom-ref": purl,
      "name": name,
      "version": version,
      "licenses": [{"license": {"id": licence}}],
      "purl": purl,
  }


def _purl(name: str, version: str) -> str:
  return f"pkg:pypi/{name}@{version.replace('+', '%2B')}"
