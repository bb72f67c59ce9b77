"""The chart, uninstalled and installed again: last of all by this file's name, for there is no operator between."""

import jobs


def test_what_runs_is_let_go_and_taken_up_by_the_next_installation(cluster, muster, namespace):
    cluster.apply(jobs.shell("orphan", replicas=2), namespace=namespace)
    before = jobs.await_running(cluster, namespace, "orphan")
    assert all("muster.dev/tracking" in pod["metadata"]["finalizers"] for pod in before)
    cluster.helm("uninstall", "muster", "--wait", namespace=muster, timeout=320)
    assert cluster.kubectl("get", "lease", "muster", "--ignore-not-found", namespace=muster) == ""
    left = jobs.running(cluster, namespace, "orphan")
    assert not any("finalizers" in pod["metadata"] for pod in left)
    # The definition stays, and with it the jobs.
    cluster.install_chart(muster)
    uids = {pod["metadata"]["uid"] for pod in before}
    assert uids == {pod["metadata"]["uid"] for pod in left}
    assert uids == {pod["metadata"]["uid"] for pod in jobs.running(cluster, namespace, "orphan")}
    jobs.tell_all(cluster, namespace, "orphan", "exit 0")
    assert jobs.await_success(cluster, namespace, "orphan")["status"]["restarts"] == 0
