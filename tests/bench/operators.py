"""A Kubernetes API server without nodes, and the operators that rows measure on it."""

import atexit
import concurrent.futures
import dataclasses
import functools
import http.client
import json
import math
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable

import muster

TOOLS = muster.ROOT / "build/tools"
SCRIPT = muster.ROOT / "deploy/cluster/api-server.sh"
# The only folder in which training-operator looks for its certificate.
PEER_CERTIFICATE = pathlib.Path("/tmp/k8s-webhook-server/serving-certs")
STAGES = pathlib.Path(__file__).resolve().parent / "kwok.yaml"
TICKS = os.sysconf("SC_CLK_TCK")


def wait_until(what, condition, seconds=120, every=0.02):
    """The first true answer of `condition`."""
    until = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > until:
            raise muster.Failed(f"expected {what} within {seconds} s, and waited in vain")
        time.sleep(every)
    return answer


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class ApiServer:
    """kube-apiserver and etcd of deploy/cluster/api-server.sh, and calls of it."""

    def __init__(self):
        muster.call([muster.ROOT / "deploy/setup/go.sh", "etcd", "kube-apiserver", "kubectl"])
        self._temporary = tempfile.TemporaryDirectory(prefix="muster-bench-")
        self.folder = pathlib.Path(self._temporary.name)
        muster.call([SCRIPT, "start", self.folder])
        self.kubeconfig = self.folder / "kubeconfig"
        addresses = (self.folder / "addresses.sh").read_text()
        self._address = re.search(r"server=https://(\S+)", addresses)[1]
        self._tls = ssl.create_default_context(cafile=self.folder / "pki/ca.crt")
        self._tls.load_cert_chain(self.folder / "pki/admin.crt", self.folder / "pki/admin.key")
        self._of_thread = threading.local()

    def stop(self):
        muster.call([SCRIPT, "stop", self.folder])
        self._temporary.cleanup()

    def call(self, method, path, body=None, accept="application/json"):
        """The answer as a dictionary; each thread has a connection of its own."""
        connection = self._connection()
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Content-Type": "application/json", "Accept": accept})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise muster.Failed(f"{method} {path}: {answer.status} {text[:500]}")
        return json.loads(text)

    def _connection(self):
        """This thread's; a new one after a pause, in which the server may have closed the old one."""
        mine = self._of_thread
        if time.monotonic() - getattr(mine, "used", -math.inf) > 30:
            mine.connection = http.client.HTTPSConnection(self._address, context=self._tls, timeout=60)
        mine.used = time.monotonic()
        return mine.connection

    def create(self, path, bodies, connections=16):
        """All of them, as fast as so many connections can."""
        with concurrent.futures.ThreadPoolExecutor(connections) as pool:
            list(pool.map(lambda body: self.call("POST", path, body), bodies))

    def define(self, name, manifest):
        """Applies a CustomResourceDefinition, and waits until it holds."""
        muster.call([TOOLS / "kubectl", "--kubeconfig", self.kubeconfig, "apply", "--server-side",
                     "-f", manifest])
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        wait_until(f"{name} established", lambda: any(
            (one["type"], one["status"]) == ("Established", "True")
            for one in self.call("GET", path)["status"].get("conditions") or []))

    def count(self, path):
        """How many objects a collection has."""
        page = self.call("GET", f"{path}?limit=1", accept=(
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"))
        return len(page["items"] or []) + page["metadata"].get("remainingItemCount", 0)

    def metadata(self, path):
        """metadata of each object of a collection."""
        page = self.call("GET", path, accept=(
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"))
        return [item["metadata"] for item in page["items"] or []]

    def make_namespace(self, name):
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def cpu_seconds(self):
        """Of the API server and etcd, since they began."""
        return sum(cpu_seconds((self.folder / f"{name}.pid").read_text().split()[0])
                   for name in ("kube-apiserver", "etcd"))


@functools.cache
def api_server():
    """One for all rows of a run."""
    server = ApiServer()
    atexit.register(server.stop)
    return server


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
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()

    def calls(self):
        """Calls of the API server so far."""
        return sum(float(value) for value in
                   re.findall(r"(?m)^rest_client_requests_total\{.*\} (\S+)$", self.metrics()))

    def peak_megabytes(self):
        status = pathlib.Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024 / 1e6

    def cpu_seconds(self):
        return cpu_seconds(self._process.pid)


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


def start_muster(server, namespace, *flags):
    server.define("trainingjobs.muster.dev", muster.ROOT / "charts/muster/files/crd.yaml")
    port = free_port()
    running = Running(server, "muster-operator", [
        muster.BIN / "muster-operator", "--kubeconfig", server.kubeconfig, "--namespace", namespace,
        "--lease-namespace", namespace.split(",")[0], "--http-address", f"127.0.0.1:{port}", *flags], port, {})
    wait_until("muster-operator watching",
               lambda: running.alive() and _answers(f"http://127.0.0.1:{port}/readyz"))
    return running


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
    server.define("tfjobs.kubeflow.org",
                  _peer_sources() / "manifests/base/crds/kubeflow.org_tfjobs.yaml")
    _certify_peer(server, namespace)
    metrics, probes, hooks = free_port(), free_port(), free_port()
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
PEER = Operator("training-operator", start_peer, "/apis/kubeflow.org/v1/namespaces/{}/tfjobs", tf_job)


class Kwok:
    """KWOK in place of kubelets, with `nodes` nodes; there is no scheduler, so pods must name theirs."""

    def __init__(self, server, nodes):
        muster.call([muster.ROOT / "deploy/setup/go.sh", "kwok"])
        self.nodes = [f"node-{i}" for i in range(nodes)]
        server.create("/api/v1/nodes", [{"metadata": {"name": name}} for name in self.nodes])
        self._server = server

    def __enter__(self):
        command = [TOOLS / "kwok", "--kubeconfig", self._server.kubeconfig, "--manage-all-nodes=true",
                   "--node-lease-duration-seconds=0", "--config", STAGES]
        self._log = open(self._server.folder / "kwok.log", "ab")
        self._process = subprocess.Popen(list(map(str, command)), stdout=self._log, stderr=self._log)
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._log.close()
        for name in self.nodes:
            self._server.call("DELETE", f"/api/v1/nodes/{name}")

    def cpu_seconds(self):
        return cpu_seconds(self._process.pid)
