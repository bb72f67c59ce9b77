"""Kueue itself, for tests: its manager runs as a process of this machine, beside the cluster's own."""

import json
import re
import subprocess

from cluster import ROOT, TOOLS, eventually, run

MODULE = ROOT / "deploy/cluster/tools/kueue/go.mod"
GROUP = "kueue.x-k8s.io/v1beta2"


def source():
    """The folder of Kueue's module, in the version that the program is built of."""
    version = re.search(r"sigs.k8s.io/kueue (\S+)", MODULE.read_text())[1]
    found = run(["go", "mod", "download", "-json", f"sigs.k8s.io/kueue@{version}"], cwd="/", timeout=300)
    return json.loads(found)["Dir"]


def install_definitions(cluster):
    cluster.kubectl("apply", "--server-side", "-f", f"{source()}/config/components/crd/bases")
    cluster.kubectl("wait", "--for=condition=Established", "--all", "crd", "--timeout=60s")


def settings(folder):
    """Without webhooks: what they would refuse or fill in, the tests' objects do not have. Kueue makes pods of no
    TrainingJob its own business."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration",
        "health": {"healthProbeBindAddress": "127.0.0.1:0"}, "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": 19443, "certDir": str(folder)},
        "leaderElection": {"leaderElect": False}, "internalCertManagement": {"enable": False},
        "featureGates": {"VisibilityOnDemand": False},
        "integrations": {"frameworks": ["batch/job"], "externalFrameworks": ["TrainingJob.v1alpha1.muster.dev"]},
    }


# Kueue reads the certificate of its metrics from this place alone, so it gets a view of /etc that has one.
START = """mount -t overlay overlay -o lowerdir="$0":/etc /etc && exec "$@" """


class Kueue:
    """The running program; `end` ends it."""

    def __init__(self, cluster, folder):
        etc = folder / "etc"
        certificates = etc / "kueue/metrics/certs"
        certificates.mkdir(parents=True)
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-keyout", certificates / "tls.key", "-out", certificates / "tls.crt"])
        (folder / "kueue.yaml").write_text(json.dumps(settings(certificates)))
        self.log = folder / "kueue.log"
        self.process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", START, etc,
             TOOLS / "kueue", f"--config={folder / 'kueue.yaml'}", f"--kubeconfig={cluster.kubeconfig}"],
            stdout=self.log.open("w"), stderr=subprocess.STDOUT)
        eventually(lambda: self.process.poll() is None and "Starting workers" in self.log.read_text(), within=60)

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def make_flavor(cluster):
    cluster.apply({"apiVersion": GROUP, "kind": "ResourceFlavor", "metadata": {"name": "ordinary"},
                   "spec": {"nodeLabels": {"kubernetes.io/os": "linux"}}})


def make_queue(cluster, namespace, cpu, cohort=None, name="team"):
    """A LocalQueue of the namespace, and its ClusterQueue with so much CPU."""
    whole = f"{namespace}-{name}"
    quota = {"name": "ordinary", "resources": [{"name": "cpu", "nominalQuota": cpu},
                                               {"name": "memory", "nominalQuota": "100Gi"}]}
    spec = {"namespaceSelector": {}, "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": [quota]}],
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}}
    if cohort:
        spec["cohortName"] = cohort
    cluster.apply({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": GROUP, "kind": "ClusterQueue", "metadata": {"name": whole}, "spec": spec},
        {"apiVersion": GROUP, "kind": "LocalQueue", "metadata": {"name": name, "namespace": namespace},
         "spec": {"clusterQueue": whole}}]}, namespace=namespace)

    def is_active():
        found = cluster.get("localqueue", name, namespace=namespace).get("status", {}).get("conditions", [])
        return any(entry["type"] == "Active" and entry["status"] == "True" for entry in found)
    eventually(is_active, within=60)


def make_priority(cluster, name, value):
    cluster.apply({"apiVersion": GROUP, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value})


def queued(job, queue="team", priority=None):
    """The job, in a queue."""
    labels = {"kueue.x-k8s.io/queue-name": queue}
    if priority:
        labels["kueue.x-k8s.io/priority-class"] = priority
    job["metadata"].setdefault("labels", {}).update(labels)
    return job


def workload_condition(cluster, namespace, job, kind):
    """Status and reason of a condition of the job's Workload: "True Admitted"."""
    [workload] = [one for one in cluster.get("workloads.kueue.x-k8s.io", namespace=namespace)
                  if one["metadata"]["labels"].get("muster.dev/job") == job]
    found = [entry for entry in workload.get("status", {}).get("conditions", []) if entry["type"] == kind]
    return f"{found[0]['status']} {found[0]['reason']}" if found else None
