"""The operators that rows measure, on the API server of api_server.py."""

import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import urllib.request
from collections.abc import Callable

import api_server
import muster
from api_server import TOOLS, wait_until

# The only folder in which training-operator looks for its certificate.
PEER_CERTIFICATE = pathlib.Path("/tmp/k8s-webhook-server/serving-certs")


class Running:
    """A process of an operator, and its figures."""

    def __init__(self, server, name, command, metrics_port, environment):
        self._log = open(server.folder / f"{name}.log", "ab")
        self._log_begin = self._log.tell()
        self._process = subprocess.Popen(list(map(str, command)), stdout=self._log, stderr=self._log,
                                         env={**os.environ, **environment})
        self._metrics_port = metrics_port
        self._name = name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.send(signal.SIGCONT)
        self.send(signal.SIGKILL)
        self._process.wait()
        self._log.close()

    def send(self, number):
        if self._process.poll() is None:
            self._process.send_signal(number)

    def alive(self):
        if self._process.poll() is not None:
            raise muster.Failed(f"{self._name} has ended: {self._process.returncode}\n"
                                + self.log()[-2000:])
        return True

    def log(self):
        """What this process has said, not those of its name before it."""
        return pathlib.Path(self._log.name).read_bytes()[self._log_begin:].decode(errors="replace")

    def metrics(self):
        url = f"http://127.0.0.1:{self._metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read().decode()

    def gauge(self, name):
        """The value of a metric, 0 where it is not there. Its name has its labels, as they are written."""
        found = re.search(rf"(?m)^{re.escape(name)} (\S+)$", self.metrics())
        return float(found[1]) if found else 0

    def calls(self, writes=False):
        """Calls of the API server so far, or only those that write."""
        counts = re.findall(r"(?m)^rest_client_requests_total\{(.*)\} (\S+)$", self.metrics())
        return sum(float(value) for labels, value in counts if not (writes and 'method="GET"' in labels))

    def peak_megabytes(self):
        return api_server.peak_megabytes(self._process.pid)

    def cpu_seconds(self):
        return api_server.cpu_seconds(self._process.pid)


@dataclasses.dataclass
class Operator:
    name: str
    start: Callable          # (server, namespace, flags...) -> Running; watches this namespace only
    collection: str          # path of a namespace's jobs, {} is the namespace
    job: Callable            # (name) -> a job of one ps, chief, worker and evaluator


def _replica(**spec):
    return {"replicas": 1, "template": {"spec": {
        "containers": [{"name": "tensorflow", "image": "tf"}], **spec}}}


def muster_job(name, **spec):
    return {"apiVersion": "muster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
            "spec": {"replicaSpecs": {role: _replica(**spec)
                                      for role in ("ps", "chief", "worker", "evaluator")}}}


def lasting(job):
    """The job, whose pods run until they are deleted (kwok.yaml)."""
    for replica in job["spec"]["replicaSpecs"].values():
        replica["template"]["metadata"] = {"annotations": {"bench.muster.dev/lasts": "true"}}
    return job


def start_muster(server, namespace, *flags):
    server.define("trainingjobs.muster.dev", muster.ROOT / "charts/muster/files/crd.yaml")
    port = api_server.free_port()
    running = Running(server, "muster-operator", [
        muster.BIN / "muster-operator", "--kubeconfig", server.kubeconfig, "--namespace", namespace,
        "--lease-namespace", namespace.split(",")[0], "--http-address", f"127.0.0.1:{port}", *flags], port, {})
    wait_until("muster-operator watching",
               lambda: running.alive() and _answers(f"http://127.0.0.1:{port}/readyz"), seconds=600)
    return running


def start_muster_with_tfjobs(server, namespace, *flags):
    _define_tf_jobs(server)
    return start_muster(server, namespace, "--tfjobs=all", *flags)


def tf_job(name):
    roles = ("PS", "Chief", "Worker", "Evaluator")
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
            "spec": {"tfReplicaSpecs": {role: {"restartPolicy": "OnFailure", **_replica()}
                                        for role in roles}}}


def _peer_sources():
    listed = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubeflow/training-operator"],
        cwd=muster.ROOT / "tests/bench/training-operator", capture_output=True, text=True, timeout=600)
    if listed.returncode != 0:
        raise muster.Failed(f"training-operator's sources: {listed.stderr}")
    return pathlib.Path(listed.stdout.strip())


def _define_tf_jobs(server):
    """As training-operator does, whoever takes them: the same object costs the server the same."""
    server.define("tfjobs.kubeflow.org", _peer_sources() / "manifests/base/crds/kubeflow.org_tfjobs.yaml")


def _certify_peer(server, namespace):
    """It begins when it has a certificate for webhooks, though none are configured here."""
    PEER_CERTIFICATE.mkdir(parents=True, exist_ok=True)
    for kind in ("crt", "key"):
        text = (server.folder / f"pki/kube-apiserver.{kind}").read_bytes()
        (PEER_CERTIFICATE / f"tls.{kind}").write_bytes(text)
    server.call("POST", f"/api/v1/namespaces/{namespace}/secrets",
                {"metadata": {"name": "training-operator-webhook-cert"}})


def start_peer(server, namespace, *flags):
    """training-operator with the limits of its client raised, and only the controller of TFJobs."""
    muster.call([muster.ROOT / "deploy/setup/go.sh", "training-operator"])
    _define_tf_jobs(server)
    _certify_peer(server, namespace)
    metrics, probes, hooks = (api_server.free_port() for _ in range(3))
    running = Running(server, "training-operator", [
        TOOLS / "training-operator", f"--namespace={namespace}", "--enable-scheme=tfjob",
        "--kube-api-qps=5000", "--kube-api-burst=10000", "--controller-threads=10",
        f"--metrics-bind-address=127.0.0.1:{metrics}", f"--webhook-server-port={hooks}",
        f"--health-probe-bind-address=127.0.0.1:{probes}", *flags],
        metrics, {"KUBECONFIG": str(server.kubeconfig), "MY_POD_NAMESPACE": namespace})
    wait_until("training-operator watching",
               lambda: running.alive() and "Starting workers" in running.log())
    return running


def _answers(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False


MUSTER = Operator("muster-operator", start_muster, "/apis/muster.dev/v1alpha1/namespaces/{}/trainingjobs",
                  muster_job)
TF_JOBS = "/apis/kubeflow.org/v1/namespaces/{}/tfjobs"
MUSTER_OF_TF_JOBS = Operator("muster-operator", start_muster_with_tfjobs, TF_JOBS, tf_job)
PEER = Operator("training-operator", start_peer, TF_JOBS, tf_job)


def peer_with(threads):
    """training-operator with another number of threads, among which the best is looked for."""
    def start(server, namespace, *flags):
        return start_peer(server, namespace, f"--controller-threads={threads}", *flags)
    return dataclasses.replace(PEER, name=f"training-operator, {threads} threads", start=start)
