"""What calls muster-operator makes in a job's life, and how long they take a client that does nothing else.

A proxy between the operator and the API server records a few jobs' lives; operator_replay.py makes the same
calls for thousands.
"""

import copy
import dataclasses
import http.client
import http.server
import json
import re
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path

import api_server
import muster
import operators

PROGRAM = Path(__file__).resolve().parent / "operator_replay.py"
CONNECTIONS = 32  # the operator's --in-flight, left as it is


@dataclasses.dataclass
class Call:
    method: str
    path: str
    content_type: str
    body: str
    answer: dict
    ended: frozenset  # pods that the operator had seen end when it called


class Recorder:
    """An HTTP server that hands every call on to the API server, and remembers it."""

    def __init__(self, server):
        self.calls, self.watches = [], set()
        self.server = server
        self._ended, self._mutex = set(), threading.Lock()
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                self.upstream = server.connect()

            def pass_on(self):
                try:
                    recorder.pass_on(self)
                except (BrokenPipeError, ConnectionResetError, http.client.HTTPException):
                    self.close_connection = True  # the operator has ended

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

            def log_message(self, *_):
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        config = server.folder / "recorder.kubeconfig"
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "recorder",
            "contexts": [{"name": "recorder", "context": {"cluster": "recorder", "user": "recorder"}}],
            "users": [{"name": "recorder", "user": {}}],
            "clusters": [{"name": "recorder", "cluster": {
                "server": f"http://127.0.0.1:{self._http.server_address[1]}"}}]}))
        self.behind = copy.copy(server)  # the server as who starts an operator is to see it
        self.behind.kubeconfig = config

    def __enter__(self):
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._http.shutdown()
        self._http.server_close()

    def pass_on(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        headers = {name: handler.headers[name] for name in ("Content-Type", "Accept") if name in handler.headers}
        with self._mutex:
            ended = frozenset(self._ended)
        handler.upstream.request(handler.command, handler.path, body or None, headers)
        answer = handler.upstream.getresponse()
        handler.send_response(answer.status)
        handler.send_header("Content-Type", answer.headers.get("Content-Type", ""))
        if "watch=true" in handler.path:
            return self._stream(handler, answer)
        text = answer.read()
        if answer.status < 300 and handler.command != "GET":
            with self._mutex:
                self.calls.append(Call(handler.command, handler.path, headers.get("Content-Type", ""), body.decode(),
                                       json.loads(text), ended))
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def _stream(self, handler, answer):
        path, _, query = handler.path.partition("?")
        selector = urllib.parse.parse_qs(query).get("labelSelector")
        with self._mutex:
            self.watches.add(path + (f"?labelSelector={urllib.parse.quote(selector[0])}" if selector else ""))
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while line := answer.readline():
            self._note_end(json.loads(line))
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        handler.wfile.write(b"0\r\n\r\n")

    def _note_end(self, event):
        pod = event["object"]
        if pod.get("kind") == "Pod" and pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            with self._mutex:
                self._ended.add(pod["metadata"]["name"])


def _step(call, namespace, job, uids):
    """The call as a template of operator_replay.py: its words in @ stand for what differs between jobs. Pods go by
    what follows the job's name in theirs."""
    body = json.loads(call.body)
    if call.method == "PUT":
        body["metadata"]["resourceVersion"] = "@VERSION:@"
    elif call.method == "DELETE" and "resourceVersion" in body.get("preconditions", {}):
        pod = call.path.partition("?")[0].rpartition("/")[2].removeprefix(job)
        body["preconditions"]["resourceVersion"] = f"@VERSION:{pod}@"
    text = json.dumps(body, separators=(",", ":"))
    for uid, pod in uids.items():
        text = text.replace(uid, f"@UID:{pod}@")

    def in_any(text):
        return re.sub(rf"\b{namespace}\b", "@NAMESPACE@", re.sub(rf"\b{job}\b", "@JOB:@", text))

    return {"method": call.method, "path": in_any(call.path), "type": call.content_type, "body": in_any(text),
            "waits": [name.removeprefix(job) for name in call.ended if name.startswith(f"{job}-")],
            "kind": "event" if "/events" in call.path else "status" if call.method == "PUT" else "object"}


def _life(recorder, namespace, job, job_uid):
    """Steps of a job, in the order in which its operator took them. Pods of a template are tried (dry run) once for
    all jobs, so that is left out."""
    own = [call for call in recorder.calls if "/leases" not in call.path and "dryRun=All" not in call.path
           and re.search(rf"\b{job}\b", call.path + call.body)]
    uids = {job_uid: ""}
    for call in own:
        if call.answer.get("kind") == "Pod":
            uids[call.answer["metadata"]["uid"]] = call.answer["metadata"]["name"].removeprefix(job)
    return [_step(call, namespace, job, uids) for call in own]


def record(server, namespace, manifests, jobs, done):
    """The lives of a few jobs in that namespace, and the paths that their operator watches. `manifests` makes them from
    names; `done` says, of the operator, whether they are over."""
    server.make_namespace(namespace)
    with Recorder(server) as recorder, operators.MUSTER.start(recorder.behind, namespace) as running:
        collection = operators.MUSTER.collection.format(namespace)
        names = [f"job-{i}" for i in range(jobs)]
        server.create(collection, manifests(names))
        api_server.wait_until("the end of the recorded jobs", lambda: done(running))
        time.sleep(2)  # for what comes after the end
        uids = {one["name"]: one["uid"] for one in server.metadata(collection)}
    lives = [_life(recorder, namespace, name, uids[name]) for name in names]
    watches = [path.replace(namespace, "@NAMESPACE@") for path in recorder.watches]
    return {"lives": lives, "watches": watches}


def words(step):
    """What a step is, for people: its method and its resource."""
    parts = step["path"].partition("?")[0].partition("/namespaces/@NAMESPACE@/")[2].split("/")
    return f"{step['method']} {'/'.join(parts[:1] + parts[2:])}"


class Replay:
    """operator_replay.py, which waits for jobs in a namespace as the operator does."""

    def __init__(self, server, namespace, recorded, jobs, totals):
        order = {**recorded, "jobs": jobs, "connections": CONNECTIONS, "totals": totals,
                 "address": server.address, "ca": str(server.folder / "pki/ca.crt"),
                 "certificate": str(server.folder / "pki/admin.crt"), "key": str(server.folder / "pki/admin.key")}
        self._process = subprocess.Popen([sys.executable, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True)
        self._process.stdin.write(json.dumps(order).replace("@NAMESPACE@", namespace))
        self._process.stdin.close()
        self._expect("ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()

    def _expect(self, word):
        line = self._process.stdout.readline()
        if not line.startswith(word):
            raise muster.Failed(f"{PROGRAM.name}: expected {word}, found {line!r}")
        return line[len(word):]

    def wait(self):
        """What it says of its calls, when all jobs have their last status."""
        return json.loads(self._expect("done"))

    def cpu_seconds(self):
        return api_server.cpu_seconds(self._process.pid)
