# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow's versions call differently. All other code is the same for each of them."""

from tensorflow.python.eager.polymorphic_function import atomic_function

_Function = atomic_function.AtomicFunction

# Calls a traced function with the tensors of its inputs, and returns what the program's function returns.
call_with_tensors = _Function.flat_call if hasattr(_Function, "flat_call") else _Function.call_preflattened
