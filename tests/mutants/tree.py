# SPDX-License-Identifier: Apache-2.0
"""tree.py - a copy of the tree, and build folders of it: for run and sample."""
import json
import os
import re
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(ROOT, "build-mutants")


def sh(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          errors="replace", **more)


def listed():
    """The files of the project, from git or from the disk."""
    if shutil.which("git"):
        got = subprocess.run(["git", "-C", ROOT, "ls-files",
                              "-co", "--exclude-standard"], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if got.returncode == 0:
            return [f for f in got.stdout.splitlines()
                    if os.path.lexists(os.path.join(ROOT, f))]
    return [os.path.relpath(os.path.join(d, f), ROOT)
            for d, _, names in os.walk(ROOT) for f in names
            if not os.path.relpath(d, ROOT).startswith(("build", ".git"))]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def copy_tree(tree):
    """Files that did not change keep their time, so that little is built."""
    files = listed()
    for name in files:
        src, dst = os.path.join(ROOT, name), os.path.join(tree, name)
        if os.path.exists(dst) and read(src) == read(dst):
            continue
        os.makedirs(os.path.dirname(dst), exist_ok=True)
        shutil.copy(src, dst)
    gone = set(files)
    for d, _, names in os.walk(tree):
        for f in names:
            path = os.path.join(d, f)
            if os.path.relpath(path, tree) not in gone:
                os.unlink(path)
    return files


class Build:
    """A build folder of a copy."""

    def __init__(self, path, tree, env, args):
        self.path = path
        if not os.path.exists(os.path.join(self.path, "build.ninja")):
            got = sh(["meson", "setup", self.path, tree, "-Dman=disabled",
                      *args], env={**os.environ, **env})
            if got.returncode != 0:
                raise SystemExit(got.stdout[-2000:])

    def make(self, targets):
        got = sh(["ninja", "-j2", "-C", self.path, *targets])
        return None if got.returncode == 0 else got.stdout[-1500:]

    def introspect(self, what):
        return json.loads(sh(["meson", "introspect", what, self.path]).stdout)

    def environment(self, test):
        """The environment that meson sets for a test."""
        return next((t["env"] for t in self.introspect("--tests")
                     if t["name"] == test), {})

    def programs(self):
        """Programs of end-to-end tests: all except those that only other suites run."""
        self.make(["build.ninja"])  # as the copy of the tree has them now
        benches = self.benches()
        return [os.path.relpath(t["filename"][0], self.path)
                for t in self.introspect("--targets")
                if t["type"] in ("executable", "shared library", "shared module",
                                  "custom")
                and (not re.search(r"/tests/(unit|fuzz|thread|bench)/|/man/|/share/",
                                   t["filename"][0])
                     or os.path.basename(t["filename"][0]) in benches)]

    def benches(self):
        """Programs of tests/bench that end-to-end tests run."""
        texts = "".join(read(os.path.join(ROOT, name)).decode(errors="replace")
                        for name in listed() if name.startswith("tests/e2e/"))
        return set(re.findall(r"tests/bench/(\w+)", texts))
