"""The chart's alerts, as Prometheus' own promtool sees them."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def promtool(*arguments):
    result = subprocess.run(["promtool", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def test_alerts_are_rules_of_prometheus():
    promtool("check", "rules", "--lint=all", "--lint-fatal", "charts/muster/files/alerts.yaml")


def test_alerts_fire_when_they_should():
    promtool("test", "rules", "tests/integration/chart/alerts_test.yaml")
