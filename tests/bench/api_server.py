"""A Kubernetes API server without nodes, KWOK in place of kubelets, and what rows ask of processes."""

import atexit
import base64
import collections
import concurrent.futures
import functools
import http.client
import itertools
import json
import math
import os
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request

import muster

TOOLS = muster.ROOT / "build/tools"
SCRIPT = muster.ROOT / "deploy/cluster/api-server.sh"
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


def _base64(value):
    return base64.b64encode(value).decode()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def peak_megabytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024 / 1e6


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class ApiServer:
    """kube-apiserver and etcd of deploy/cluster/api-server.sh, and calls of it."""

    def __init__(self, **environment):
        muster.call([muster.ROOT / "deploy/setup/go.sh", "etcd", "kube-apiserver", "kubectl"])
        self._temporary = tempfile.TemporaryDirectory(prefix="muster-bench-")
        self.folder = pathlib.Path(self._temporary.name)
        self._environment = environment
        muster.call([SCRIPT, "start", self.folder], **environment)
        self.kubeconfig = self.folder / "kubeconfig"
        addresses = (self.folder / "addresses.sh").read_text()
        self.address = re.search(r"server=https://(\S+)", addresses)[1]
        self._etcd_address = re.search(r"etcd=(\S+)", addresses)[1]
        self._tls = ssl.create_default_context(cafile=self.folder / "pki/ca.crt")
        self._tls.load_cert_chain(self.folder / "pki/admin.crt", self.folder / "pki/admin.key")
        self._of_thread = threading.local()

    def restart(self):
        """Kills and starts the API server; etcd stays."""
        muster.call([SCRIPT, "kill", self.folder, "kube-apiserver"])
        muster.call([SCRIPT, "run", self.folder, "kube-apiserver"], **self._environment)
        muster.call([SCRIPT, "await", self.folder])
        self._of_thread = threading.local()

    def stop(self):
        muster.call([SCRIPT, "stop", self.folder])
        self._temporary.cleanup()

    def call(self, method, path, body=None, accept="application/json"):
        """The answer as a dictionary; each thread has a connection of its own."""
        return json.loads(self._text(method, path, body, accept))

    def _text(self, method, path, body, accept):
        connection = self._connection()
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Content-Type": "application/json", "Accept": accept})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise muster.Failed(f"{method} {path}: {answer.status} {text[:500]}")
        return text

    def _connection(self):
        """This thread's; a new one after a pause, in which the server may have closed the old one."""
        mine = self._of_thread
        if time.monotonic() - getattr(mine, "used", -math.inf) > 30:
            mine.connection = self.connect()
        mine.used = time.monotonic()
        return mine.connection

    def connect(self):
        return http.client.HTTPSConnection(self.address, context=self._tls, timeout=60)

    def requests(self):
        """Requests that it has answered, by "VERB resource", whoever made them."""
        found = re.findall(r"(?m)^apiserver_request_total\{(.*)\} (\S+)$",
                           self._text("GET", "/metrics", None, "text/plain").decode())
        counts = collections.Counter()
        for labels, value in found:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            resource = "/".join(filter(None, (labels["resource"], labels["subresource"])))
            dry = " (dry run)" if labels.get("dry_run") else ""
            counts[f"{labels['verb']} {resource}{dry}"] += float(value)
        return counts

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

    def stored(self, key):
        """What etcd has under this key, as bytes."""
        found = self._etcd("range", {"key": _base64(key.encode())})
        return base64.b64decode(found["kvs"][0]["value"])

    def store(self, objects, at_a_time=100):
        """Puts pairs of key and value into etcd, past the API server, which sees them as it sees another API server's."""
        objects = iter(objects)
        while some := list(itertools.islice(objects, at_a_time)):
            self._etcd("txn", {"success": [{"requestPut": {"key": _base64(key.encode()), "value": _base64(value)}}
                                           for key, value in some]})

    def _etcd(self, call, body):
        request = urllib.request.Request(f"{self._etcd_address}/v3/kv/{call}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def make_namespace(self, name):
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def pid(self, program):
        return (self.folder / f"{program}.pid").read_text().split()[0]

    def cpu_seconds(self, *programs):
        """Of these programs, or of both, since they began."""
        return sum(cpu_seconds(self.pid(name)) for name in programs or ("kube-apiserver", "etcd"))


@functools.cache
def shared():
    """One for all rows of a run."""
    server = ApiServer()
    atexit.register(server.stop)
    return server


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
