# SPDX-License-Identifier: Apache-2.0
"""Which variables and tables a traced function may change."""

from typing import Any

from tensorflow.python.framework import dtypes

# The ops that use a variable's handle without changing the variable.
_USES = frozenset({
    "Identity", "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp", "VariableShape"
})
# Those of tables.
_TABLE_READS = ("LookupTableFind", "LookupTableSize", "LookupTableExport")


def of_graph(graph: Any) -> list[int]:
  """Returns the indices of the inputs of a `FuncGraph` that are variables or tables, and that it may change."""
  return [
      i for i, tensor in enumerate(graph.inputs) if tensor.dtype == dtypes.resource and
      not all(op.type in _USES or op.type.startswith(_TABLE_READS) for op in tensor.consumers())
  ]
