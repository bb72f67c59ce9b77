"""The control plane fails for a while, or the leading operator does: jobs go on, and nothing is done twice."""

import contextlib
import json
import time

import jobs
from cluster import eventually
from operators import await_operators, leader, log
from processes import send


def submit(cluster, namespace, name):
    """A job that is to lose its worker once; its pods, by role."""
    cluster.apply(jobs.shell(name, roles=("chief", "worker")), namespace=namespace)
    return {pod["metadata"]["labels"]["muster.dev/role"]: pod
            for pod in jobs.await_running(cluster, namespace, name)}


def await_one_restart(cluster, namespace, name):
    """Until its worker's second attempt runs. A kubelet may take 45 s to look whether the API server is there again."""
    def attempts():
        workers = jobs.running(cluster, namespace, name, "worker")
        return [worker["metadata"]["labels"]["muster.dev/attempt"] for worker in workers]
    eventually(lambda: attempts() == ["1"], within=120)


def end(cluster, namespace, name, restarts):
    jobs.tell_all(cluster, namespace, name, "exit 0", "chief")
    job = jobs.await_success(cluster, namespace, name)
    assert job["status"]["restarts"] == restarts
    return job


@contextlib.contextmanager
def no_api_server(cluster, seconds):
    """Without an API server, for so long at least."""
    until = time.monotonic() + seconds
    cluster("stop", "kube-apiserver", "KILL")
    try:
        yield
        time.sleep(max(0, until - time.monotonic()))
    finally:
        cluster("start", "kube-apiserver")
        eventually(lambda: cluster.kubectl("get", "--raw", "/readyz"))


def uids(pods):
    return {pod["metadata"]["uid"] for pod in pods}


def compact(cluster):
    """Lets etcd forget all but what is there now, as the API server lets it every five minutes."""
    def ask(method, **request):
        return json.loads(cluster("enter", "curl", "-sf", f"http://127.0.0.1:2379/v3/kv/{method}",
                                  "-d", json.dumps(request)))
    now = ask("range", key="AA==")["header"]["revision"]
    ask("compaction", revision=now, physical=True)


def test_training_goes_on_while_the_api_server_is_away_for_a_minute(
        cluster, muster, namespace, storage, summary_of_longer_run):
    loses = submit(cluster, namespace, "loses")
    cluster.apply(jobs.mnist(jobs.LONGER), namespace=namespace)
    jobs.await_next_step(cluster, namespace, jobs.NAME)
    before = uids(jobs.pods(cluster, namespace, jobs.NAME))
    with no_api_server(cluster, seconds=60):
        compact(cluster)  # so that no watch can go on where it was
        send(loses["worker"], "sh", "KILL")
        eventually(lambda: any(storage.glob("*/result.json")), within=300)
    assert jobs.result(storage)["weightsDigest"] == summary_of_longer_run["weightsDigest"]
    await_one_restart(cluster, namespace, "loses")
    end(cluster, namespace, "loses", restarts=1)
    assert jobs.await_success(cluster, namespace, jobs.NAME)["status"]["restarts"] == 0
    assert uids(jobs.pods(cluster, namespace, jobs.NAME)) <= before
    await_operators(cluster, muster)
    assert "410 Expired" in log(cluster, muster)


def test_a_leader_that_sleeps_for_a_minute_does_no_harm_when_it_wakes(cluster, muster, namespace):
    loses = submit(cluster, namespace, "loses")
    asleep = eventually(lambda: leader(cluster, muster))
    many = [jobs.shell(f"job-{number}", command="sleep 2", roles=("chief", "worker")) for number in range(6)]
    cluster.apply({"apiVersion": "v1", "kind": "List", "items": many}, namespace=namespace)
    send(asleep, "muster-operator", "STOP")  # with most of that still before it
    awake_at = time.monotonic() + 60
    send(loses["worker"], "sh", "KILL")
    eventually(lambda: (leader(cluster, muster) or asleep)["metadata"]["uid"] != asleep["metadata"]["uid"])
    await_one_restart(cluster, namespace, "loses")
    for job in many:
        jobs.await_success(cluster, namespace, job["metadata"]["name"])
    time.sleep(max(0, awake_at - time.monotonic()))
    before = uids(cluster.get("pods", namespace=namespace))
    send(asleep, "muster-operator", "CONT")
    await_operators(cluster, muster, restarted=asleep)  # it has lost the lease, and ends
    assert uids(cluster.get("pods", namespace=namespace)) == before
    assert all(jobs.await_success(cluster, namespace, job["metadata"]["name"])["status"]["restarts"] == 0
               for job in many)
    end(cluster, namespace, "loses", restarts=1)
