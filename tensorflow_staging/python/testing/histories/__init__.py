# SPDX-License-Identifier: Apache-2.0
"""Random programs and what happens to them: a model of the ledgers of iterators, and drivers of the product."""
