#!/usr/bin/env python3
"""Measures this build and another one in turns: `tests/bench/versus.py OTHER mlp-single ssd`, where OTHER is the
folder of the other build's programs, for example build/release/bin of a work tree of another commit.

Each row is measured `--pairs` times by each build (A B A B ...), after one turn of each that does not count. The ratio is
the median of the pairs' ratios, this build's figure over the other's.
"""

import argparse
import pathlib
import statistics

import muster
from rows import ROWS


def measured(row, programs):
    muster.BIN = programs
    return row.ours()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("rows", nargs="+", choices=[row.name for row in ROWS], metavar="row")
    parser.add_argument("--pairs", type=int, default=10)
    arguments = parser.parse_args()
    ours = muster.BIN
    print(f"others use {muster.busy_cpus():.1f} CPUs of this machine")
    print("| row | unit | this build | the other | ratio (of pairs) |\n|---|---|---|---|---|")
    for row in (row for row in ROWS if row.name in arguments.rows):
        pairs = [(measured(row, ours), measured(row, arguments.other)) for _ in range(arguments.pairs + 1)][1:]
        here, there = (statistics.median(figures) for figures in zip(*pairs))
        ratios = sorted(a / b for a, b in pairs)
        print(f"| {row.name} | {row.unit} | {here:.5g} | {there:.5g} | {statistics.median(ratios):.3f} "
              f"({ratios[0]:.3f} to {ratios[-1]:.3f}) |", flush=True)


if __name__ == "__main__":
    main()
