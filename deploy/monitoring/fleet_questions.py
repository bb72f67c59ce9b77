#!/usr/bin/env python3
"""Answers what the owner of a fleet asks, from a Prometheus, as text: fleet_questions.py http://localhost:9090

It asks the queries of the panels of the dashboard "Muster / Fleet", so that it needs no Grafana. It needs Python alone.
"""

import argparse
import json
import math
import pathlib
import sys
import urllib.error
import urllib.parse
import urllib.request

BOARD = pathlib.Path(__file__).resolve().parents[2] / "charts/muster/files/dashboards/fleet.json"

# Each question, the title of the panel that has the answer, and what its numbers are where the panel does not say it.
# Where two panels have the title, it is the last one.
QUESTIONS = (
    ("Which teams have jobs that have not ended, and how many?", "Jobs by namespace", "Jobs"),
    ("Which jobs are these, and in which state?", "Jobs that have not ended"),
    ("Which jobs wait, for what, and since when?", "Which jobs wait, why and how long"),
    ("Which share of its time does each team train?", "Goodput by namespace", "Share"),
    ("How many jobs of each team, on average, do not train, although no queue and no user holds them?",
     "Waste by namespace", "Jobs"),
    ("What do jobs do instead of training, and how many on average?", "Jobs by use of their time", "Jobs"),
    ("Which jobs are slow, and what do they do instead of computing?", "What jobs do instead of computing"),
    ("Why have jobs failed within the last hour?", "Failures by reason", "Jobs"),
    ("Which jobs have ended within the last hour?", "Jobs that have ended within the hour"),
    ("Who is restarted, how often, and why?", "Who is restarted, and why"),
    ("How old are checkpoints?", "Age of the newest checkpoint"),
    ("Which GPUs are idle although their job trains?", "GPUs that are idle"),
)


class Failed(Exception):
    """What is wrong, in words for the user."""


class Prometheus:
    def __init__(self, address):
        if not address.startswith(("http://", "https://")):
            raise Failed(f"expected an address that begins with http:// or https://, found {address}")
        self._address = address.rstrip("/")

    def ask(self, query):
        """The samples of an instant query: pairs of labels and value, the greatest first."""
        url = f"{self._address}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                answer = json.load(response)
            samples = [(one["metric"], float(one["value"][1])) for one in answer["data"]["result"]]
        except urllib.error.HTTPError as error:
            raise Failed(f"{self._address} answers {error.code} to {query}: {error.read(300).decode(errors='replace')}")
        except OSError as error:
            raise Failed(f"cannot ask the Prometheus at {self._address}: {error}")
        except (ValueError, KeyError, TypeError, IndexError):
            raise Failed(f"{self._address}: expected the answer of a Prometheus to {query}, found something else")
        return sorted(samples, key=lambda sample: -sample[1] if not math.isnan(sample[1]) else math.inf)


def with_unit(value, unit):
    if math.isnan(value):
        return "unknown"
    if unit == "percentunit":
        return f"{value:.1%}"
    if unit != "s":
        return f"{value:.4g}"
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if value >= size:
            return f"{value / size:.1f} {name}"
    return f"{value:.0f} s"


class Panel:
    def __init__(self, panel):
        [self._target] = panel["targets"]
        organize = next((one["options"] for one in panel.get("transformations", []) if one["id"] == "organize"), {})
        self._names = organize.get("renameByName", {})
        self._has_value = not organize.get("excludeByName", {}).get("Value")
        config = panel["fieldConfig"]
        units = [config["defaults"].get("unit")] + [
            each["value"] for one in config["overrides"] for each in one["properties"] if each["id"] == "unit"]
        self._unit = units[-1]

    def query(self, variables):
        query = self._target["expr"]
        for name, value in variables.items():
            query = query.replace(f"${name}", value)
        return query

    def table(self, samples, value="Value"):
        """A row of words for each sample, below a row of headers."""
        labels = [name for name in self._names if name != "Value"] or sorted({name for one, _ in samples for name in one})
        rows = [[self._names.get(name, name.capitalize()) for name in labels] + [self._names.get("Value", value)]]
        rows += [[labelled.get(name, "") for name in labels] + [with_unit(value, self._unit)] for labelled, value in samples]
        return rows if self._has_value else [row[:-1] for row in rows]


def lines_of(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  " + "  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in rows]


def answer(prometheus, variables):
    if not prometheus.ask("muster_jobs"):
        raise Failed("expected metrics of Muster's operator in this Prometheus (muster_jobs), found none; "
                     "docs/operations/metrics.md says how it collects them")
    panels = {panel["title"]: panel for panel in json.loads(BOARD.read_text())["panels"]}
    for question, title, *value in QUESTIONS:
        panel = Panel(panels[title])
        samples = prometheus.ask(panel.query(variables))
        print(question)
        print("\n".join(lines_of(panel.table(samples, *value))) if samples else "  none")
        print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("address", help="of the Prometheus, for example http://localhost:9090")
    parser.add_argument("--namespace", default=".+", help="a regular expression of namespaces; all if left out")
    parser.add_argument("--over", default="1h", help="the time over which shares are taken, for example 10m; 1h if left out")
    words = parser.parse_args()
    try:
        answer(Prometheus(words.address), {"__rate_interval": words.over, "namespace": words.namespace})
    except Failed as error:
        sys.exit(f"fleet_questions.py: {error}")


if __name__ == "__main__":
    main()
