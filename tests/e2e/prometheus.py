"""A Prometheus that scrapes the cluster as the chart's ServiceMonitor and PodMonitor would have it."""

import contextlib
import json
import subprocess
import sys

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


def scrape(name, kubeconfig, label, value, *more, **settings):
    """Targets are the pods with a container port called metrics and such a label."""
    meta = "__meta_kubernetes_pod"
    return {
        "job_name": name, **settings,
        "kubernetes_sd_configs": [{"role": "pod", "kubeconfig_file": kubeconfig}],
        "relabel_configs": [
            {"source_labels": [f"{meta}_container_port_name"], "regex": "metrics", "action": "keep"},
            {"source_labels": [f"{meta}_label_{label}"], "regex": value, "action": "keep"},
            {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
            {"source_labels": [f"{meta}_name"], "target_label": "pod"},
            *more]}


class Prometheus:
    def __init__(self, cluster):
        self.cluster = cluster

    def ask(self, *queries):
        """The result of each query, now."""
        answer = self.cluster("enter", sys.executable, "-c", ASK, input=json.dumps(queries))
        return json.loads(answer)


@contextlib.contextmanager
def prometheus(cluster, folder):
    """Runs while the context is open; scrapes every second."""
    inside = str(cluster.kubeconfig.with_name("admin-inside.kubeconfig"))
    job = {"source_labels": ["__meta_kubernetes_pod_label_muster_dev_job"], "target_label": "trainingjob"}
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            scrape("muster", inside, "app_kubernetes_io_component", "operator", honor_labels=True),
            scrape("replicas", inside, "muster_dev_job", ".+", job)]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    with open(folder / "prometheus.log", "w") as log:
        process = subprocess.Popen(
            [SCRIPT, "enter", "prometheus", f"--config.file={folder}/prometheus.yml", f"--web.listen-address={ADDRESS}",
             f"--storage.tsdb.path={folder}/data"], env=cluster.environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        it = Prometheus(cluster)
        eventually(lambda: asks(it, "up"), within=60)
        yield it
    finally:
        process.terminate()
        process.wait(timeout=30)


def asks(it, query):
    """Whether there is a result yet; no answer is none."""
    try:
        return bool(it.ask(query)[0])
    except Failed:
        return False
