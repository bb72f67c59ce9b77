"""A user's own way: a file with claim and job, and the commands of `muster` from the first to the last."""

import json
import os

import jobs
import pytest
import yaml
from cluster import ROOT, eventually, run

MUSTER = ROOT / os.environ.get("BINARIES", "build/release/bin") / "muster"


@pytest.fixture
def call(cluster, namespace):
    """What `muster WORD...` prints that reaches the test's namespace."""
    def output(word, *words, **more):
        where = ["--kubeconfig", cluster.kubeconfig, "-n", namespace]
        return run([MUSTER, word, *words, *where], timeout=300, **more)
    return output


def test_a_claim_and_its_job_in_one_file_are_trained_and_looked_at(cluster, muster, namespace, tmp_path, call):
    volume, claim = jobs.volume_and_claim(namespace, tmp_path / "storage")
    cluster.apply(volume)
    job = yaml.safe_load((jobs.EXAMPLES / "linear-regression.yaml").read_text())
    job["spec"]["storage"] = {"volume": {"persistentVolumeClaim": {"claimName": jobs.STORAGE}}}
    name = job["metadata"]["name"]
    text = yaml.safe_dump_all([claim, job])
    submitted = call("submit", "-", "--wait", input=text)
    assert f"persistentvolumeclaim/{jobs.STORAGE} created" in submitted, submitted
    assert f"{name}: Succeeded" in submitted, submitted
    assert f"persistentvolumeclaim/{jobs.STORAGE} unchanged" in call("submit", "-", "--wait", input=text)

    status = call("status", name)
    assert "Succeeded" in status and "weights (SHA-256)" in status, status
    lines = [json.loads(line) for line in call("logs", name, "--output", "json", "--tail", "5").splitlines()]
    # The parameter server still ran when the job ended, so that its pod is removed.
    assert {line["replica"] for line in lines} == {"chief-0", "worker-0", "worker-1"}
    times = [line["time"] for line in lines]
    assert times == sorted(times)
    assert call("logs", name, "--tail", "5", "--follow") == call("logs", name, "--tail", "5")
    assert "checkpoint ckpt-" in call("logs", name, "chief-0")

    call("delete", name)
    eventually(lambda: not jobs.pods(cluster, namespace, name))
    assert (tmp_path / "storage" / f"{namespace}-{name}" / "model" / "model.safetensors").is_file()
