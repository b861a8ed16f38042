# SPDX-License-Identifier: Apache-2.0
import json

import pytest
import sbom

_HEADERS = sbom.parse("pybind11==2.10.4|ab12|BSD-3-Clause|its headers")


def test_a_component_is_named_with_its_hash_and_licence():
  found = json.loads(sbom.render("tensorflow", "2.14.1+staging.1", [_HEADERS]))
  assert found["metadata"]["component"]["purl"] == "pkg:pypi/tensorflow@2.14.1%2Bstaging.1"
  component, = found["components"]
  assert component["purl"] == "pkg:pypi/pybind11@2.10.4"
  assert component["hashes"] == [{"alg": "SHA-256", "content": "ab12"}]
  assert component["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
  assert found["dependencies"][0]["dependsOn"] == [component["bom-ref"]]


@pytest.mark.parametrize("text", ["", "pybind11|ab12|BSD-3-Clause|its headers", "pybind11==2.10.4|ab12|BSD-3-Clause"])
def test_a_text_that_is_no_component_is_an_error(text):
  with pytest.raises(ValueError, match="is not NAME==VERSION"):
    sbom.parse(text)
