"""TrainingJobs as tests submit them."""

import json
import pathlib

import yaml
from cluster import ROOT, eventually

EXAMPLES = ROOT / "examples"
STORAGE = "storage"


def claim_storage(cluster, namespace, folder):
    """A claim on a folder of this machine, which all nodes see: what a job's `storage` takes."""
    folder.mkdir()
    folder.chmod(0o777)  # a trainer is nobody in particular
    size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    cluster.apply({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": namespace},
        "spec": {"capacity": size, "accessModes": modes, "hostPath": {"path": str(folder)}, "storageClassName": "",
                 "claimRef": {"namespace": namespace, "name": STORAGE}, "persistentVolumeReclaimPolicy": "Retain"}})
    cluster.apply({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": STORAGE},
        "spec": {"resources": {"requests": size}, "accessModes": modes, "storageClassName": "",
                 "volumeName": namespace}}, namespace=namespace)


def mnist():
    """examples/mnist-mlp.yaml, with its data at /data in every replica and its storage on the claim."""
    job = yaml.safe_load((EXAMPLES / "mnist-mlp.yaml").read_text())
    training = job["spec"]["training"]
    training["threads"] = 1  # the bits of a result depend on it
    for part in training["data"].values():
        for name, path in part["idx"].items():
            part["idx"][name] = f"/data/{pathlib.Path(path).name}"
    job["spec"]["storage"] = {"volume": {"persistentVolumeClaim": {"claimName": STORAGE}}}
    volume = {"name": "data", "hostPath": {"path": str(EXAMPLES / "data/mnist"), "type": "Directory"}}
    container = {"name": "trainer", "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}]}
    for replica in job["spec"]["replicaSpecs"].values():
        replica["template"] = {"spec": {"containers": [container], "volumes": [volume]}}
    return job


def pods(cluster, namespace, job, role=None):
    """The pods of a job, or of one of its roles."""
    selector = f"muster.dev/job={job}" + (f",muster.dev/role={role}" if role else "")
    return cluster.get("pods", "-l", selector, namespace=namespace)


def await_step(cluster, namespace, job, step):
    """Until the job's status says that it has come so far."""
    def is_there():
        status = cluster.get("trainingjob", job, namespace=namespace).get("status", {})
        return status.get("progress", {}).get("step", 0) >= step
    eventually(is_there, within=240)


def await_end(cluster, namespace, job):
    """The job, when it has finished."""
    cluster.kubectl("wait", "--for=condition=Finished", f"trainingjob/{job}", "--timeout=400s", namespace=namespace,
                    timeout=420)
    return cluster.get("trainingjob", job, namespace=namespace)


def result(folder):
    return json.loads((folder / "result.json").read_text())


def evaluation(folder):
    return json.loads((folder / f"evaluations/{result(folder)['step']}.json").read_text())
