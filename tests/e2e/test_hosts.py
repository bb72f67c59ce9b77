"""`muster run --hosts`: jobs on hosts without Kubernetes, by OpenSSH."""

import json
import signal
import subprocess

import pytest
import yaml
from cluster import ROOT, eventually, run
from rack import PROGRAM, Rack

NAMES = ["host-a", "host-b", "host-c"]


@pytest.fixture(scope="module")
def rack(tmp_path_factory):
    it = Rack("hosts", tmp_path_factory.mktemp("rack"), NAMES)
    try:
        it.up()
        yield it
    finally:
        it.down()


@pytest.fixture(autouse=True)
def nothing_left(rack):
    yield
    rack.end_all()


def job_file(folder, epochs):
    job = yaml.safe_load((ROOT / "examples/linear-regression.yaml").read_text())
    job["spec"]["training"] |= {"epochs": epochs, "threads": 1, "synchronization": {"policy": "sync"}}
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    return folder / "job.yaml"


def summary(directory):
    return json.loads((directory / "summary.json").read_text())


def state(directory):
    return json.loads((directory / "job.json").read_text())


def log(directory):
    return directory.with_suffix(".log").read_text()


def place(rack, directory, replica):
    address = state(directory)["hosts"][replica]
    return next(name for name in NAMES if rack.address(name) == address)


def undisturbed(folder, epochs):
    run([PROGRAM, "run", job_file(folder, epochs), "--directory", folder / "here"], timeout=300)
    return summary(folder / "here")


def has_step(directory):
    return eventually(lambda: "step " in log(directory), within=60)


def test_a_job_trains_on_hosts_without_ipv4(tmp_path):
    expected = undisturbed(tmp_path, 1)
    rack = Rack("ipv6", tmp_path, ["host-a", "host-b"], ipv6=True)
    directory = tmp_path / "run"
    try:
        rack.up()
        assert rack.start(job_file(tmp_path, 1), directory).wait(300) == 0, log(directory)
        assert summary(directory)["weightsDigest"] == expected["weightsDigest"]
        assert set(state(directory)["hosts"].values()) == {"fd77::10", "fd77::11"}
        rack.are_left()
    finally:
        rack.end_all()
        rack.down()


def test_a_job_trains_on_hosts_to_the_same_bits(rack, tmp_path):
    expected = undisturbed(tmp_path, 3)
    directory = tmp_path / "run"
    assert rack.start(job_file(tmp_path, 3), directory).wait(300) == 0, log(directory)
    assert summary(directory)["weightsDigest"] == expected["weightsDigest"]
    assert {place(rack, directory, name) for name in state(directory)["hosts"]} == set(NAMES)
    status = run([PROGRAM, "status", directory])
    assert "Succeeded" in status
    assert "epoch 3 done" in (directory / "logs/chief-0.log").read_text()
    rack.are_left()


@pytest.mark.parametrize("replica", [pytest.param("worker-0", marks=pytest.mark.nightly),
                                     pytest.param("ps-0", marks=pytest.mark.nightly), "chief-0"])
def test_replicas_of_a_host_that_is_lost_go_on_elsewhere(rack, tmp_path, replica):
    expected = undisturbed(tmp_path, 12)
    directory = tmp_path / "run"
    process = rack.start(job_file(tmp_path, 12), directory)
    has_step(directory)
    lost = place(rack, directory, replica)
    rack.unplug(lost)
    try:
        eventually(lambda: f"{replica} moves from {lost} to " in log(directory), within=60)
        assert process.wait(300) == 0, log(directory)
        assert summary(directory)["weightsDigest"] == expected["weightsDigest"]
        # Nobody could tell them to leave.
        eventually(lambda: not rack.processes(lost), within=60)
    finally:
        rack.plug(lost)
    rack.are_left()


def test_stopped_it_saves_and_goes_on(rack, tmp_path):
    directory = tmp_path / "run"
    job = job_file(tmp_path, 4000)
    process = rack.start(job, directory)
    has_step(directory)
    run([PROGRAM, "stop", directory])
    assert process.wait(60) == 143
    rack.are_left()
    assert "To resume: muster run" in log(directory)
    assert "--hosts" in log(directory)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_where_muster_run_is_killed(rack, tmp_path, number):
    directory = tmp_path / "run"
    process = rack.start(job_file(tmp_path, 4000), directory)
    has_step(directory)
    assert any("muster-trainer" in line for name in NAMES for line in rack.processes(name))
    process.send_signal(number)
    process.wait(60)
    rack.are_left()


def test_hosts_that_cannot_be_used_are_named(rack, tmp_path):
    directory = tmp_path / "run"
    file = rack.write("some.yaml", NAMES)
    hosts = yaml.safe_load(file.read_text())
    hosts["hosts"][0]["ssh"] = "nobody-there@10.77.0.10"
    hosts["hosts"].append({"name": "host-d", "address": "10.77.0.99", "slots": 9})
    file.write_text(yaml.safe_dump(hosts))
    process = rack.start(job_file(tmp_path, 3), directory, hosts="some.yaml")
    assert process.wait(120) == 0, log(directory)
    assert "note: the host host-a is not used: " in log(directory)
    assert "Permission denied" in log(directory)
    assert "note: the host host-d is not used: " in log(directory)
    assert {place(rack, directory, name) for name in state(directory)["hosts"]} == {"host-b", "host-c"}


def test_what_is_wrong_is_said_before_anything_starts(rack, tmp_path):
    job = job_file(tmp_path, 3)

    def refused(name, file, code):
        directory = tmp_path / name
        assert rack.start(job, directory, hosts=file.name).wait(60) == code, log(directory)
        return log(directory)

    words = refused("few", rack.write("few.yaml", NAMES, slots=1), 65)
    assert "expected 4 slots for the job's replicas, found 3 on the 3 hosts that can be used" in words
    file = rack.write("wrong.yaml", [])
    assert "wrong.yaml:1: hosts: expected a list of 1 to 10000 entries" in refused("none", file, 65)
    words = refused("program", rack.write("program.yaml", ["host-a"], muster="/no/muster"), 69)
    assert "the host host-a is not used: ssh or `muster host survey` has ended with 127: " in words
    # A host that has a folder of its own in that place.
    script = f"mount -t tmpfs tmpfs {tmp_path} && exec {PROGRAM} host survey"
    wrapper = rack.folder / "muster-elsewhere"
    wrapper.write_text(f"#!/bin/sh\nexec unshare -m sh -c '{script}'\n")
    wrapper.chmod(0o755)
    words = refused("folder", rack.write("folder.yaml", ["host-c"], muster=str(wrapper)), 69)
    assert "to be shared with this host" in words
    assert not any(rack.processes(name) for name in NAMES)
    assert subprocess.run(["ip", "netns", "pids", rack.head], capture_output=True, text=True).stdout.strip() == ""
