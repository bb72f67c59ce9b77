"""Processes of pods as this machine sees them: the cluster's nodes are namespaces of it."""

import os
import pathlib
import signal
import subprocess


def containers(pod):
    """The ids of a pod's containers that have been started."""
    statuses = pod["status"].get("containerStatuses", [])
    return [status["containerID"].split("://")[1] for status in statuses if "containerID" in status]


def processes(pod):
    """By the programs' names (the kernel keeps 15 letters), the ids of all processes in the pod's containers."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            cgroups, name = (folder / "cgroup").read_text(), (folder / "comm").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        if any(container in cgroups for container in containers(pod)):
            found.setdefault(name, []).append(int(folder.name))
    return found


def send(pod, program, name):
    """Sends SIG`name` to the pod's processes of that program; there must be one."""
    ids = processes(pod).get(program[:15], [])
    assert ids, f"no {program} in {pod['metadata']['name']}: {processes(pod)}"
    for process in ids:
        os.kill(process, signal.Signals["SIG" + name])


def memory_cgroup(process):
    """The folder of a process' cgroup that counts its memory, of version 1 or 2."""
    lines = pathlib.Path(f"/proc/{process}/cgroup").read_text().splitlines()
    paths = {name: path for _, name, path in (line.split(":", 2) for line in lines)}
    root = pathlib.Path("/sys/fs/cgroup")
    return root / "memory" / paths["memory"].lstrip("/") if "memory" in paths else root / paths[""].lstrip("/")


def run_beside(pod, program, command):
    """Runs a command whose memory counts as that of the pod's container with that program."""
    [process, *_] = processes(pod)[program[:15]]
    procs = memory_cgroup(process) / "cgroup.procs"
    return subprocess.run(command, capture_output=True, preexec_fn=lambda: procs.write_text(str(os.getpid())))
