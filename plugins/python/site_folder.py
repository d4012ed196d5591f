# SPDX-License-Identifier: Apache-2.0
"""site_folder.py PREFIX - the folder below PREFIX in which this interpreter looks for
modules; an empty line if there is none.

The prefix /usr does not stand for /usr/local, which Debian's python3 names first.
"""
import site
import sys

below = sys.argv[1].rstrip("/") + "/"
folders = [p for p in site.getsitepackages() if p.startswith(below)]
folders.sort(key=lambda p: p.startswith(below + "local/"))
print(folders[0] if folders else "")
