"""Jobs as people and other programs treat them: deleted, made again, short of room, of images, of names."""

import hashlib
import json

import jobs
import pytest
from cluster import condition, eventually


def is_gone(cluster, namespace, job):
    return not cluster.get("pods,services", "-l", f"muster.dev/job={job}", namespace=namespace)


@pytest.mark.parametrize("phase", [None, "Pending", "Running"])
def test_a_job_that_is_deleted_while_it_starts_leaves_nothing(cluster, muster, namespace, phase):
    cluster.apply(jobs.shell("brief", roles=("ps", "chief", "worker")), namespace=namespace)
    if phase:
        phases = ("Running",) if phase == "Running" else ("Pending", "Running")
        eventually(lambda: any(pod["status"]["phase"] in phases
                               for pod in jobs.pods(cluster, namespace, "brief")), every=0.05)
    cluster.kubectl("delete", "trainingjob", "brief", namespace=namespace)
    eventually(lambda: is_gone(cluster, namespace, "brief"))


def test_a_job_that_is_deleted_and_made_again_at_once_begins_anew(cluster, muster, namespace):
    job = jobs.shell("again", replicas=2)
    cluster.apply(job, namespace=namespace)
    before = jobs.await_running(cluster, namespace, "again")
    cluster.kubectl("replace", "--force", "-f", "-", input=json.dumps(job), namespace=namespace)
    uid = cluster.get("trainingjob", "again", namespace=namespace)["metadata"]["uid"]
    assert before[0]["metadata"]["labels"]["muster.dev/job-uid"] != uid
    after = jobs.await_running(cluster, namespace, "again")
    assert {pod["metadata"]["labels"]["muster.dev/job-uid"] for pod in after} == {uid}
    jobs.tell_all(cluster, namespace, "again", "exit 0")
    assert jobs.await_success(cluster, namespace, "again")["status"]["restarts"] == 0
    old = {pod["metadata"]["uid"] for pod in before}
    eventually(lambda: old.isdisjoint(pod["metadata"]["uid"] for pod in jobs.pods(cluster, namespace, "again")))


def test_a_namespace_goes_with_its_jobs(cluster, muster, namespace):
    cluster.apply(jobs.shell("inside", roles=("ps", "chief", "worker", "evaluator")), namespace=namespace)
    jobs.await_running(cluster, namespace, "inside")
    cluster.kubectl("delete", "namespace", namespace, "--timeout=60s")
    cluster.kubectl("create", "namespace", namespace)  # as the test had it


def test_a_quota_that_is_used_up_is_waited_for(cluster, muster, namespace):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods"}, "spec": {"hard": {"pods": "2"}}}
    cluster.apply(quota, namespace=namespace)
    cluster.apply(jobs.shell("wide", replicas=4), namespace=namespace)
    jobs.await_event(cluster, namespace, "wide", "QuotaExceeded", "quota pods holds the job up")
    assert len(jobs.pods(cluster, namespace, "wide")) == 2
    assert "quota pods holds the job up" in cluster.kubectl("get", "tj", "wide", namespace=namespace)
    cluster.apply({**quota, "spec": {"hard": {"pods": "4"}}}, namespace=namespace)
    assert len(jobs.await_running(cluster, namespace, "wide")) == 4
    jobs.tell_all(cluster, namespace, "wide", "exit 0")
    assert condition(jobs.await_success(cluster, namespace, "wide"), "Accepted") == "True"


def test_a_volume_that_cannot_be_mounted_is_named_though_only_the_pods_events_say_it(cluster, muster, namespace):
    job = jobs.shell("hung", command="true")
    spec = job["spec"]["replicaSpecs"]["worker"]["template"]["spec"]
    spec["volumes"] = [{"name": "settings", "configMap": {"name": "absent"}}]
    spec["containers"][0]["volumeMounts"] = [{"name": "settings", "mountPath": "/settings"}]
    cluster.apply(job, namespace=namespace)
    words = "worker-0: FailedMount:", 'configmap "absent" not found'
    jobs.await_event(cluster, namespace, "hung", "ReplicaPending", *words)
    shown = cluster.kubectl("get", "tj", "hung", namespace=namespace)
    assert all(word in shown for word in words), shown
    cluster.kubectl("create", "configmap", "absent", namespace=namespace)
    jobs.await_success(cluster, namespace, "hung")


def test_an_image_that_cannot_be_pulled_is_named_and_can_be_replaced(cluster, muster, namespace):
    job = jobs.shell("image", command="true")
    container = job["spec"]["replicaSpecs"]["worker"]["template"]["spec"]["containers"][0]
    good, container["image"] = container["image"], "localhost/absent:none"
    cluster.apply(job, namespace=namespace)
    jobs.await_reason(cluster, namespace, "image", "Running", "worker-0", "ImagePullBackOff")
    job["spec"]["suspend"] = True
    cluster.apply(job, namespace=namespace)
    jobs.await_reason(cluster, namespace, "image", "Suspended", "no replica runs")
    container["image"], job["spec"]["suspend"] = good, False
    cluster.apply(job, namespace=namespace)
    assert jobs.await_success(cluster, namespace, "image")["status"]["restarts"] == 0


def pod_name(job, replica, attempt):
    """What a replica's pod is called, as operator/kube/pods/names.h has it."""
    letters, number = "bcdfghjklmnpqrstvwxz2456789", 0
    number = int(hashlib.sha256(f"{job['metadata']['uid']}/{attempt}".encode()).hexdigest()[:15], 16)
    suffix = ""
    for _ in range(5):
        number, letter = divmod(number, len(letters))
        suffix += letters[letter]
    return f"{job['metadata']['name']}-{replica}-{suffix}"


