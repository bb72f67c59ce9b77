#!/usr/bin/env python3
"""Measures Muster and its peers side by side: `make bench`, or `make bench ROWS="mlp-single ps-sync"`.

Each row: every peer is tried twice; then Muster and the fastest peer take turns (A B A B ...). In a
row of one pair each has one turn. The ratio is the median of the pairs' ratios. The machine is probed
before and after, because a small VM changes its mind about its caches within minutes. Adds to
build/bench/results.json, which keeps every run with its time and probes, and writes this run's rows into
docs/internals/performance.md. The row gpu copies what tests/gpu/run has measured on a machine with a GPU.
"""

import datetime
import json
import os
import pathlib
import re
import statistics
import sys

import gpu
import muster
from rows import ROWS

RESULTS = muster.ROOT / "build/bench/results.json"
HEADER = ("| row | what | Muster | fastest peer | ratio (of pairs) | at least | shown beside | "
          "barrier, memcpy, others | measured |\n|---|---|---|---|---|---|---|---|---|\n")


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", text).group(1).replace("(R)", "")
    flags = re.search(r"flags\s*: (.*)", text).group(1).split()
    vectors = [name for name in ("amx_bf16", "avx512_bf16", "avx512f", "avx2") if name in flags]
    return f"{len(os.sched_getaffinity(0))} vCPU {model} ({', '.join(vectors)})"


def say(text):
    print(text, flush=True)


def in_words(state):
    return (f"{state['barrierNanoseconds']:.0f} ns, {state['memcpyGBs']:.1f} GB/s, "
            f"{state['busyCpus']:.1f} CPUs busy")


def probe():
    state = muster.probe()
    say(f"  {in_words(state)}")
    return state


def measure(row):
    before = probe()
    if before["busyCpus"] > 0.3:
        say(f"  others are using {before['busyCpus']:.1f} CPUs of this machine: figures will not mean much")
    tried = {}
    for _ in range(min(2, row.pairs)):
        for peer in row.peers:
            tried[peer.name] = max(peer.measure(), tried.get(peer.name, 0))
            say(f"  {peer.name}: {tried[peer.name]:.5g}")
    best = max(row.peers, key=lambda peer: tried[peer.name])
    ours, theirs = [], []
    for _ in range(row.pairs):
        ours.append(row.ours())
        # A row of one pair has just had its peer's turn.
        theirs.append(best.measure() if row.pairs > 1 else tried[best.name])
        say(f"  Muster {ours[-1]:.5g}, {best.name} {theirs[-1]:.5g}")
    beside = {peer.name: peer.measure() for peer in row.beside}
    for name, value in beside.items():
        say(f"  {name}: {value:.5g}")
    return {
        "row": row.name, "what": row.what, "unit": row.unit, "required": row.required,
        "ours": statistics.median(ours), "peer": statistics.median(theirs), "peerName": best.name,
        "ratio": statistics.median(a / b for a, b in zip(ours, theirs)),
        "runs": {"ours": ours, "peer": theirs, "tried": tried, "beside": beside},
        "probes": [before, probe()],
        "machine": machine(), "date": datetime.datetime.now().isoformat(timespec="seconds"),
    }


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.4f}"


def line(result):
    ratios = [a / b for a, b in zip(result["runs"]["ours"], result["runs"]["peer"])]
    beside = {**result["runs"]["tried"], **result["runs"]["beside"]}
    beside.pop(result["peerName"])
    shown = "; ".join(f"{name} {number(value)}" for name, value in beside.items())
    probes = "; ".join(map(in_words, result["probes"]))
    cells = [result["row"], result["what"], f"{number(result['ours'])} {result['unit']}",
             f"{number(result['peer'])} ({result['peerName']})",
             f"{result['ratio']:.2f} ({min(ratios):.2f}-{max(ratios):.2f})", result["required"], shown,
             probes, f"{result['date'][:10]}, {result['machine']}"]
    return "| " + " | ".join(cells) + " |\n"


def keep(result):
    """Adds it to those of all runs: by row, in the order of time."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    order = [row.name for row in ROWS]
    results = sorted([*results, result], key=lambda one: (
        order.index(one["row"]) if one["row"] in order else len(order), one["row"], one["date"]))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    temporary = RESULTS.with_suffix(".tmp")
    temporary.write_text(json.dumps(results, indent=1) + "\n")
    temporary.replace(RESULTS)


def report(result):
    """Replaces the result's row in the document's table; other rows keep what they last said."""

    def table(match):
        old = {text.split(" | ")[0].strip("| "): text for text in match[2].splitlines(True)[2:]}
        lines = {**old, result["row"]: line(result)}
        return match[1] + HEADER + "".join(lines[row.name] for row in ROWS if row.name in lines)

    muster.REPORT.write_text(re.sub(r"(?s)(<!-- rows -->\n)(.*)(?=<!-- end of rows -->)", table,
                             muster.REPORT.read_text()))


def main(names):
    unknown = set(names) - {row.name for row in ROWS} - {"gpu"}
    if unknown:
        sys.exit(f"bench: no row {', '.join(sorted(unknown))}; "
                 f"there are {', '.join(row.name for row in ROWS)}, gpu")
    failed = False
    if not names or "gpu" in names:
        say(f"gpu: what tests/gpu/run has left in {gpu.RESULTS.relative_to(muster.ROOT)}")
        if not gpu.report():
            say("  nothing: these rows are not run")
    for row in ROWS:
        if names and row.name not in names:
            continue
        say(f"{row.name}: {row.what}")
        try:
            result = measure(row)
        except muster.Failed as error:
            say(f"  failed: {error}")
            failed = True
            continue
        say(f"  ratio {result['ratio']:.2f}; asked for: {result['required'] or 'nothing yet'}")
        keep(result)
        report(result)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
