"""A Prometheus that scrapes the cluster as the chart's ServiceMonitor and PodMonitor would have it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading

import yaml
from cluster import SCRIPT, Failed, eventually

ADDRESS = "127.0.0.1:9095"
# Asks each query that comes by standard input, a JSON list, and writes the results as another one.
ASK = """
import json, sys, urllib.parse, urllib.request

def ask(query):
    url = "http://%s/api/v1/query?" + urllib.parse.urlencode({"query": query})
    return json.load(urllib.request.urlopen(url, timeout=30))["data"]["result"]

json.dump([ask(query) for query in json.load(sys.stdin)], sys.stdout)
""" % ADDRESS


def targets_of(pods):
    """The pods with a container port called metrics and an address, as targets by job of Prometheus: the operators, and
    replicas with the label trainingjob, as the PodMonitor gives it to them."""
    found = {"muster": [], "replicas": []}
    for pod in pods:
        meta, labels = pod["metadata"], pod["metadata"].get("labels", {})
        ports = [port["containerPort"] for container in pod["spec"]["containers"]
                 for port in container.get("ports", []) if port.get("name") == "metrics"]
        address = pod["status"].get("podIP")
        if not ports or not address or pod["status"]["phase"] != "Running":
            continue
        target = {"targets": [f"{address}:{ports[0]}"],
                  "labels": {"namespace": meta["namespace"], "pod": meta["name"]}}
        if labels.get("app.kubernetes.io/component") == "operator":
            found["muster"].append(target)
        elif "muster.dev/job" in labels:
            target["labels"]["trainingjob"] = labels["muster.dev/job"]
            found["replicas"].append(target)
    return found


class Prometheus:
    def __init__(self, cluster):
        self.cluster = cluster

    def ask(self, *queries):
        """The result of each query, now."""
        answer = self.cluster("enter", sys.executable, "-c", ASK, input=json.dumps(queries))
        return json.loads(answer)


@contextlib.contextmanager
def prometheus(cluster, folder):
    """Runs while the context is open; scrapes every second. Debian's does not find targets in Kubernetes by itself, so
    a thread tells it of them."""
    def tell():
        for job, targets in targets_of(cluster.get("pods", "--all-namespaces")).items():
            written = folder / f"{job}.new"
            written.write_text(json.dumps(targets))
            written.rename(folder / f"{job}.json")

    def keep_telling():
        while not over.wait(2):
            with contextlib.suppress(Failed):
                tell()

    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {"job_name": job, "honor_labels": job == "muster",
             "file_sd_configs": [{"files": [f"{folder}/{job}.json"], "refresh_interval": "2s"}]}
            for job in ("muster", "replicas")]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    tell()
    over = threading.Event()
    teller = threading.Thread(target=keep_telling)
    with open(folder / "prometheus.log", "w") as log:
        process = subprocess.Popen(
            [SCRIPT, "enter", "prometheus", f"--config.file={folder}/prometheus.yml", f"--web.listen-address={ADDRESS}",
             f"--storage.tsdb.path={folder}/data"], env=cluster.environment, stdout=log, stderr=subprocess.STDOUT,
            start_new_session=True)
    try:
        teller.start()
        it = Prometheus(cluster)
        eventually(lambda: asks(it, "up"), within=60)
        yield it
    finally:
        over.set()
        teller.join()
        os.killpg(process.pid, signal.SIGTERM)  # cluster.sh, and Prometheus below it
        process.wait(timeout=30)


def asks(it, query):
    """Whether there is a result yet; no answer is none."""
    try:
        return bool(it.ask(query)[0])
    except Failed:
        return False
