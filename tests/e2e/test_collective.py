"""Collective training, where members are pods and meet by TCP: whatever happens to them, the weights are the same."""

import contextlib
import json

import jobs
import pytest
from cluster import eventually
from processes import processes, send

NAME = "mnist-multiworker"
CPU = "200m"  # so little that training takes its time, on whatever machine
ELASTIC = {"minReplicas": 1, "maxReplicas": 3}
EPOCHS = 8  # of a job that must still be training when something happens to it


@pytest.fixture(scope="module")
def summary_of_example(run_example):
    return run_example(NAME, 2)


@pytest.fixture(scope="module")
def summary_of_collective(run_example):
    return run_example(NAME, EPOCHS)


@pytest.fixture(scope="module")
def summary_of_elastic(run_example):
    return run_example(NAME, EPOCHS, f"spec.elastic={json.dumps(ELASTIC)}")  # with one worker: any number does


def slow():
    """A chief on node1 and a worker on node2."""
    job = jobs.example(NAME, EPOCHS, cpu=CPU)
    del job["spec"]["replicaSpecs"]["evaluator"]
    for node, role in (("node1", "chief"), ("node2", "worker")):
        job["spec"]["replicaSpecs"][role]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return job


def elastic():
    """A chief on node1, and as many workers on node1 as on node2: one to begin with."""
    job = slow()
    job["spec"]["elastic"] = ELASTIC
    workers = job["spec"]["replicaSpecs"]["worker"]
    workers["replicas"] = 2
    spec = workers["template"]["spec"]
    del spec["nodeSelector"]
    spec["topologySpreadConstraints"] = [{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"muster.dev/job": NAME, "muster.dev/role": "worker"}}}]
    return job


def chief_log(cluster, namespace):
    """What the chief's pod has said, an event each."""
    lines = cluster.kubectl("logs", "-l", f"muster.dev/job={NAME},muster.dev/role=chief", "--tail=-1",
                            namespace=namespace).splitlines()
    return [json.loads(line) for line in lines]


def await_members(cluster, namespace, members, beyond=0):
    """Until the newest generation is beyond that one and has so many members; its number."""
    def has():
        opened = [event for event in chief_log(cluster, namespace) if "members" in event]
        assert opened and opened[-1]["members"] == members and opened[-1]["generation"] > beyond, opened
        return opened[-1]["generation"]
    return eventually(has)


def await_waiting(cluster, namespace, whom):
    """Until the newest generation is without that member."""
    def waits():
        log = chief_log(cluster, namespace)
        newest = max(number for number, event in enumerate(log) if "members" in event)
        return f"waiting for {whom}" in [event["message"] for event in log[newest:]]
    eventually(waits)


def trainers(pods):
    """The processes that train in these pods, by uid."""
    return {pod["metadata"]["uid"]: processes(pod)["muster-trainer"] for pod in pods}


def scale(cluster, namespace, replicas):
    cluster.kubectl("scale", f"trainingjob/{NAME}", f"--replicas={replicas}", namespace=namespace)


def assert_undisturbed_end(cluster, namespace, storage, summary):
    """That it succeeds without having restarted anything, with these weights."""
    assert jobs.await_success(cluster, namespace, NAME)["status"]["restarts"] == 0
    assert jobs.result(storage)["weightsDigest"] == summary["weightsDigest"]


@contextlib.contextmanager
def cut_off(cluster, node):
    cluster("partition", node)
    try:
        yield
    finally:
        cluster("heal", node)


@pytest.mark.parametrize("name", ["mnist-mirrored", NAME])
def test_an_example_trains_as_on_one_machine(cluster, muster, namespace, storage, summary_of_example, name):
    cluster.apply(jobs.example(name), namespace=namespace)
    jobs.await_success(cluster, namespace, name)
    assert jobs.evaluation(storage)["test"]["accuracy"] >= 0.965
    assert jobs.result(storage)["weightsDigest"] == summary_of_example["weightsDigest"]


def test_whose_container_is_killed_is_waited_for(cluster, muster, namespace, storage, summary_of_collective):
    cluster.apply(slow(), namespace=namespace)
    for role in ("chief", "worker"):
        jobs.await_next_step(cluster, namespace, NAME)
        [pod] = jobs.running(cluster, namespace, NAME, role)
        send(pod, "muster-supervisor", "KILL")
        jobs.await_event(cluster, namespace, NAME, f"{role}-0", "ended with exit code 137")
    job = jobs.await_success(cluster, namespace, NAME)
    assert jobs.result(storage)["weightsDigest"] == summary_of_collective["weightsDigest"]
    assert {role: status["restarts"] for role, status in job["status"]["replicaStatuses"].items()} \
        == {"chief": 1, "worker": 1}


@pytest.mark.nightly
def test_who_is_cut_off_is_waited_for(cluster, muster, namespace, storage, summary_of_collective):
    cluster.apply(slow(), namespace=namespace)
    await_members(cluster, namespace, 2)
    before = trainers(jobs.running(cluster, namespace, NAME))
    with cut_off(cluster, "node2"):
        await_waiting(cluster, namespace, "worker 0")
    jobs.await_next_step(cluster, namespace, NAME)
    assert trainers(jobs.running(cluster, namespace, NAME)) == before
    assert_undisturbed_end(cluster, namespace, storage, summary_of_collective)


def test_an_elastic_group_goes_on_without_who_is_cut_off_and_takes_it_back(
        cluster, muster, namespace, storage, summary_of_elastic):
    cluster.apply(elastic(), namespace=namespace)
    generation = await_members(cluster, namespace, 3)
    before = trainers(jobs.running(cluster, namespace, NAME))
    with cut_off(cluster, "node2"):
        generation = await_members(cluster, namespace, 2, beyond=generation)
        jobs.await_next_step(cluster, namespace, NAME)
    await_members(cluster, namespace, 3, beyond=generation)
    assert trainers(jobs.running(cluster, namespace, NAME)) == before
    assert_undisturbed_end(cluster, namespace, storage, summary_of_elastic)


def test_an_elastic_group_grows_loses_a_worker_and_shrinks_and_the_others_go_on(
        cluster, muster, namespace, storage, summary_of_elastic):
    cluster.apply(elastic(), namespace=namespace)
    generation = await_members(cluster, namespace, 3)
    others = [jobs.running(cluster, namespace, NAME, role, index)[0] for role, index in (("chief", 0), ("worker", 1))]
    before = trainers(others)
    scale(cluster, namespace, 3)
    generation = await_members(cluster, namespace, 4, beyond=generation)
    [lost] = jobs.running(cluster, namespace, NAME, "worker", 0)
    cluster.kubectl("delete", "pod", lost["metadata"]["name"], "--grace-period=0", "--force", namespace=namespace)
    generation = await_members(cluster, namespace, 4, beyond=generation)
    [replacement] = jobs.running(cluster, namespace, NAME, "worker", 0)
    assert replacement["metadata"]["uid"] != lost["metadata"]["uid"]
    scale(cluster, namespace, 2)
    await_members(cluster, namespace, 3, beyond=generation)
    assert trainers(others) == before
    jobs.await_success(cluster, namespace, NAME)
    ended = {pod["metadata"]["uid"]: pod for pod in jobs.pods(cluster, namespace, NAME)}
    for uid in before:
        [status] = ended[uid]["status"]["containerStatuses"]
        assert status["restartCount"] == 0
    assert jobs.result(storage)["weightsDigest"] == summary_of_elastic["weightsDigest"]
