"""`muster run --hosts` with `copy` and `copyMuster`: hosts that share the job's directory and nothing else."""

import os
import pathlib
import shutil
import signal
import subprocess

import pytest
import yaml
from cluster import ROOT, eventually, run
from rack import PROGRAM, Rack
from test_hosts import log, summary

NAMES = ["host-a", "host-b"]
CACHE = pathlib.Path.home() / ".cache"
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")


class Apart(Rack):
    """Each host has files of its own in `alone` and in its user's cache, and lacks muster and its libraries."""

    def __init__(self, folder, names, alone):
        super().__init__("copy", folder, names)
        self.alone = alone

    def up(self):
        super().up()
        CACHE.mkdir(exist_ok=True)
        for name in self.names:
            for place in (self.alone, CACHE, PROGRAM.parent):
                self.on(name, "mount", "-t", "tmpfs", "tmpfs", place)
            for library in LIBRARIES.glob("libgrpc*.so.*"):
                if not library.is_symlink():
                    self.on(name, "mount", "--bind", "/dev/null", library)

    def on(self, name, *words):
        """What a command prints that sees the host's files. `ip netns exec` gives each sshd mounts of its own."""
        return run(["nsenter", "--target", self.daemons[name].pid, "--mount", *words])

    def files(self, name, below):
        there = pathlib.Path(f"/proc/{self.daemons[name].pid}/root") / below.relative_to("/")
        return sorted(str(path.relative_to(there)) for path in there.rglob("*") if path.is_file())

    def front(self, words):
        """The processes at the front whose command lines end so."""
        found = []
        for pid in run(["ip", "netns", "pids", self.head]).split():
            try:
                line = pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
            except OSError:
                continue
            if line.startswith("ssh ") and line.endswith(words):
                found.append((int(pid), line))
        return found


@pytest.fixture(scope="module")
def rack(tmp_path_factory):
    it = Apart(tmp_path_factory.mktemp("rack"), NAMES, tmp_path_factory.mktemp("alone"))
    try:
        it.up()
        yield it
    finally:
        it.down()


@pytest.fixture(autouse=True)
def nothing_left(rack):
    yield
    rack.end_all()


@pytest.fixture
def folder(rack, request):
    """Where a test's manifest is, with code and data. No host has it."""
    path = rack.alone / request.node.name
    path.mkdir()
    return path


def script_job(folder, command, workers=1):
    container = {"name": "main", "image": "none", "command": command}
    role = {"template": {"spec": {"containers": [container]}}}
    job = {"apiVersion": "muster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "script"},
           "spec": {"runPolicy": {"backoffLimit": 0},
                    "replicaSpecs": {"chief": role, "worker": {"replicas": workers, **role}}}}
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    return folder / "job.yaml"


def hosts(rack, names=NAMES, **fields):
    file = rack.write("copy.yaml", names, **fields)
    content = yaml.safe_load(file.read_text())
    del content["muster"]  # Debian's package is on no host
    file.write_text(yaml.safe_dump({**content, "copyMuster": True}))
    return file.name


def ends_with(rack, code, job, directory, file):
    assert rack.start(job, directory, hosts=file).wait(300) == code, log(directory)
    return log(directory)


def test_hosts_without_data_and_muster_train_to_the_same_bits(rack, folder, tmp_path):
    job = yaml.safe_load((ROOT / "examples/mnist-mlp.yaml").read_text())
    job["spec"]["training"] |= {"epochs": 1, "threads": 1}
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    shutil.copytree(ROOT / "examples/data/mnist", folder / "data/mnist")
    run([PROGRAM, "run", folder / "job.yaml", "--directory", tmp_path / "here"], timeout=300)
    # No host has a muster without copyMuster; with it, none has the data without copy.
    file = rack.write("without.yaml", NAMES)
    assert "has ended with 127" in ends_with(rack, 69, folder / "job.yaml", tmp_path / "none", file.name)
    words = ends_with(rack, 69, folder / "job.yaml", tmp_path / "none", hosts(rack))
    assert f"expected the folder {folder} on this host too, found none" in words

    file = hosts(rack, copy=["data/mnist"])
    words = ends_with(rack, 0, folder / "job.yaml", tmp_path / "run", file)
    assert summary(tmp_path / "run")["weightsDigest"] == summary(tmp_path / "here")["weightsDigest"]
    for name in NAMES:
        assert f"copied 4 files, 11.4 MB, to {name}" in words
        assert len(rack.files(name, folder / "data")) == 5  # and what Muster keeps beside the folder

    words = ends_with(rack, 0, folder / "job.yaml", tmp_path / "again", file)
    assert summary(tmp_path / "again")["weightsDigest"] == summary(tmp_path / "here")["weightsDigest"]
    assert "copied" not in words
    rack.are_left()


