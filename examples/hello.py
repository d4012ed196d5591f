#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hello.py - a Python program needs nothing either."""
import os

print("hello from rank", os.environ.get("XRUN_RANK", "0"), "of", os.environ.get("XRUN_SIZE", "1"))