def test_a_name_that_is_taken_is_left_to_whom_it_belongs_and_waited_for(cluster, muster, namespace):
    cluster.apply(jobs.shell("named", suspend=True), namespace=namespace)
    name = pod_name(cluster.get("trainingjob", "named", namespace=namespace), "worker-0", 0)
    container = {"name": "main", "image": "localhost/busybox:muster"}
    foreign = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
               "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}
    cluster.apply(foreign, namespace=namespace)
    uid = cluster.get("pod", name, namespace=namespace)["metadata"]["uid"]
    cluster.apply(jobs.shell("named", suspend=False), namespace=namespace)
    jobs.await_reason(cluster, namespace, "named", "Accepted", "NameConflict", name)
    there = cluster.get("pod", name, namespace=namespace)["metadata"]
    assert there["uid"] == uid and "ownerReferences" not in there and "deletionTimestamp" not in there
    cluster.kubectl("delete", "pod", name, namespace=namespace)
    [pod] = jobs.await_running(cluster, namespace, "named")
    assert pod["metadata"]["name"] == name and pod["metadata"]["uid"] != uid
    jobs.tell(cluster, pod, "exit 0")
    jobs.await_success(cluster, namespace, "named")


def workers_in_tf_config(pod):
    [container] = pod["spec"]["containers"]
    [config] = [variable["value"] for variable in container["env"] if variable["name"] == "TF_CONFIG"]
    return len(json.loads(config)["cluster"]["worker"])


@pytest.mark.parametrize("dynamic", [False, True])
def test_scaling_ones_own_programs_restarts_the_group_or_nobody(cluster, muster, namespace, dynamic):
    cluster.apply(jobs.shell("scaled", replicas=2, enableDynamicWorker=dynamic), namespace=namespace)
    before = {pod["metadata"]["uid"] for pod in jobs.await_running(cluster, namespace, "scaled")}
    cluster.kubectl("scale", "trainingjob/scaled", "--replicas=3", namespace=namespace)
    words = "nobody is restarted" if dynamic else "all replicas restart"
    jobs.await_event(cluster, namespace, "scaled", "Scaled", "worker from 2 to 3", words)

    def all_three():
        found = jobs.running(cluster, namespace, "scaled")
        uids = {pod["metadata"]["uid"] for pod in found}
        return found if len(found) == 3 and (before < uids if dynamic else not before & uids) else None
    found = eventually(all_three)
    assert sorted(map(workers_in_tf_config, found)) == ([2, 2, 3] if dynamic else [3, 3, 3])
    jobs.tell_all(cluster, namespace, "scaled", "exit 0")
    assert jobs.await_success(cluster, namespace, "scaled")["status"]["restarts"] == 0


def test_one_that_fails_for_ever_does_not_hold_up_the_others(cluster, muster, namespace):
    failing = jobs.shell("failing", command="exit 1", runPolicy={"backoffLimit": 1000})
    cluster.apply(failing, namespace=namespace)
    jobs.await_event(cluster, namespace, "failing", "exit code 1 ")
    others = [jobs.shell(f"other-{number}", command="true") for number in range(49)]
    cluster.apply({"apiVersion": "v1", "kind": "List", "items": others}, namespace=namespace)
    cluster.kubectl("wait", "--for=condition=Succeeded", "--timeout=180s", namespace=namespace, timeout=200,
                    *(f"trainingjob/other-{number}" for number in range(49)))
    job = cluster.get("trainingjob", "failing", namespace=namespace)
    assert condition(job, "Finished") != "True"
    assert 1 < job["status"]["restarts"] < 12  # they come ever more slowly


def scale_operators(cluster, muster, count):
    cluster.kubectl("scale", "deployment", "muster", f"--replicas={count}", namespace=muster)
    labels = "app.kubernetes.io/component=operator"
    if count:
        cluster.kubectl("rollout", "status", "deployment/muster", "--timeout=60s", namespace=muster)
    else:
        cluster.kubectl("wait", "--for=delete", "pod", "-l", labels, "--timeout=60s", namespace=muster)


def test_nothing_runs_again_whose_pods_were_collected_while_no_operator_ran(cluster, muster, namespace):
    for name in ("ending", "ended"):
        cluster.apply(jobs.shell(name, replicas=2), namespace=namespace)
        jobs.await_running(cluster, namespace, name)
    jobs.tell_all(cluster, namespace, "ended", "exit 0")
    jobs.await_success(cluster, namespace, "ended")
    scale_operators(cluster, muster, 0)
    try:
        jobs.tell_all(cluster, namespace, "ending", "exit 0")
        eventually(lambda: {pod["status"]["phase"] for pod in jobs.pods(cluster, namespace, "ending")} == {"Succeeded"})
        cluster.kubectl("delete", "pods", "--all", "--wait=false", namespace=namespace)
        # Nobody has counted the ends of the one's pods, so they stay; those of the other go.
        eventually(lambda: not jobs.pods(cluster, namespace, "ended"))
        uids = {pod["metadata"]["uid"] for pod in jobs.pods(cluster, namespace, "ending")}
        assert len(uids) == 2
    finally:
        scale_operators(cluster, muster, 2)
    assert jobs.await_success(cluster, namespace, "ending")["status"]["restarts"] == 0
    eventually(lambda: not jobs.pods(cluster, namespace, "ending"))
    for name in ("ending", "ended"):
        created = [event for event in cluster.get("events", namespace=namespace)
                   if event["reason"] == "Started" and event["involvedObject"]["name"].startswith(f"{name}-")]
        assert len(created) == 2, name  # containers of two workers, once each
