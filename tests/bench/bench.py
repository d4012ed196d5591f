# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: one timed run, pairs, statistics, the tables.

The clock is read by timed(1), a C program beside this file; Python only says
what is run, in which order, checks the results and counts. Standard library
only, so that Debian's /usr/bin/python3 is enough.
"""
import argparse
import datetime
import json
import os
import platform
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
IDENTITY = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
            "PARALLEL_SEQ")
SAMPLE_S = 0.2      # a sample repeats a short run until about so much
REPEAT_MAX = 50
GIVE_UP = 4         # failed runs of one launcher before a row is left


class CannotRun(Exception):
    """A run that failed, with the line that says why."""


class Place:
    """Where the programs are, and a folder for what the runs leave."""

    def __init__(self, build, xrun, keep_in=None):
        self.build = os.path.abspath(build)
        self.xrun = os.path.abspath(xrun) if xrun else None
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.tmp = tempfile.mkdtemp(prefix="xrun-bench-", dir=keep_in)
        for path in (self.bench("timed"), self.prog("spew")):
            if not os.access(path, os.X_OK):
                sys.exit(f"{path}: not built; give --build DIR")

    def bench(self, name):
        return os.path.join(self.build, "tests", "bench", name)

    def prog(self, name):
        return os.path.join(self.build, "tests", "prog", name)

    def file(self, name):
        return os.path.join(self.tmp, name)

    def close(self):
        shutil.rmtree(self.tmp, ignore_errors=True)

    def show(self, argv):
        """A command as the tables print it, without this machine's paths."""
        text = shlex.join(argv)
        if self.xrun:
            text = text.replace(self.xrun, "xrun")
        return text.replace(self.build, "$BUILD").replace(self.tmp, "$TMP")


