"""Each panel of the chart's dashboards has data of a real cluster, or says in its description when it has none."""

import datetime
import json
import re
import sys
import time

import jobs
import operators
from cluster import ROOT, condition, eventually
from prometheus import ADDRESS, prometheus

BOARDS = ROOT / "charts/muster/files/dashboards"
VARIABLES = {"$__rate_interval": "30s", "$namespace": ".+", "$trainingjob": ".+", "$job": ".+"}


def panels():
    for path in sorted(BOARDS.glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            if panel.get("targets"):
                yield path.name, panel


def queries_of(panel):
    for target in panel["targets"]:
        query = target["expr"]
        for variable, value in VARIABLES.items():
            query = query.replace(variable, value)
        yield query


def simple(name, container, **job):
    """A job of one program of its own."""
    return {"apiVersion": "muster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
            "spec": {"replicaSpecs": {"chief": {"template": {"spec": {"containers": [
                {"name": "trainer", "image": "localhost/busybox:muster", **container}]}}}}, **job}}


def test_each_panel_has_data_or_says_when_it_has_none(cluster, muster, namespace, storage, tmp_path):
    with prometheus(cluster, tmp_path) as metrics:
        cluster.apply(jobs.mnist(jobs.LONGER), namespace=namespace)
        cluster.apply(simple("fails", {"command": ["sh", "-c", "exit 3"]},
                             runPolicy={"backoffLimit": 0}), namespace=namespace)
        cluster.apply(simple("waits", {"command": ["true"], "resources": {"requests": {"cpu": "1000"}}}), namespace=namespace)
        jobs.await_step(cluster, namespace, jobs.NAME, 1)
        eventually(lambda: condition(cluster.get("tj", "fails", namespace=namespace), "Failed") == "True", within=120)
        time.sleep(20)  # rates need samples
        shown = list(panels())
        asked = [(board, panel["title"], query) for board, panel in shown for query in queries_of(panel)]
        results = metrics.ask(*(query for _, _, query in asked))
        with_data = {(board, title) for (board, title, _), result in zip(asked, results) if result}
        empty = [f'{board}: {panel["title"]}' for board, panel in shown
                 if (board, panel["title"]) not in with_data and "Empty" not in panel["description"]]
        assert not empty
        # What the owner of a fleet asks: which job waits, whose it is and why; which has failed, and by what.
        [waiting], [failed] = metrics.ask(f'muster_job_waiting_seconds{{namespace="{namespace}", trainingjob="waits"}}',
                                          f'muster_job_end{{namespace="{namespace}"}}')
        assert waiting["metric"]["cause"] == "Unschedulable"
        assert (failed["metric"]["trainingjob"], failed["metric"]["exit_code"]) == ("fails", "3")
        told = cluster("enter", sys.executable, ROOT / "deploy/monitoring/fleet_questions.py", f"http://{ADDRESS}",
                       "--namespace", namespace, "--over", "30s")
        print(told)
        for job, *words in (("waits", "Unschedulable"), ("fails", "Failed", "3"), (jobs.NAME, "Running")):
            assert re.search(rf"(?m)^  {namespace} +" + " .*".join((job, *words)), told), told


def seconds(time):
    return datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def test_the_uses_of_a_jobs_time_add_up_to_its_age(cluster, muster, namespace, storage):
    """Although its chief is killed, and the operator that looks at it is another one in the end."""
    cluster.apply(jobs.mnist(jobs.LONGER), namespace=namespace)
    jobs.await_step(cluster, namespace, jobs.NAME, 1)
    [chief] = jobs.pods(cluster, namespace, jobs.NAME, "chief")

    def uses_so_far():
        return cluster.get("tj", jobs.NAME, namespace=namespace)["status"].get("goodput", {}).get("seconds", {})

    cluster.kubectl("delete", "pod", chief["metadata"]["name"], "--force", namespace=namespace)
    eventually(lambda: "lost" in uses_so_far(), within=120)
    leading = eventually(lambda: operators.leader(cluster, muster))
    cluster.kubectl("delete", "pod", leading["metadata"]["name"], namespace=muster)
    job = jobs.await_success(cluster, namespace, jobs.NAME)
    uses = job["status"]["goodput"]["seconds"]
    age = seconds(job["status"]["completionTime"]) - seconds(job["metadata"]["creationTimestamp"])
    assert abs(sum(uses.values()) - age) <= max(0.01 * age, 1), (age, uses)  # creationTimestamp has whole seconds
    assert uses["lost"] > 0 and uses["computing"] > 0, uses
    assert uses.get("unknown", 0) < 0.2 * age, uses
    operators.await_operators(cluster, muster)
