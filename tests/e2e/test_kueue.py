"""Jobs in queues of Kueue, with Kueue itself."""

import jobs
import kueue
import pytest
from cluster import condition, eventually
from operators import await_operators


@pytest.fixture(scope="module")
def queues(cluster, muster, tmp_path_factory):
    """Kueue on the cluster, and operators that know of it."""
    kueue.install_definitions(cluster)
    kueue.make_flavor(cluster)
    program = kueue.Kueue(cluster, tmp_path_factory.mktemp("kueue"))
    cluster.set_values(muster, "kueue.enabled=true")
    await_operators(cluster, muster)
    yield program
    program.end()
    cluster.set_values(muster, "kueue.enabled=false")
    await_operators(cluster, muster)


def state(cluster, namespace, job):
    return cluster.get("trainingjob", job, namespace=namespace).get("status", {}).get("state")


def states(cluster, namespace):
    return [job.get("status", {}).get("state") for job in cluster.get("trainingjobs", namespace=namespace)]


def two_replicas(name):
    job = jobs.shell(name, roles=("ps", "worker"))
    for replica in job["spec"]["replicaSpecs"].values():
        replica["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "100m"}
    return job


def test_no_more_jobs_run_than_the_quota_has_room_for_and_all_finish(cluster, namespace, queues):
    kueue.make_queue(cluster, namespace, "450m")
    names = [f"job-{number}" for number in range(5)]
    for name in names:
        cluster.apply(kueue.queued(two_replicas(name)), namespace=namespace)
    eventually(lambda: sorted(states(cluster, namespace)) == ["Queued"] * 3 + ["Running"] * 2, within=90)
    waiting = next(name for name in names if state(cluster, namespace, name) == "Queued")
    jobs.await_reason(cluster, namespace, waiting, "Suspended", "Queued", "waits in queue team", "cpu")
    assert not jobs.pods(cluster, namespace, waiting)

    def all_are_done():
        now = states(cluster, namespace)
        assert now.count("Running") + now.count("Pending") + now.count("Completing") <= 2, now
        for name in names:
            if state(cluster, namespace, name) == "Running":
                jobs.tell_all(cluster, namespace, name, "exit 0", role="worker")
        return now == ["Succeeded"] * 5
    eventually(all_are_done, within=180, every=1)
    assert kueue.workload_condition(cluster, namespace, names[0], "Finished") == "True Succeeded"


def test_a_job_that_is_preempted_goes_on_from_its_checkpoint(
        cluster, namespace, queues, storage, summary_of_longer_run):
    kueue.make_queue(cluster, namespace, "450m")
    kueue.make_priority(cluster, "urgent", 1000)
    cluster.apply(kueue.queued(jobs.mnist(jobs.LONGER)), namespace=namespace)
    jobs.await_step(cluster, namespace, jobs.NAME, 200)
    [pod] = jobs.running(cluster, namespace, jobs.NAME, "chief")
    assert pod["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    cluster.apply(kueue.queued(two_replicas("urgent"), priority="urgent"), namespace=namespace)
    jobs.await_event(cluster, namespace, jobs.NAME, "Preempted", "wants the job's quota back")
    jobs.await_running(cluster, namespace, "urgent")
    assert not jobs.running(cluster, namespace, jobs.NAME)
    assert state(cluster, namespace, jobs.NAME) == "Queued"
    jobs.tell_all(cluster, namespace, "urgent", "exit 0", role="worker")
    job = jobs.await_success(cluster, namespace, jobs.NAME)
    assert job["status"]["restarts"] == 0
    assert "opened from ckpt-" in cluster.kubectl("logs", "-l", "muster.dev/role=chief", "--tail=-1", namespace=namespace)
    assert jobs.result(storage)["weightsDigest"] == summary_of_longer_run["weightsDigest"]


def test_what_was_borrowed_is_given_back(cluster, namespace, queues):
    kueue.make_queue(cluster, namespace, "200m", cohort=namespace, name="lender")
    kueue.make_queue(cluster, namespace, "200m", cohort=namespace, name="borrower")
    for name in ("own", "borrowing"):
        cluster.apply(kueue.queued(two_replicas(name), queue="borrower"), namespace=namespace)
    eventually(lambda: states(cluster, namespace) == ["Running", "Running"], within=90)
    cluster.apply(kueue.queued(two_replicas("lent"), queue="lender"), namespace=namespace)
    eventually(lambda: state(cluster, namespace, "lent") == "Running", within=90)
    assert sorted(states(cluster, namespace)) == ["Queued", "Running", "Running"]


def test_an_elastic_job_is_admitted_with_fewer_workers(cluster, namespace, queues, storage):
    kueue.make_queue(cluster, namespace, "350m")
    job = jobs.example("mnist-multiworker", epochs=500)
    job["spec"]["elastic"] = {"minReplicas": 1, "maxReplicas": 3}
    job["spec"]["replicaSpecs"]["worker"]["replicas"] = 3
    cluster.apply(kueue.queued(job), namespace=namespace)
    name = job["metadata"]["name"]
    jobs.await_event(cluster, namespace, name, "AdmittedFewer", "of 3 workers")
    jobs.await_step(cluster, namespace, name, 1)
    assert 1 <= len(jobs.running(cluster, namespace, name, "worker")) < 3


def test_a_suspended_job_leaves_its_quota_to_others(cluster, namespace, queues):
    kueue.make_queue(cluster, namespace, "250m")
    cluster.apply(kueue.queued(two_replicas("first")), namespace=namespace)
    jobs.await_running(cluster, namespace, "first")
    cluster.apply(kueue.queued(two_replicas("second")), namespace=namespace)
    eventually(lambda: state(cluster, namespace, "second") == "Queued")
    cluster.kubectl("patch", "trainingjob", "first", "--type=merge", "-p", '{"spec":{"suspend":true}}', namespace=namespace)
    jobs.await_running(cluster, namespace, "second")
    assert state(cluster, namespace, "first") == "Suspended"
    cluster.kubectl("patch", "trainingjob", "first", "--type=merge", "-p", '{"spec":{"suspend":false}}', namespace=namespace)
    eventually(lambda: state(cluster, namespace, "first") == "Queued")
    jobs.tell_all(cluster, namespace, "second", "exit 0", role="worker")
    jobs.await_running(cluster, namespace, "first")


def test_a_change_while_a_job_runs_is_queued_again(cluster, namespace, queues):
    kueue.make_queue(cluster, namespace, "350m")
    cluster.apply(kueue.queued(two_replicas("grows")), namespace=namespace)
    jobs.await_running(cluster, namespace, "grows")
    cluster.kubectl("scale", "trainingjob", "grows", "--replicas=2", namespace=namespace)
    eventually(lambda: len(jobs.running(cluster, namespace, "grows", "worker")) == 2, within=90)
    cluster.kubectl("scale", "trainingjob", "grows", "--replicas=3", namespace=namespace)
    jobs.await_reason(cluster, namespace, "grows", "Suspended", "Queued", "waits in queue team")
    assert not jobs.running(cluster, namespace, "grows")


def test_an_operator_that_starts_anew_leaves_admitted_jobs_alone(cluster, muster, namespace, queues):
    kueue.make_queue(cluster, namespace, "450m")
    cluster.apply(kueue.queued(two_replicas("quiet")), namespace=namespace)
    before = {pod["metadata"]["uid"] for pod in jobs.await_running(cluster, namespace, "quiet")}
    cluster.kubectl("rollout", "restart", "deployment/muster", namespace=muster)
    cluster.kubectl("rollout", "status", "deployment/muster", "--timeout=120s", namespace=muster)
    await_operators(cluster, muster)
    jobs.tell_all(cluster, namespace, "quiet", "exit 0", role="worker")
    jobs.await_success(cluster, namespace, "quiet")
    assert {pod["metadata"]["uid"] for pod in jobs.pods(cluster, namespace, "quiet")} <= before
    assert condition(cluster.get("trainingjob", "quiet", namespace=namespace), "Succeeded") == "True"
