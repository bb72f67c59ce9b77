"""The places where a job runs, each with the same few questions: processes of this machine, hosts by OpenSSH,
Kubernetes."""

import json
import subprocess

import jobs
import yaml
from cluster import condition, eventually, run
from rack import PROGRAM


def outcome_of(status):
    """"Succeeded" or "Failed", the reason, how often the job was restarted; None while it has not finished."""
    if condition({"status": status}, "Finished") != "True":
        return None
    [end] = [entry for entry in status["conditions"] if entry["type"] in ("Succeeded", "Failed") and entry["status"] == "True"]
    return end["type"], end["reason"], status.get("restarts", 0)


class Processes:
    def __init__(self, folder):
        self.folder = folder
        self.started = []

    def command(self, job, directory):
        return [PROGRAM, "run", job, "--directory", directory]

    def run(self, name, job):
        file = self.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(job))
        directory = self.folder / name
        process = subprocess.Popen(self.command(file, directory), stdout=(self.folder / f"{name}.log").open("ab"),
                                   stderr=subprocess.STDOUT)
        self.started.append(process)
        return process

    def state(self, name):
        state = self.folder / name / "job.json"
        return json.loads(state.read_text()) if state.exists() else {}

    def status(self, name):
        return self.state(name).get("status") or {}

    def uid(self, name):
        return self.state(name).get("uid")

    def log(self, name, replica):
        log = self.folder / name / f"logs/{replica}.log"
        return log.read_text() if log.exists() else ""

    def begin(self, name, job, paused=False):
        process = self.run(name, job)
        if not paused:
            return
        eventually(lambda: condition({"status": self.status(name)}, "Running") == "True", within=60)
        run([PROGRAM, "stop", self.folder / name])
        assert process.wait(60) == 143
        self.run(name, job)

    def end(self):
        for process in self.started:
            process.terminate()
            process.wait(60)


class Hosts(Processes):
    def __init__(self, folder, rack):
        super().__init__(folder)
        self.rack = rack

    def command(self, job, directory):
        return self.rack.command(job, directory)


class Kubernetes:
    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace

    def job(self, name):
        return self.cluster.get("trainingjob", name, namespace=self.namespace)

    def status(self, name):
        return self.job(name).get("status", {})

    def uid(self, name):
        return self.job(name)["metadata"]["uid"]

    def log(self, name, replica):
        """Of all its attempts whose pods are still there."""
        role, index = replica.rsplit("-", 1)
        labels = f"muster.dev/job={name},muster.dev/role={role},muster.dev/index={index}"
        return self.cluster.kubectl("logs", "-l", labels, "--tail=-1", namespace=self.namespace)

    def suspend(self, name, value):
        self.cluster.kubectl("patch", "trainingjob", name, "--type=merge", "-p",
                             json.dumps({"spec": {"suspend": value}}), namespace=self.namespace)

    def begin(self, name, job, paused=False):
        self.cluster.apply(job, namespace=self.namespace)
        if not paused:
            return
        jobs.await_running(self.cluster, self.namespace, name)
        self.suspend(name, True)
        self.cluster.kubectl("wait", "--for=condition=Suspended", f"trainingjob/{name}", "--timeout=60s",
                             namespace=self.namespace)
        self.suspend(name, False)
