#!/usr/bin/env python3
"""A client of the API server that does what muster-operator does for many jobs, and decides nothing: it makes the
calls of jobs that were recorded (operator_calls.py) for each new job of a namespace, in the same order, over as many
connections, and keeps the same watches open. A call is made when those pods have ended whose end the operator had
seen when it made its own.

stdin: the order, as JSON. stdout: `ready`, and `done {...}` when every job has its last status.
"""

import dataclasses
import http.client
import itertools
import json
import os
import queue
import re
import ssl
import sys
import threading
import time

PLACEHOLDER = re.compile(r"@(JOB|UID|VERSION):([^@]*)@")
WRITES = re.compile(r'"writes":\d+')
TRIES = 20  # of a call that is refused: its watch may be behind, as that of an operator may


@dataclasses.dataclass
class Job:
    name: str
    uids: dict      # of pods by what follows the job's name in theirs; of the job by ""
    versions: dict
    steps: list
    ended: set = dataclasses.field(default_factory=set)
    at: int = 0     # the step to be made next
    parked: bool = False
    writes: int = 0

    def may_go_on(self):
        return self.ended.issuperset(self.steps[self.at]["waits"])

    def fill(self, text):
        """Puts this job's names in place of the words in @."""
        def value(match):
            return self.name if match[1] == "JOB" else (self.uids if match[1] == "UID" else self.versions)[match[2]]
        return PLACEHOLDER.sub(value, text)


def share(total, jobs, number):
    """How many of `total` fall to one of the jobs, when they are spread evenly."""
    return total * (number + 1) // jobs - total * number // jobs


def steps_of(life, statuses, events):
    """A life with that many status writes and events: the first ones are left out, or made more than once."""
    written = [step for step in life if step["kind"] == "status"]
    left_out = {id(step) for step in written[:max(0, len(written) - statuses)]}
    left_out |= {id(step) for step in [step for step in life if step["kind"] == "event"][events:]}
    times = {id(written[0]): 1 + max(0, statuses - len(written))}
    return [step for step in life if id(step) not in left_out for _ in range(times.get(id(step), 1))]


class Client:
    def __init__(self, order):
        self._order = order
        self._tls = ssl.create_default_context(cafile=order["ca"])
        self._tls.load_cert_chain(order["certificate"], order["key"])
        self._jobs, self._pods = {}, {}
        self._numbers = itertools.count()
        self._ready = queue.SimpleQueue()
        self._mutex = threading.Lock()
        self._left, self._over = order["jobs"], threading.Event()
        self.calls, self.refused = 0, 0

    def connect(self):
        return http.client.HTTPSConnection(self._order["address"], context=self._tls, timeout=600)

    def run(self):
        for path in self._order["watches"]:
            self._begin(self._watch, path)
        for _ in range(self._order["connections"]):
            self._begin(self._work)
        time.sleep(1)  # for connections
        print("ready", flush=True)
        self._over.wait()

    def _begin(self, work, *arguments):
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _watch(self, path):
        connection = self.connect()
        connection.request("GET", f"{path}{'&' if '?' in path else '?'}watch=true&timeoutSeconds=3600")
        answer = connection.getresponse()
        see = {"trainingjobs": self._see_job, "pods": self._see_pod}.get(path.partition("?")[0].rpartition("/")[2])
        while line := answer.readline():
            if see:
                see(line)

    def _see_job(self, line):
        if not line.startswith(b'{"type":"ADDED"'):
            return  # nobody else writes it
        meta = json.loads(line)["object"]["metadata"]
        number = next(self._numbers)
        totals, jobs = self._order["totals"], self._order["jobs"]
        life = self._order["lives"][number % len(self._order["lives"])]
        steps = steps_of(life, share(totals["statuses"], jobs, number), share(totals["events"], jobs, number))
        job = Job(meta["name"], {"": meta["uid"]}, {"": meta["resourceVersion"]}, steps)
        with self._mutex:
            self._jobs[job.name] = job
        self._ready.put(job)

    def _see_pod(self, line):
        pod = json.loads(line)["object"]
        meta = pod["metadata"]
        with self._mutex:
            job = self._jobs[meta["labels"]["muster.dev/job"]]
            name = meta["name"].removeprefix(job.name)
            job.versions[name] = meta["resourceVersion"]
            if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
                job.ended.add(name)
            wakes = job.parked and job.may_go_on()
            if wakes:
                job.parked = False
        if wakes:
            self._ready.put(job)

    def _work(self):
        connection = self.connect()
        connection.connect()
        while True:
            self._go_on(connection, self._ready.get())

    def _go_on(self, connection, job):
        """Makes the job's calls up to one that has to wait."""
        while job.at < len(job.steps):
            with self._mutex:
                if not job.may_go_on():
                    job.parked = True
                    return
            self._make(connection, job, job.steps[job.at])
            job.at += 1

    def _make(self, connection, job, step):
        for _ in range(TRIES):
            body = job.fill(step["body"])
            if step["kind"] == "status":
                body = WRITES.sub(f'"writes":{job.writes + 1}', body)
            connection.request(step["method"], job.fill(step["path"]), body.encode(), {"Content-Type": step["type"]})
            answer = connection.getresponse()
            text = answer.read()
            with self._mutex:
                self.calls += 1
                self.refused += answer.status >= 300
            if answer.status < 300:
                return self._learn(job, step, json.loads(text))
            time.sleep(0.05)
        print(f"failed {step['method']} {step['path']}: {answer.status} {text[:300]}", flush=True)
        self._over.set()

    def _learn(self, job, step, answer):
        if step["kind"] == "status":
            job.writes += 1
            job.versions[""] = answer["metadata"]["resourceVersion"]
            if not any(later["kind"] == "status" for later in job.steps[job.at + 1:]):
                with self._mutex:
                    self._left -= 1
                    if self._left == 0:
                        self._over.set()
        elif answer.get("kind") == "Pod":
            name = answer["metadata"]["name"].removeprefix(job.name)
            job.uids[name] = answer["metadata"]["uid"]
            job.versions.setdefault(name, answer["metadata"]["resourceVersion"])


def _end(failure):
    threading.__excepthook__(failure)
    os._exit(1)


def main():
    threading.excepthook = _end
    client = Client(json.load(sys.stdin))
    client.run()
    print("done", json.dumps({"calls": client.calls, "refused": client.refused}), flush=True)


if __name__ == "__main__":
    main()
