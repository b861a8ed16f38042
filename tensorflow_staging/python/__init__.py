# SPDX-License-Identifier: Apache-2.0
"""The Python side of pipeline staging; `public_api` lists the modules that export names."""
