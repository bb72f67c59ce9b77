#!/usr/bin/env python3
"""Tests of deploy/monitoring/fleet_questions.py with a stand-in for Prometheus. tests/e2e/test_dashboards.py asks a real one."""

import contextlib
import http.server
import json
import sys
import threading
import unittest
import urllib.parse

from chart import ROOT, run

SCRIPT = ROOT / "deploy/monitoring/fleet_questions.py"
# What Prometheus says of queries in which the word stands.
ANSWERS = {
    "muster_jobs": [({"namespace": "lab"}, 2), ({"namespace": "team-a"}, 30)],
    "muster_job_waiting_seconds": [({"namespace": "lab", "trainingjob": "waits", "cause": "Unschedulable"}, 5400)],
    "muster_job_time_seconds_total": [({"namespace": "lab", "trainingjob": "mnist", "use": "lost"}, 0.91)],
    "muster_job_restarts_by_reason": [
        ({"namespace": "lab", "trainingjob": "mnist", "role": "worker", "reason": "Evicted"}, 2)],
    "muster_trainer_gpu_utilization": [
        ({"namespace": "lab", "trainingjob": "mnist", "role": "chief", "index": "0", "gpu": "1"}, 0.02)],
    'use!~"queued|suspended"': [({"namespace": "lab"}, 0.934), ({"namespace": "team-a"}, "NaN")],
}


@contextlib.contextmanager
def prometheus(reply):
    """The address of a server and the queries that it was asked; `reply` gives the body for a query."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["query"][0])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(reply(asked[-1]).encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def result_of(samples):
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": labels, "value": [1, str(value)]} for labels, value in samples]}})


def known(query):
    return result_of(next((samples for word, samples in ANSWERS.items() if word in query), []))


class FleetQuestions(unittest.TestCase):
    def ask(self, reply, *options):
        with prometheus(reply) as (address, asked):
            return run(sys.executable, SCRIPT, address, *options), asked

    def test_each_has_an_answer_in_words(self):
        result, asked = self.ask(known, "--namespace", "lab|team-.*", "--over", "30m")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse([query for query in asked if "$" in query])
        self.assertTrue([query for query in asked if '{namespace=~"lab|team-.*"' in query and "[30m]" in query])
        self.assertEqual(len(asked), 13)
        answers = {block.split("\n")[0]: block.split("\n")[1:] for block in result.stdout.strip().split("\n\n")}
        self.assertEqual(len(answers), 12)
        self.assertEqual(answers["Which teams have jobs that have not ended, and how many?"],
                         ["  Namespace  Jobs", "  team-a     30", "  lab        2"])
        self.assertEqual(answers["Which jobs wait, for what, and since when?"],
                         ["  Namespace  Job    Cause          Since", "  lab        waits  Unschedulable  1.5 h"])
        self.assertEqual(answers["Which share of its time does each team train?"],
                         ["  Namespace  Share", "  lab        93.4%", "  team-a     unknown"])
        self.assertEqual(answers["Which jobs are slow, and what do they do instead of computing?"],
                         ["  Namespace  Job    Use   Share of its time", "  lab        mnist  lost  91.0%"])
        self.assertEqual(answers["Who is restarted, how often, and why?"][1], "  lab        mnist  worker  Evicted  2")
        self.assertEqual(answers["Which GPUs are idle although their job trains?"][1],
                         "  lab        mnist  chief  0      1    2.0%")
        self.assertEqual(answers["How old are checkpoints?"], ["  none"])

    def test_who_gives_no_answer_is_named(self):
        for reply, words in (
            (lambda query: result_of([]), "expected metrics of Muster's operator in this Prometheus (muster_jobs), found none"),
            (lambda query: "<html>", "expected the answer of a Prometheus to muster_jobs, found something else"),
            (lambda query: "[]", "expected the answer of a Prometheus to muster_jobs, found something else"),
        ):
            with self.subTest(words):
                result, _ = self.ask(reply)
                self.assertEqual((result.returncode, result.stdout), (1, ""))
                self.assertIn(words, result.stderr)
        for address, words in (("http://127.0.0.1:1", "cannot ask the Prometheus at http://127.0.0.1:1: "),
                               ("localhost:9090", "expected an address that begins with http:// or https://, found localhost:9090")):
            result = run(sys.executable, SCRIPT, address)
            self.assertEqual(result.returncode, 1)
            self.assertIn(words, result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