def clean_env(**more):
    """No XRUN_* and no identity of a job that we might run in."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("XRUN") and k not in IDENTITY
           and not k.startswith(("PMI_", "OMPI_", "PMIX_"))}
    env.update(more)
    return env


def run_timed(place, argv, repeat=1, limit_s=60, out=None, env=None):
    """One sample; wall and CPU per run in seconds. Raises CannotRun."""
    command = [place.bench("timed"), "--repeat", str(repeat),
               "--limit", str(int(limit_s * 1000))]
    if out:
        for end in (".out", ".err"):
            if os.path.exists(out + end):
                os.unlink(out + end)
        command += ["--out", out]
    done = subprocess.run(command + ["--"] + argv, env=env or clean_env(),
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise CannotRun(done.stderr.strip() or f"exit {done.returncode}")
    res = json.loads(done.stdout)
    res["wall"] = res["wall_ns"] / 1e9 / repeat
    res["cpu"] = res["cpu_ns"] / 1e9 / repeat
    if res["timeout"]:
        raise CannotRun(f"hung: killed after {limit_s:g} s")
    return res


def last_line(path):
    """The last words of a failed run, short."""
    try:
        with open(path, "rb") as file:
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    lines = [line.strip() for line in lines if line.strip()]
    return lines[-1][:100] if lines else ""


def percentile(values, percent):
    values = sorted(values)
    at = (len(values) - 1) * percent / 100
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def spread(values):
    return {"p50": percentile(values, 50), "p99": percentile(values, 99),
            "min": min(values)}


def median_ratio(pairs, rounds=2000):
    """Median of peer/base over pairs, with 2.5 and 97.5 % of a bootstrap."""
    ratios = [peer / base for base, peer in pairs]
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios)))
                     for _ in range(rounds))
    return {"median": statistics.median(ratios),
            "low": percentile(medians, 2.5), "high": percentile(medians, 97.5)}


def interleave(count, base, peer):
    """[(base sample, peer sample)] in the order A B, B A, A B, ...

    A side that fails is tried again with its partner; after GIVE_UP failures
    the row ends with what it has. Returns the pairs and the failures' texts.
    """
    pairs, failures = [], []
    while len(pairs) < count and len(failures) < GIVE_UP:
        try:
            if len(pairs) % 2 == 0:
                a, b = base(), peer()
            else:
                b, a = peer(), base()
        except CannotRun as why:
            failures.append(str(why))
            continue
        pairs.append((a, b))
    return pairs, failures


def compare(count, base, peer, keys=("wall", "cpu")):
    """A row of results for two functions that give samples."""
    pairs, failures = interleave(count, base, peer)
    row = {"pairs": len(pairs), "failures": failures}
    if len(pairs) < 3:
        row["note"] = "cannot run: " + failures[-1]
        return row
    for key in keys:
        a = [x[key] for x, _ in pairs]
        b = [y[key] for _, y in pairs]
        row[key] = {"base": spread(a), "peer": spread(b),
                    "ratio": median_ratio(list(zip(a, b)))}
    row["left"] = max(max(x["left"], y["left"]) for x, y in pairs)
    return row


def verdict(row):
    """Ahead, parity or behind, as RESULTS.md says; not of a noisy row."""
    ratio = row["wall"]["ratio"]
    if ratio["low"] < 1 < ratio["high"] and \
            ratio["high"] - ratio["low"] > 0.3 * ratio["median"]:
        return "not settled: too noisy"
    p99 = row["wall"]["peer"]["p99"] / row["wall"]["base"]["p99"]
    if ratio["median"] >= 1.10 and ratio["low"] > 1.0:
        if p99 < 1.0:
            return "ahead, p99 worse"
        if row["cpu"]["ratio"]["median"] < 1 / 1.1:
            return "ahead, more CPU"
        return "ahead"
    if ratio["median"] >= 0.98:
        return "parity"
    return "behind"


def first_words(argv, line=0):
    try:
        done = subprocess.run(argv, capture_output=True, text=True,
                              check=False, timeout=30, env=clean_env())
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout or done.stderr).split("\n")
    lines = [text.strip() for text in lines if text.strip()]
    return lines[line] if len(lines) > line else None


def versions(xrun):
    torch = "import torch; print('torch', torch.__version__)"
    beside = os.path.join(os.path.dirname(os.path.realpath(
        shutil.which("torchrun") or "/usr/bin/torchrun")), "python3")
    found = {
        "xrun": first_words([xrun, "version"]) if xrun else None,
        "mpiexec.hydra": first_words(["mpiexec.hydra", "--version"], 1),
        "mpirun": first_words(["mpirun", "--version"]),
        "xargs": first_words(["xargs", "--version"]),
        "parallel": first_words(["parallel", "--version"]),
        "torch": first_words([beside, "-c", torch]),
        "python3": first_words(["/usr/bin/python3", "--version"]),
    }
    return {k: " ".join(v.split()) for k, v in found.items() if v}


def git(*words):
    if shutil.which("git") is None:
        return ""
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True,
                          text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def file_system(path):
    """Its type, and of ext4 whether it has a journal: without one it passes
    over inodes deleted in the last minutes one by one (recently_deleted() in
    fs/ext4/ialloc.c), and a new file costs up to 0.2 ms."""
    kind = first_words(["findmnt", "-n", "-o", "FSTYPE", "-T", path])
    if kind != "ext4":
        return kind
    device = first_words(["findmnt", "-n", "-o", "SOURCE", "-T", path])
    journal = os.path.exists(f"/proc/fs/jbd2/{os.path.basename(device)}-8")
    return "ext4 with a journal" if journal else "ext4 without a journal"


def machine():
    model = "unknown"
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    changed = " and changes" if git("status", "--porcelain", "-uno") else ""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"cpu": model, "cpus": os.cpu_count(),
            "memory_gib": round(pages / 2**30),
            "kernel": platform.release(),
            "load": round(os.getloadavg()[0], 2),
            "commit": (git("rev-parse", "--short", "HEAD") or "none")
            + changed, "date": now.strftime("%Y-%m-%d %H:%M UTC")}


def parser(what):
    p = argparse.ArgumentParser(description=what)
    p.add_argument("--build", default=os.path.join(ROOT, "build"),
                   help="build folder with tests/bench and tests/prog")
    p.add_argument("--xrun", default=os.environ.get("XRUN"),
                   help="the xrun to measure (default $XRUN); without it the "
                        "peers are compared with the bare loop")
    p.add_argument("--pairs", type=int, default=15)
    p.add_argument("--peers", help="only these, by comma")
    p.add_argument("--json", help="file for the results")
    p.add_argument("--tmp", help="folder on a disk for what the runs write")
    return p


def shown_options(argv):
    """The options that say what was measured, not where things lie."""
    shown, skip = [], False
    for word in argv:
        if skip:
            skip = False
        elif word in ("--build", "--xrun", "--json", "--tmp"):
            skip = True
        elif not word.startswith(("--build=", "--xrun=", "--json=", "--tmp=")):
            shown.append(word)
    return shown


def save(place, options, kind, rows, started):
    """The document of a run; into --json FILE, too."""
    words = [f"tests/bench/{kind}"] + shown_options(sys.argv[1:])
    started["files"] = file_system(place.tmp)
    started["load_end"] = round(os.getloadavg()[0], 2)
    document = {"kind": kind, "machine": started,
                "versions": versions(place.xrun),
                "command": shlex.join(words), "rows": rows}
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
    return document


def ms(value):
    value *= 1000
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def ratio_text(ratio):
    return f"**{ratio['median']:.2f}** ({ratio['low']:.2f}–{ratio['high']:.2f})"


def print_table(out, head, rows):
    out.write("| " + " | ".join(head) + " |\n")
    out.write("|" + "---|" * len(head) + "\n")
    for row in rows:
        out.write("| " + " | ".join(str(cell) for cell in row) + " |\n")
    out.write("\n")
