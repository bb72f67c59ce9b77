"""TrainingJobs as tests submit them."""

import json
import pathlib

import yaml
from cluster import ROOT, Failed, condition, eventually

EXAMPLES = ROOT / "examples"
STORAGE = "storage"
NAME = "mnist-mlp"
LONGER = 5  # epochs of a job that has time to lose a replica of each role


def volume_and_claim(namespace, folder):
    """A folder of this machine, which all nodes see, as a volume, and the claim on it that a job's `storage` takes."""
    folder.mkdir()
    folder.chmod(0o777)  # a trainer is nobody in particular
    size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": namespace},
        "spec": {"capacity": size, "accessModes": modes, "hostPath": {"path": str(folder)}, "storageClassName": "",
                 "claimRef": {"namespace": namespace, "name": STORAGE}, "persistentVolumeReclaimPolicy": "Retain"}}
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": STORAGE},
        "spec": {"resources": {"requests": size}, "accessModes": modes, "storageClassName": "",
                 "volumeName": namespace}}
    return volume, claim


def claim_storage(cluster, namespace, folder):
    """Makes both, and waits until the claim is bound: a pod that comes earlier is put off by the scheduler for seconds."""
    volume, claim = volume_and_claim(namespace, folder)
    cluster.apply(volume)
    cluster.apply(claim, namespace=namespace)
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Bound", f"persistentvolumeclaim/{STORAGE}", "--timeout=60s",
                    namespace=namespace)


def example(name, epochs=2, **limits):
    """One of examples/ that trains on MNIST, with its data at /data in every replica and its storage on the claim; of
    so many epochs, and replicas of such `memory` and `cpu` at most."""
    job = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    training = job["spec"]["training"]
    training["epochs"] = epochs
    training["threads"] = 1  # the bits of a result depend on it
    for part in training["data"].values():
        for name, path in part["idx"].items():
            part["idx"][name] = f"/data/{pathlib.Path(path).name}"
    job["spec"]["storage"] = {"volume": {"persistentVolumeClaim": {"claimName": STORAGE}}}
    volume = {"name": "data", "hostPath": {"path": str(EXAMPLES / "data/mnist"), "type": "Directory"}}
    container = {"name": "trainer", "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}]}
    if limits:
        container["resources"] = {"limits": limits}
    for replica in job["spec"]["replicaSpecs"].values():
        replica["template"] = {"spec": {"containers": [container], "volumes": [volume]}}
    return job


def mnist(epochs=2, **limits):
    return example(NAME, epochs, **limits)


# A replica that waits to be told how to end, by `tell`; asked to leave it says 143, as a trainer does. The command that
# tells it would be killed with the container if that ended at once.
WAIT = "trap 'exit 143' TERM; until [ -e /tmp/end ]; do sleep 0.2; done; sleep 0.5; . /tmp/end"


def shell(name, command=WAIT, roles=("worker",), replicas=1, memory="32Mi", **spec):
    """A job whose replicas run a command of busybox's shell."""
    container = {"name": "trainer", "image": "localhost/busybox:muster", "command": ["sh", "-c", command],
                 "resources": {"limits": {"memory": memory}}}
    template = {"spec": {"containers": [container], "terminationGracePeriodSeconds": 5}}
    return {
        "apiVersion": "muster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
        "spec": {"replicaSpecs": {role: {"replicas": replicas, "template": template} for role in roles}, **spec},
    }


def tell(cluster, pod, script):
    """Lets a replica that runs WAIT end by a script of the shell."""
    cluster.kubectl("exec", pod["metadata"]["name"], "--", "sh", "-c", 'echo "$0" >/tmp/end', script,
                    namespace=pod["metadata"]["namespace"])


def tell_all(cluster, namespace, job, script, role=None):
    for pod in running(cluster, namespace, job, role):
        tell(cluster, pod, script)


def await_running(cluster, namespace, job):
    """The pods of a job, when each of its replicas runs."""
    cluster.kubectl("wait", "--for=condition=Running", f"trainingjob/{job}", "--timeout=60s", namespace=namespace)
    return running(cluster, namespace, job)


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


def running(cluster, namespace, job, role=None, index=None):
    """Those of its pods that run and have not been asked to leave."""
    return [pod for pod in pods(cluster, namespace, job, role)
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
            and index in (None, int(pod["metadata"]["labels"]["muster.dev/index"]))]


def step(cluster, namespace, job):
    """How far the job's chief says to have come; None while it says nothing."""
    for pod in running(cluster, namespace, job, "chief"):
        path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}:8080/proxy/progress"
        try:
            return json.loads(cluster.kubectl("get", "--raw", path, "--request-timeout=5s"))["step"]
        except Failed:
            continue
    return None


def await_next_step(cluster, namespace, job):
    """Until the chief has come further than it is now, or than it begins with."""
    first = eventually(lambda: step(cluster, namespace, job))
    eventually(lambda: (step(cluster, namespace, job) or 0) > first)


def events(cluster, namespace, job):
    """Reason and message of each event of the job, as "<reason>: <message>"."""
    selector = f"involvedObject.kind=TrainingJob,involvedObject.name={job}"
    found = cluster.get("events", "--field-selector", selector, namespace=namespace)
    return [f"{event['reason']}: {event['message']}" for event in found]


def await_event(cluster, namespace, job, *words):
    """Until there is one event with all these words."""
    def is_there():
        told = events(cluster, namespace, job)
        assert any(all(word in event for word in words) for event in told), f"no event with {words} in {told}"
        return True
    return eventually(is_there)


def reason(job, kind):
    """The reason and the message of a condition, in one."""
    found = [entry for entry in job.get("status", {}).get("conditions", []) if entry["type"] == kind]
    return f"{found[0]['reason']}: {found[0]['message']}" if found else None


def await_reason(cluster, namespace, job, kind, *words):
    """Until a condition of the job gives a reason with all these words."""
    def is_there():
        said = reason(cluster.get("trainingjob", job, namespace=namespace), kind)
        assert said and all(word in said for word in words), said
        return True
    eventually(is_there)


def await_end(cluster, namespace, job):
    """The job, when it has finished."""
    cluster.kubectl("wait", "--for=condition=Finished", f"trainingjob/{job}", "--timeout=400s", namespace=namespace,
                    timeout=420)
    return cluster.get("trainingjob", job, namespace=namespace)


def await_success(cluster, namespace, job):
    """The job, when it has succeeded."""
    job = await_end(cluster, namespace, job)
    assert condition(job, "Succeeded") == "True", job["status"]
    return job


def folder_of(storage):
    """The folder of the only job that has results on the storage."""
    [result] = storage.glob("*/result.json")
    return result.parent


def result(storage):
    return json.loads((folder_of(storage) / "result.json").read_text())


def evaluation(storage):
    return json.loads((folder_of(storage) / f"evaluations/{result(storage)['step']}.json").read_text())
