# SPDX-License-Identifier: Apache-2.0
"""`MultiWorkerMirroredStrategy` on GPUs with stages; run by ahead/ahead_test.py.

The GPUs are those of fake_gpus.py, which compute on the CPU and so give its values.
"""

import json
import pathlib

import cases
import fake_gpus
import loopback


def printed(gpus, *ways):
  """Returns what two workers print that have so many GPUs each: for each worker the values of each way to train."""
  program = str(pathlib.Path(__file__).with_name("gpu_workers.py"))
  done = loopback.run_workers([program, str(gpus), *ways], 2, seconds=240, seconds_alone=10)
  assert [status for status, _ in done] == [0, 0], done
  return [json.loads(output) for _, output in done]


def case_workers_with_a_gpu_are_staged():
  on_cpus, on_gpus = printed(0, "without"), printed(1, "with")
  assert on_gpus == on_cpus, (on_gpus, on_cpus)


def case_workers_with_several_gpus_are_staged():
  for without, staged in printed(2, "without", "with"):
    assert staged == without, (staged, without)


if __name__ == "__main__":
  with fake_gpus.compiled():
    cases.main(globals())
