# SPDX-License-Identifier: Apache-2.0
import chips
import pytest


def _codes(text: str) -> list[chips.Code]:
  return [chips.parse_code(code) for code in text.split()]


@pytest.mark.parametrize("text", ["sm_90", "90", "9.0", " 9.0\n"])
def test_ways_to_write_a_chip(text):
  assert chips.parse_chip(text) == (9, 0)
  assert str(chips.parse_chip(text)) == "sm_90"


def test_chips_with_three_digits():
  assert chips.parse_chip("sm_120") == chips.parse_chip("12.0") == (12, 0)
  assert chips.parse_chip("sm_75") < chips.parse_chip("sm_100")


@pytest.mark.parametrize("text", ["", "hopper", "sm_9", "9", "sm_90a", "9.0.1", "-90"])
def test_other_texts_are_refused(text):
  with pytest.raises(ValueError, match="is not a chip: write, for example, sm_90 or 9.0"):
    chips.parse_chip(text)


@pytest.mark.parametrize(
    ("code", "chip", "runs"),
    [
        ("sm_80", "8.0", True),
        ("sm_80", "8.6", True),
        ("sm_86", "8.0", False),
        ("sm_80", "9.0", False),
        ("compute_80", "8.0", True),
        ("compute_80", "9.0", True),
        ("compute_90", "8.9", False),
        ("sm_90", "10.0", False),
        ("compute_90", "12.0", True),
    ],
)
def test_sass_runs_on_its_generation_and_ptx_on_all_later_chips(code, chip, runs):
  assert chips.parse_code(code).runs_on(chips.parse_chip(chip)) == runs
  assert str(chips.parse_code(code)) == code


@pytest.mark.parametrize(
    ("codes", "chip", "best"),
    [
        # SASS comes before PTX, even newer PTX.
        ("sm_35 sm_80 compute_86", "8.6", "sm_80"),
        ("sm_80 sm_86 sm_89 compute_90", "8.6", "sm_86"),
        # No SASS of the generation: the newest PTX, not the oldest.
        ("sm_80 compute_35 compute_80", "9.0", "compute_80"),
        ("sm_90 compute_90", "8.0", None),
        ("", "9.0", None),
    ],
)
def test_the_code_that_a_driver_takes(codes, chip, best):
  assert chips.best(_codes(codes), chips.parse_chip(chip)) == (best and chips.parse_code(best))
