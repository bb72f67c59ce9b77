"""The table of what tests/gpu/run has measured on a GPU, for docs/internals/performance.md."""

import json
import re

import muster

RESULTS = muster.ROOT / "build/gpu-results/gpu.json"
HEADER = "| row | what | Muster | PyTorch on the same GPU | asked | measured |\n|---|---|---|---|---|---|\n"
# What is measured, its unit and field, and what it is to come to.
ROWS = {
    "gpu-mlp": ("784-256-256-10, Adam, batch 32, input without zeros", "steps/s", "stepsPerSecond",
                "50,000; 10 x eager, 2 x with a CUDA graph"),
    "gpu-ssd-24": ("SSD MobileNet v1, 300x300, batch 24, bfloat16, images on the GPU", "images/s", "imagesPerSecond",
                   "1.3 x compile"),
    "gpu-ssd-128": ("the same, batch 128", "images/s", "imagesPerSecond", "1.3 x compile"),
    "gpu-ssd-128-copied": ("the same, each batch copied from the host's memory", "images/s", "imagesPerSecond",
                           "no slower than images on the GPU"),
    "gpu-ssd-128-jpeg": ("the same as a job, from JPEGs of 400 x 400 that the host decodes, crops and flips", "images/s",
                         "imagesPerSecond", "shown"),
    "gpu-ssd-128-ps": ("the same with one ps, in the host's memory", "images/s", "imagesPerSecond", "shown"),
    "gpu-ssd-128-ps-gpu": ("the same with one ps on the same GPU (psDevice: cuda)", "images/s", "imagesPerSecond", "shown"),
    "gpu-ps-bandwidth": ("1 GB of parameters pushed, updated by SGD and pulled: 1 ps and 1 worker on one GPU, two processes",
                         "GB/s", "gigabytesPerSecond", "0.7 of two copies on the GPU"),
    "gpu-ssd-24-float32": ("batch 24 in float32", "images/s", "imagesPerSecond", "shown"),
    "gpu-recovery": ("kill -9 of one of 3 replicas of mnist-mlp on one GPU, collective, until the next step", "s",
                     "seconds", "at most 2 s"),
    "gpu-recovery-nccl": ("the same, by NCCL", "s", "seconds", "at most 2 s"),
}


def line(name, results):
    what, unit, field, required = ROWS[name]
    found = results.get("bench", {}).get(name, {})

    def value(of):
        if not of:
            return "not run"
        by = f", {of['processors']} processors" if "processors" in of else ""
        return f"{of[field]:,.{2 if unit == 's' else 0}f} {unit}{by}"

    peers = "; ".join(f"{peer.removeprefix('pytorch-')} {value(of)}" for peer, of in found.items() if peer != "muster")
    measured = f"{results['date'][:10]}, {results['gpu']}" if found else ""
    return f"| {name} | {what} | {value(found.get('muster'))} | {peers or 'not run'} | {required} | {measured} |\n"


def tests(results):
    def told(part):
        of = results[part]
        failed = f"failed: {', '.join(of['failed'])}" if of.get("failed") else "none failed"
        unfinished = f", not finished: {', '.join(of['unfinished'])}" if of.get("unfinished") else ""
        return (f"{of.get('run', 0)} {'tests of the engine' if part == 'tests' else 'tests of jobs'}, "
                f"{failed}{unfinished}")

    ran = [told(part) for part in ("tests", "jobs") if part in results]
    sanitizer = results.get("sanitizer", {})
    if isinstance(sanitizer, dict):
        ran += [f"compute-sanitizer's {kind}: {'no errors' if status == 0 else f'exit status {status}'}"
                for kind, status in sanitizer.items()]
    return f"\nTests on that GPU: {'; '.join(ran)}.\n" if ran else ""


def report():
    """Writes the table; what there are no results of is shown as not run. Returns whether there are results."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    table = HEADER + "".join(line(name, results) for name in ROWS) + tests(results)
    muster.REPORT.write_text(re.sub(r"(?s)(<!-- gpu rows -->\n).*(?=<!-- end of gpu rows -->)",
                                    lambda match: match[1] + table, muster.REPORT.read_text()))
    return bool(results)
