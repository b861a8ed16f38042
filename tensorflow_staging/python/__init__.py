# SPDX-License-Identifier: Apache-2.0
"""The Python side of pipeline staging. `api/public_api.py` lists the modules that export public names."""
