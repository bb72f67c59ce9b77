"""Programs of TensorFlow and PyTorch that lose a process by `kill -9` while they train: the job goes on, and counts one
restart, whatever its other replicas make of the loss."""

import os
import signal

import programs
import pytest
from cluster import eventually
from programs import KILLS, PROGRAMS
from rack import Rack
from sides import Hosts, Kubernetes, Processes, outcome_of

# What `make e2e` passes; the others take long and differ little.
ALWAYS = {("processes", "mirrored-worker-0"), ("kubernetes", "mirrored-worker-1")}


# Each place, and what a program's job needs there.
@pytest.fixture
def processes(tmp_path):
    side = Processes(tmp_path)
    yield side, programs.on_this_machine
    side.end()


@pytest.fixture
def hosts(tmp_path):
    rack = Rack("programs", tmp_path, ["host-a", "host-b", "host-c"], slots=1)
    side = Hosts(tmp_path, rack)
    try:
        rack.up()
        # By itself gloo listens at the address of the host's name, which is not on this network.
        yield side, lambda job: programs.on_this_machine(job, GLOO_SOCKET_IFNAME="eth0")
    finally:
        side.end()
        rack.end_all()
        rack.down()


@pytest.fixture
def kubernetes(cluster, muster, namespace, image_of_programs):
    return Kubernetes(cluster, namespace), programs.in_pods


def parameters():
    return [pytest.param(side, name, marks=[] if (side, name) in ALWAYS else [pytest.mark.nightly], id=f"{side}-{name}")
            for side in ("processes", "hosts", "kubernetes") for name in KILLS]


def kill(side, job, target):
    first, children = programs.processes_of(side.uid(job), target.replica)
    assert first, f"no process of {target.replica}"
    assert children or not target.child, f"no process that {first} has started"
    os.kill((children if target.child else first)[0], signal.SIGKILL)


@pytest.mark.parametrize("side, name", parameters())
def test_one_kill_is_one_restart(request, side, name):
    target = KILLS[name]
    program = PROGRAMS[target.program]
    package = programs.SITE_PACKAGES / program.package
    assert package.exists(), f"expected {package}; `deploy/setup/python.sh bench` installs PyTorch"
    side, prepare = request.getfixturevalue(side)
    job = program.example
    side.begin(job, prepare(programs.at_length(program)))
    eventually(lambda: all("step " in side.log(job, replica) for replica in program.reports), within=180)
    kill(side, job, target)
    assert eventually(lambda: outcome_of(side.status(job)), within=400) == ("Succeeded", program.reason, 1)
    assert "y = 2.00 x + 10.00" in side.log(job, program.reports[0])
