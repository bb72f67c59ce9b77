#!/usr/bin/env python3
"""Checks that docs/operations/troubleshooting.md has every reason and event that operators and `muster run` give, every state of a
job, and every exit code: each word of the form "NodeLost" in the sources that decide is in the page or in OTHERS. Prints a
line for each that is missing, and fails if there is one.

    /usr/bin/python3 tests/python/check_symptoms.py
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "docs/operations/troubleshooting.md"
SOURCES = ["operator/plan/*.cc", "operator/plan/*.h", "operator/local/local_cluster.cc", "operator/kube/cluster/*.cc",
           "operator/kube/kueue/*.cc", "operator/kube/tfjob/*.cc", "operator/api/overview.cc", "operator/api/disruption.h",
           "operator/cmd/local/run_loop.cc", "operator/cmd/cluster/job_wait.cc"]
# Kinds of objects, values of their fields, and what only other programs read.
OTHERS = set("""Chief Created Deleted Evaluator FailureTarget False Master NetworkPolicy NoReservation Node NodeFailures PodDisruptionBudget
    PodsReady PriorityClass QuotaReserved Recovered Requeued ResourceFlavor SandboxChanged SuccessCriteriaMet TFJob TrainingJob True
    WaitForRecovery WaitForStart Warning Worker Workload WorkloadPriorityClass""".split())


def words():
    """Each word and the file that has it."""
    for pattern in SOURCES:
        for path in ROOT.glob(pattern):
            yield from ((word, path) for word in re.findall(r'"([A-Z]\w*[a-z]\w+)"', path.read_text()))
    codes = ROOT / "common/exit_code.h"
    yield from ((code, codes) for code in re.findall(r"  k\w+\s*=\s*([1-9]\d*),", codes.read_text()))


def main():
    page = set(re.findall(r"`(\w+)`", (ROOT / PAGE).read_text()))
    found = dict(words())
    missing = sorted(f"{path.relative_to(ROOT)}: {word} is not in {PAGE}"
                     for word, path in found.items() if word not in page | OTHERS)
    print("\n".join([*missing, f"symptoms: {len(found)} looked at, {len(missing)} complaints"]))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
