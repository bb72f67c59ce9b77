"""TFJobs, unchanged, by the client that their users have: the package kubeflow-training."""

import json

import jobs
import pytest
from cluster import eventually
from kubeflow.training import KubeflowOrgV1TFJob, TrainingClient
from kubeflow.training.utils.utils import FakeResponse

# A ps never ends by itself. The others tell how they were started, and wait to be told how to end.
SCRIPT = f'echo "TF_CONFIG=$TF_CONFIG"; case $TF_CONFIG in *\'"type":"ps"\'*) exec sleep 3600 ;; esac; {jobs.WAIT}'


def tfjob(name, types=("PS", "Worker"), policy=None):
    container = {"name": "tensorflow", "image": "localhost/busybox:muster", "command": ["sh", "-c", SCRIPT]}
    template = {"spec": {"containers": [container], "terminationGracePeriodSeconds": 1}}
    replica = {"replicas": 1, "restartPolicy": "ExitCode", "template": template}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
            "spec": {"tfReplicaSpecs": {kind: replica for kind in types}, "runPolicy": policy or {}}}


@pytest.fixture
def training(cluster, muster, namespace):
    """The client, of a user who has the rights of cluster-admin."""
    return TrainingClient(config_file=str(cluster.kubeconfig), namespace=namespace, job_kind="TFJob")


def submit(training, namespace, job):
    """As the client's own type: a field that it does not know is lost."""
    typed = training.api_client.deserialize(FakeResponse(job), KubeflowOrgV1TFJob)
    assert training.api_client.sanitize_for_serialization(typed) == job
    training.create_job(typed, namespace=namespace)


def conditions(cluster, namespace, name):
    found = cluster.get("tfjobs.kubeflow.org", name, namespace=namespace).get("status", {}).get("conditions", [])
    return {entry["type"]: entry for entry in found if entry["status"] == "True"}


def test_the_client_of_tfjobs_finds_all_it_knows(cluster, namespace, training):
    submit(training, namespace, tfjob("mnist"))
    training.wait_for_job_conditions("mnist", expected_conditions={"Running"}, timeout=120, polling_interval=1)
    assert training.is_job_running("mnist")
    worker, ps = "mnist-worker-0", "mnist-ps-0"
    assert training.get_job_pod_names("mnist", is_master=True) == [worker]
    assert sorted(training.get_job_pod_names("mnist")) == [ps, worker]
    assert training.get_job_pod_names("mnist", replica_type="worker", replica_index=0) == [worker]
    services = cluster.get("services", namespace=namespace)
    assert sorted(service["metadata"]["name"] for service in services) == [ps, worker]
    logs, _ = training.get_job_logs("mnist", is_master=True)
    [said] = logs.values()
    config = json.loads(said.partition("TF_CONFIG=")[2].splitlines()[0])
    assert config["task"] == {"type": "worker", "index": 0} and config["environment"] == "cloud"
    [address] = config["cluster"]["ps"]
    assert address.startswith(f"{ps}.{namespace}.svc") and address.endswith(":2222")
    ip = eventually(lambda: cluster.get("pod", ps, namespace=namespace)["status"].get("podIP"), within=60)
    resolve = f"ping -c 1 -W 1 {address.partition(':')[0]} 2>&1 || true"
    eventually(lambda: f"({ip})" in cluster.kubectl("exec", worker, "--", "sh", "-c", resolve, namespace=namespace), within=60)
    assert cluster.kubectl("get", "tfjobs.kubeflow.org", namespace=namespace).splitlines()[1].split()[:2] == ["mnist", "Running"]
    jobs.tell_all(cluster, namespace, "mnist", "exit 0", role="worker")
    training.wait_for_job_conditions("mnist", timeout=120, polling_interval=1)
    assert training.is_job_succeeded("mnist") and not training.is_job_running("mnist")
    status = cluster.get("tfjobs.kubeflow.org", "mnist", namespace=namespace)["status"]
    assert status["completionTime"]
    assert status["replicaStatuses"] == {kind: {"active": 0, "succeeded": 1, "failed": 0} for kind in ("PS", "Worker")}
    told = cluster.get("events", "--field-selector", "involvedObject.kind=TFJob", namespace=namespace)
    assert {"TFJobRunning", "TFJobSucceeded"} <= {event["reason"] for event in told}
    training.delete_job("mnist")
    eventually(lambda: not cluster.get("trainingjobs", namespace=namespace), within=60)
    eventually(lambda: not cluster.get("pods", namespace=namespace), within=60)


def test_what_v1_says_of_ends_and_misses_holds(cluster, namespace, training):
    # 130 and 143 are signals: the replica is made anew. 1 is the program's own: the job has failed.
    submit(training, namespace, tfjob("codes", policy={"ttlSecondsAfterFinished": 20}))
    training.wait_for_job_conditions("codes", expected_conditions={"Running"}, timeout=120, polling_interval=1)
    jobs.tell_all(cluster, namespace, "codes", "exit 143", role="worker")
    def workers():
        found = jobs.running(cluster, namespace, "codes", role="worker")
        return [(pod["metadata"]["name"], pod["metadata"]["labels"]["muster.dev/attempt"]) for pod in found]

    eventually(lambda: workers() == [("codes-worker-0", "1")], within=60)
    jobs.tell_all(cluster, namespace, "codes", "exit 1", role="worker")
    eventually(lambda: "Failed" in conditions(cluster, namespace, "codes"), within=60)
    assert training.is_job_failed("codes")
    eventually(lambda: not cluster.get("tfjobs.kubeflow.org", namespace=namespace), within=60)


def test_a_wrong_field_is_named_in_the_status(cluster, muster, namespace):
    cluster.apply(tfjob("wrong", types=("PS", "Boss")), namespace=namespace)
    failed = eventually(lambda: conditions(cluster, namespace, "wrong").get("Failed"), within=60)
    assert failed["reason"] == "TFJobFailedValidation" and "spec.tfReplicaSpecs.Boss" in failed["message"]
    assert not cluster.get("trainingjobs", namespace=namespace)
