"""A detector on three hosts with slow links between them: one ps and two workers, each in a network namespace of its
own, joined by a switch whose ports carry 100 Mbit/s in each direction. Needs root, for the namespaces."""

import contextlib
import functools
import json
import os
import pathlib
import subprocess
import tempfile

import detector
import muster

MEGABITS = 100
HOSTS = {"ps": "10.55.0.1", "chief": "10.55.0.2", "worker": "10.55.0.3"}  # role, address
PORT = 4700
SWITCH = "muster-bench-switch"


def namespace(role):
    return f"muster-bench-{role}"


def within(name, *command):
    return ["ip", "netns", "exec", name, *command]


@contextlib.contextmanager
def network():
    """Hosts and switch, for as long as the context lasts."""
    if os.geteuid() != 0:
        raise muster.Failed("the row needs root: it makes network namespaces")
    names = [SWITCH, *map(namespace, HOSTS)]
    try:
        for name in names:
            muster.call(["ip", "netns", "add", name])
        muster.call(within(SWITCH, "ip", "link", "add", "bridge", "type", "bridge"))
        muster.call(within(SWITCH, "ip", "link", "set", "bridge", "up"))
        for role, address in HOSTS.items():
            host = namespace(role)
            muster.call(within(SWITCH, "ip", "link", "add", role, "type", "veth", "peer", "name", "eth0", "netns", host))
            muster.call(within(SWITCH, "ip", "link", "set", role, "master", "bridge", "up"))
            muster.call(within(host, "ip", "address", "add", f"{address}/24", "dev", "eth0"))
            for device in ("lo", "eth0"):
                muster.call(within(host, "ip", "link", "set", device, "up"))
            for name, device in ((SWITCH, role), (host, "eth0")):
                muster.call(within(name, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate",
                                   f"{MEGABITS}mbit", "burst", "64kb", "latency", "50ms"))
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def sent(role):
    """(bytes that a host has sent, bytes that it has received)"""
    answer = json.loads(muster.call(within(namespace(role), "ip", "-json", "-statistics", "link", "show", "eth0")))
    return [answer[0]["stats64"][direction]["bytes"] for direction in ("tx", "rx")]


def start(role, folder, training):
    """The process that the operator would start there."""
    cluster = {name: [f"{address}:{PORT}"] for name, address in HOSTS.items()}
    environment = {
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": 0}}),
        "MUSTER_JOB": "slow-link", "MUSTER_JOB_UID": "slow-link", "MUSTER_ROLE": role, "MUSTER_INDEX": "0",
        "MUSTER_ATTEMPT": "0", "MUSTER_REPLICAS": json.dumps(dict.fromkeys(HOSTS, 1)), "MUSTER_STORAGE": str(folder),
        "MUSTER_TRAINING": str(training), "MUSTER_THREADS": "1", "MUSTER_SHARED_MEMORY": "0"}
    with open(folder / f"{role}.log", "w") as log:
        return subprocess.Popen(within(namespace(role), muster.BIN / "muster-trainer"), stdout=log, stderr=log,
                                env={**os.environ, **environment})


def together(training):
    """(seconds of a step, seconds that the busiest direction of the ps's link needs for what a step sends)"""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as scratch, network():
        folder = pathlib.Path(scratch)
        file = folder / "training.yaml"
        file.write_text(json.dumps(training))
        processes = {role: start(role, folder, file) for role in HOSTS}
        try:
            for role in ("chief", "worker"):
                if processes[role].wait(timeout=1200) != 0:
                    raise muster.Failed((folder / f"{role}.log").read_text()[-2000:])
            carried = max(sent("ps")) / training["steps"]
        finally:
            for process in processes.values():
                process.terminate()
                process.wait()
        seconds = json.loads((folder / "result.json").read_text())["secondsPerBatch"]
        return seconds, carried * 8 / (MEGABITS * 1e6)


class SlowLink:
    """Two figures of one run: which share of a step is computing, and which share it could be at most, if the link
    never rested."""

    name = "the link's limit"

    @functools.cached_property
    def _shares(self):
        training = {**detector.training(), "gradientAccumulation": 4, "steps": 8}
        whole, link = together({**training, "synchronization": {"wire": "bfloat16"}})
        computing = detector.apart(training)
        print(f"    {whole:.2f} s a step, {computing:.2f} s of them computing; the link needs {link:.2f} s", flush=True)
        return computing / whole, computing / max(computing, link)

    def share(self):
        return self._shares[0]

    def measure(self):
        return self._shares[1]
