"""The commands with which a runbook looks at a cluster run there."""

import os
import re
import subprocess

import jobs
from cluster import ROOT, TOOLS

PAGE = ROOT / "docs/operations/runbooks.md"
BINARIES = ROOT / os.environ.get("BINARIES", "build/release/bin")


def commands():
    """Those of its blocks, and those in its lines "How to look", each on one line."""
    text = PAGE.read_text()
    block = r"(?ms)^ *```sh\n(.*?)^ *```"
    for lines in re.findall(block, text):
        yield from (line.partition(" # ")[0].strip() for line in lines.splitlines())
    for line in re.findall(r"(?ms)^- \*\*How to look\*\*:(.*?)(?=^- )", re.sub(block, "", text)):
        yield from (" ".join(code.split()) for code in re.findall(r"`([^`]+)`", line))


def test_commands_of_runbooks_run(cluster, muster, namespace, storage):
    cluster.apply(jobs.mnist(jobs.LONGER), namespace=namespace)
    # Nothing runs it, so that it may have the name of a TrainingJob.
    refused = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": jobs.NAME},
               "spec": {"successPolicy": "Never", "tfReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [
                   {"name": "tensorflow", "image": "localhost/busybox:muster"}]}}}}}}
    cluster.apply(refused, namespace=namespace)
    jobs.await_running(cluster, namespace, jobs.NAME)
    [chief] = jobs.pods(cluster, namespace, jobs.NAME, "chief")
    here = {"NAMESPACE": namespace, "JOB": jobs.NAME, "POD": chief["metadata"]["name"], "REPLICA": "chief-0",
            "--image=busybox": "--image=localhost/busybox:muster"}
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig),
                   "PATH": f'{TOOLS}:{BINARIES}:{os.environ["PATH"]}'}
    asked, failed = set(commands()), []
    assert len(asked) > 10
    for command in sorted(asked):
        if "podmonitor" in command:
            continue  # the cluster has no Prometheus Operator
        command = command.partition(" | ")[0]  # what it is filtered by may find nothing, as where all is well
        for word, value in here.items():
            command = re.sub(rf"(?<![\w-]){word}\b", value, command)
        result = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, timeout=60)
        if result.returncode != 0:
            failed.append(f"{command}: {result.returncode}: {result.stderr}")
    assert not failed, "\n".join(failed)