def test_code_is_copied_and_only_what_has_changed_again(rack, folder, tmp_path):
    code = folder / "my code"
    (code / "sub").mkdir(parents=True)
    (code / "train.py").write_text("import os, sub.part\nprint('ran', sub.part.NUMBER, os.getcwd())\n")
    (code / "sub/part.py").write_text("NUMBER = 1\n")
    (code / "sub/two\nlines").write_text("x")
    job = script_job(folder, ["python3", "my code/train.py"])
    file = hosts(rack, copy=["my code/"])
    words = ends_with(rack, 0, job, tmp_path / "one", file)
    assert f"ran 1 {folder}" in (tmp_path / "one/logs/chief-0.log").read_text()
    size = sum(path.stat().st_size for path in code.rglob("*") if path.is_file())
    assert all(f"copied 3 files, {size} bytes, to {name}" in words for name in NAMES)

    (code / "sub/part.py").write_text("NUMBER = 22\n")
    (code / "sub/two\nlines").unlink()
    words = ends_with(rack, 0, job, tmp_path / "two", file)
    assert "ran 22 " in (tmp_path / "two/logs/chief-0.log").read_text()
    assert all(f"copied 1 file, 12 bytes, to {name}" in words for name in NAMES)
    for name in NAMES:
        assert [line for line in rack.files(name, code) if "pycache" not in line] == ["sub/part.py", "train.py"]

    # What somebody has changed on a host stays, and that host is not used.
    rack.on("host-b", "sh", "-c", f"echo more >>'{code}/train.py'")
    (code / "train.py").write_text("print('new')\n")
    words = ends_with(rack, 0, job, tmp_path / "three", file)
    assert f"note: the host host-b is not used: {code}/train.py: expected the file that is here, " in words
    assert "found another file, of " in words
    assert rack.on("host-b", "tail", "-n", "1", code / "train.py") == "more\n"
    assert "new" in (tmp_path / "three/logs/chief-0.log").read_text()
    rack.are_left()


@pytest.mark.parametrize("at", ["front", *(pytest.param(at, marks=pytest.mark.nightly) for at in ("host", "cable"))])
def test_a_copy_that_breaks_off_leaves_nothing_and_goes_on_with_the_next_run(rack, folder, tmp_path, at):
    job = script_job(folder, ["sh", "-c", "cksum <data/large"])
    (folder / "data").mkdir()
    with (folder / "data/large").open("wb") as large:
        large.truncate(300_000_000)
    (folder / "data/small").write_text("x")
    file = hosts(rack, copy=["data"])
    process = rack.start(job, tmp_path / "run", hosts=file)
    part = folder / "data/.muster-copy.part"
    eventually(lambda: ".muster-copy.part" in rack.files("host-a", folder / "data"), within=60, every=0.02)
    if at == "front":
        pid, = [pid for pid, line in rack.front("host receive") if f"root@{rack.address('host-a')}" in line]
        os.kill(pid, signal.SIGKILL)
    elif at == "host":
        pid, = [pid for pid in run(["ip", "netns", "pids", rack.space("host-a")]).split()
                if b"receive" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                and b"--library-path" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(int(pid), signal.SIGKILL)
    else:
        rack.unplug("host-a")
    assert process.wait(120) == 0, log(tmp_path / "run")
    words = log(tmp_path / "run")
    assert "note: the host host-a is not used: the connection has ended while " in words
    assert f"{folder}/data/large was copied; ssh or `muster host receive` has ended with {137 if at == 'front' else 255}" in words
    assert "copied 2 files, 300.0 MB, to host-b" in words
    rack.plug("host-a")
    if at != "host":
        eventually(lambda: rack.files("host-a", folder / "data") == [], within=60)
    else:
        assert rack.files("host-a", folder / "data") == [part.name]
    words = ends_with(rack, 0, job, tmp_path / "next", file)
    assert "copied 2 files, 300.0 MB, to host-a" in words
    assert "to host-b" not in words
    for name in NAMES:
        assert rack.files(name, folder / "data") == ["large", "small"]
    rack.are_left()


def test_what_stands_in_the_way_is_said(rack, folder, tmp_path):
    job = script_job(folder, ["true"])
    words = ends_with(rack, 65, job, tmp_path / "missing", hosts(rack, copy=["data"]))
    assert f"copy: expected a file or folder, found none at {folder}/data" in words.replace("copy[0]", "copy")
    assert not (tmp_path / "missing").exists()
    (folder / "data").mkdir()
    with (folder / "data/large").open("wb") as large:
        large.truncate(50_000_000)
    rack.on("host-a", "sh", "-c", f"mkdir -p {folder}/data && mount -t tmpfs -o size=20m tmpfs {folder}/data")
    words = ends_with(rack, 0, job, tmp_path / "full", hosts(rack, copy=["data"]))
    assert (f"note: the host host-a is not used: expected to write {folder}/data/large, of 50000000 bytes; "
            "found: No space left on device") in words
    assert rack.files("host-a", folder / "data") == []
    assert subprocess.run(["ip", "netns", "pids", rack.head], capture_output=True, text=True).stdout.strip() == ""
