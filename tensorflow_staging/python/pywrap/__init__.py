# SPDX-License-Identifier: Apache-2.0
"""The one door to the C++ of staging: the extension module `_pywrap_staging`."""
