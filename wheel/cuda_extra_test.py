# SPDX-License-Identifier: Apache-2.0
import email.parser
import email.policy

import cuda_extra
import pytest

_STOCK = """\
Metadata-Version: 2.1
Name: tensorflow
Requires-Dist: numpy (<2.0.0,>=1.23.5)
Requires-Dist: tensorrt (==1.0) ; extra == 'other'
Provides-Extra: other
Provides-Extra: and-cuda
Requires-Dist: nvidia-cublas-cu11 (==11.11.3.6) ; extra == 'and-cuda'
Requires-Dist: tensorrt (==8.5.3.1) ; extra == 'and-cuda'
Requires-Dist: tensorrt-free ; extra == "and-cuda"
License-File: LICENSE

The description
Requires-Dist: tensorrt ; extra == 'and-cuda'
"""


def _adapted(cuda: bool) -> str:
  message = email.parser.Parser(policy=email.policy.compat32).parsestr(_STOCK)
  cuda_extra.adapt(message, cuda)
  return message.as_string()


def _without(*dropped: int) -> str:
  return "".join(line for number, line in enumerate(_STOCK.splitlines(keepends=True)) if number not in dropped)


@pytest.mark.parametrize(("cuda", "expected"), [(True, _without(7)), (False, _without(5, 6, 7, 8))])
def test_only_the_extra_changes(cuda, expected):
  assert _adapted(cuda) == expected
