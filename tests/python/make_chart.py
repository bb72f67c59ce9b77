#!/usr/bin/env python3
"""Writes the version of Muster, which CMakeLists.txt has, to charts/muster/Chart.yaml; and what follows from the chart:
the table of values in charts/muster/README.md, from the comments in values.yaml, and deploy/muster.yaml, which is the
chart rendered with its defaults. With --check it writes nothing
and fails if either is not current; ctest runs that.

    tests/python/make_chart.py [--check] [--helm HELM]
"""

import argparse
import difflib
import json
import pathlib
import re
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/muster"
NAMESPACE = "muster-system"
KUBERNETES = "1.34.4"  # that helm is to think of where it has no cluster
GENERATED = "# Made from charts/muster by `make docs`; a test fails when it is not current.\n"
OF_HELM = re.compile(r"^ *(helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n", re.MULTILINE)


def described_values():
    """(dotted path, description) of each value that a "# --" comment stands above, in order."""
    path, description, values = [], [], []
    for line in (CHART / "values.yaml").read_text().splitlines():
        text = line.strip()
        if text.startswith("# --"):
            description = [text.removeprefix("# --").strip()]
        elif text.startswith("#") and description:
            description.append(text.removeprefix("#").strip())
        elif key := re.match(r"( *)([A-Za-z]+):", line):
            path = path[: len(key[1]) // 2] + [key[2]]
            if description:
                values.append((".".join(path), " ".join(description)))
            description = []
    return values


def default_of(path):
    value = yaml.safe_load((CHART / "values.yaml").read_text())
    for name in path.split("."):
        value = value[name]
    return json.dumps(value)


def table():
    lines = ["| value | default | meaning |\n|---|---|---|\n"]
    for path, description in described_values():
        lines.append(f"| `{path}` | `{default_of(path)}` | {description} |\n")
    return "".join(lines)


def chart():
    [version] = re.findall(r"^project\(muster VERSION ([0-9.]+) ", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    return re.sub(r"(?m)^(version|appVersion): .*$", rf"\1: {version}", (CHART / "Chart.yaml").read_text())


def readme():
    text = (CHART / "README.md").read_text()
    return re.sub(r"(?s)(<!-- values -->\n).*(?=<!-- end of values -->)", lambda match: match[1] + table(), text)


def manifests(helm):
    command = [helm, "template", "muster", CHART, "--namespace", NAMESPACE, "--kube-version", KUBERNETES,
               "--no-hooks", "--set", "crds.enabled=false"]
    rendered = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return GENERATED + OF_HELM.sub("", rendered)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--helm", default=ROOT / "build/tools/helm")
    options = parser.parse_args()
    stale = 0
    documents = {CHART / "Chart.yaml": chart, CHART / "README.md": readme,
                 ROOT / "deploy/muster.yaml": lambda: manifests(options.helm)}
    for path, make in documents.items():
        text = make()
        before = path.read_text() if path.exists() else ""
        if before == text:
            continue
        stale += 1
        if options.check:
            print(f"{path.relative_to(ROOT)} is not current: run `make docs`", file=sys.stderr)
            difference = difflib.unified_diff(before.splitlines(), text.splitlines(), "found", "expected", lineterm="")
            print("\n".join(list(difference)[:40]), file=sys.stderr)
        else:
            path.write_text(text)
    print(f"chart: {len(documents)} documents looked at, {stale} not current")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
