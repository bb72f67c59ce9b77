"""Ordinary programs of TensorFlow and PyTorch, which know nothing of Muster: how each place runs them, and which of their
processes may be killed.

Their image has Debian's Python, a shell and the programs. The packages, which are large and would have to be written five
times until two nodes have them, are mounted into the pods from this machine's build/venv."""

import dataclasses
import pathlib
import shutil

import yaml
from cluster import ROOT, run

IMAGE = "localhost/programs:muster"
PACKAGES = """python3-minimal python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libstdc++6 libgcc-s1
    zlib1g libexpat1 libffi8 libssl3 liblzma5 libbz2-1.0 libuuid1 libcrypt1""".split()
VENV = ROOT / "build/venv"
SITE_PACKAGES = VENV / "lib/python3.11/site-packages"
TORCHRUN = "#!/usr/bin/python3\nfrom torch.distributed.run import main\nmain()\n"
FOREVER = 1_000_000_000


@dataclasses.dataclass
class Program:
    example: str    # its manifest in examples/
    package: str    # what it imports
    reports: tuple  # the replicas whose logs show steps as soon as the job trains
    reason: str     # of its success
    # Of the replicas' first attempts. Those that replace them do as many as the example says. Only where a replica goes
    # on after the kill must the first attempts come to an end.
    steps: int = FOREVER


PROGRAMS = {
    "parameter-server": Program("tensorflow-parameter-server", "tensorflow", ("chief-0",), "ChiefSucceeded", steps=5000),
    "mirrored": Program("tensorflow", "tensorflow", ("worker-0", "worker-1"), "AllWorkersSucceeded"),
    "ddp": Program("pytorch", "torch", ("worker-0", "worker-1"), "AllWorkersSucceeded"),
    "torchrun": Program("torchrun", "torch", ("worker-0", "worker-1"), "AllWorkersSucceeded"),
}


@dataclasses.dataclass
class Kill:
    program: str
    replica: str
    child: bool = False  # a process that the replica has started, not its first one


KILLS = {
    "parameter-server-ps": Kill("parameter-server", "ps-0"),
    "parameter-server-chief": Kill("parameter-server", "chief-0"),
    "parameter-server-worker": Kill("parameter-server", "worker-0"),
    "mirrored-worker-0": Kill("mirrored", "worker-0"),
    "mirrored-worker-1": Kill("mirrored", "worker-1"),
    "ddp-worker-0": Kill("ddp", "worker-0"),
    "ddp-worker-1": Kill("ddp", "worker-1"),
    "torchrun-agent-0": Kill("torchrun", "worker-0"),
    "torchrun-agent-1": Kill("torchrun", "worker-1"),
    "torchrun-process-0": Kill("torchrun", "worker-0", child=True),
    "torchrun-process-1": Kill("torchrun", "worker-1", child=True),
}


def example(name):
    return yaml.safe_load((ROOT / f"examples/{name}.yaml").read_text())


def containers(job):
    for replica in job["spec"]["replicaSpecs"].values():
        yield from replica["template"]["spec"]["containers"]


def at_length(program):
    """The program's example, whose first attempts train long enough to be killed."""
    job = example(program.example)
    for container in containers(job):
        steps = f'[ "$MUSTER_ATTEMPT" != 0 ] || export STEPS={program.steps}; exec "$0" "$@"'
        container["command"] = ["sh", "-c", steps, *container["command"]]
    return job


def on_this_machine(job, **environment):
    """The job with the Python and the packages of build/venv."""
    environment = {"PATH": f"{VENV}/bin:/usr/bin:/bin", **environment}
    for container in containers(job):
        container["workingDir"] = str(ROOT / "examples")
        container["env"] = [{"name": name, "value": value} for name, value in environment.items()]
    return job


def in_pods(job):
    """The job with the image and the packages."""
    for replica in job["spec"]["replicaSpecs"].values():
        spec = replica["template"]["spec"]
        spec["volumes"] = [{"name": "packages", "hostPath": {"path": str(SITE_PACKAGES), "type": "Directory"}}]
    for container in containers(job):
        container["image"] = IMAGE
        container["env"] = [{"name": "PYTHONPATH", "value": "/packages"}]
        container["volumeMounts"] = [{"name": "packages", "mountPath": "/packages", "readOnly": True}]
    return job


def lay_out(root):
    """The image's files: those of the packages, a shell, torchrun, and the programs of examples/."""
    for line in run(["dpkg", "-L", *PACKAGES]).splitlines():
        file = pathlib.Path(line)
        if file.is_file() and "/share/" not in line:
            target = root / line.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target, follow_symlinks=False)
    (root / "tmp").mkdir()
    (root / "bin").mkdir(exist_ok=True)
    shutil.copy2("/bin/busybox", root / "bin/sh")
    (root / "usr/bin/torchrun").write_text(TORCHRUN)
    (root / "usr/bin/torchrun").chmod(0o755)
    for folder in ("tensorflow", "pytorch"):
        shutil.copytree(ROOT / "examples" / folder, root / "examples" / folder)


def give_image(cluster, context):
    """Makes the image in the folder `context`, and gives it to every node."""
    lay_out(context / "root")
    (context / "Dockerfile").write_text("FROM scratch\nCOPY root/ /\nWORKDIR /examples\n")
    buildah = ["buildah", "--root", context / "storage", "--runroot", context / "run", "--storage-driver", "vfs"]
    run([*buildah, "bud", "--quiet", "--isolation", "chroot", "--tag", IMAGE, context])
    run([*buildah, "push", "--quiet", IMAGE, f"docker-archive:{context}/image.tar:{IMAGE}"])
    cluster("load", context / "image.tar")


def processes_of(uid, replica):
    """The processes of a replica of the job with this uid, in two lists: those that Muster has started, and those that
    they have. All places of the tests share this machine's processes."""
    role, index = replica.rsplit("-", 1)
    marks = {f"MUSTER_JOB_UID={uid}", f"MUSTER_ROLE={role}", f"MUSTER_INDEX={index}"}
    parents = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            status = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has ended meanwhile
        if marks <= set(environment):
            parents[int(folder.name)] = int(status[1])
    first = [process for process, parent in parents.items() if parent not in parents]
    return first, [process for process in parents if process not in first]
