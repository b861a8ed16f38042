# SPDX-License-Identifier: Apache-2.0
"""What the fork and the plugin both have of this folder."""

# The libraries that register ops, kernels and passes, and those that only code outside of this folder calls.
FORK_AND_PLUGIN = [
    "//tensorflow_staging/core/ahead/buffer:step_buffer_kernels",
    "//tensorflow_staging/core/ahead/buffer:step_buffer_ops",
    "//tensorflow_staging/core/ahead/buffer:step_delivery_pass",
    "//tensorflow_staging/core/ahead/buffer:take_if_any_op",
    "//tensorflow_staging/core/ahead/buffer:workers_data_op",
    "//tensorflow_staging/core/ahead/division:input_kind_op",
    "//tensorflow_staging/core/ahead/division:step_division",
    "//tensorflow_staging/core/ahead/producers:function_runner",
    "//tensorflow_staging/core/graph/place:give_shares",
    "//tensorflow_staging/core/graph/plan:stages_before",
    "//tensorflow_staging/core/kernels:end_reads_op",
    "//tensorflow_staging/core/kernels:record_share_op",
    "//tensorflow_staging/core/kernels:stand_in_op",
    "//tensorflow_staging/core/kernels:tensor_buffer_ops",
    "//tensorflow_staging/core/ops:end_reads_op",
    "//tensorflow_staging/core/ops:record_share_op",
    "//tensorflow_staging/core/ops:stand_in_op",
    "//tensorflow_staging/core/ops:tensor_buffer_ops",
    "//tensorflow_staging/core/runner:prefetch_runner",
    "//tensorflow_staging/core/runtime:staged_call",
    "//tensorflow_staging/core/smart_stage:runners_node",
    "//tensorflow_staging/core/smart_stage:smart_stage_pass",
    "//tensorflow_staging/core/sources:iterator_changes",
    "//tensorflow_staging/core/sources:iterator_reads",
    "//tensorflow_staging/core/sources:iterator_saves",
]
