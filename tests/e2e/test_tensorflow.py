"""Ordinary TensorFlow programs, which know nothing of Muster: they find their peers in TF_CONFIG.

Their image has Debian's Python and the programs. TensorFlow itself, 1.2 GB that would have to be written five times
until two nodes have it, is mounted into the pods from this machine's build/venv."""

import pathlib
import shutil

import jobs
import pytest
import yaml
from cluster import ROOT, run

IMAGE = "localhost/tensorflow-examples:muster"
PACKAGES = """python3-minimal python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libstdc++6 libgcc-s1
    zlib1g libexpat1 libffi8 libssl3 liblzma5 libbz2-1.0 libuuid1 libcrypt1""".split()


def lay_out(root):
    """The image's files: those of the packages, and examples/tensorflow."""
    for line in run(["dpkg", "-L", *PACKAGES]).splitlines():
        file = pathlib.Path(line)
        if file.is_file() and "/share/" not in line:
            target = root / line.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target, follow_symlinks=False)
    (root / "tmp").mkdir()
    shutil.copytree(ROOT / "examples/tensorflow", root / "examples/tensorflow")


@pytest.fixture(scope="module")
def image(cluster, tmp_path_factory):
    context = tmp_path_factory.mktemp("image")
    lay_out(context / "root")
    (context / "Dockerfile").write_text("FROM scratch\nCOPY root/ /\nWORKDIR /examples\n")
    buildah = ["buildah", "--root", context / "storage", "--runroot", context / "run", "--storage-driver", "vfs"]
    run([*buildah, "bud", "--quiet", "--isolation", "chroot", "--tag", IMAGE, context])
    run([*buildah, "push", "--quiet", IMAGE, f"docker-archive:{context}/image.tar:{IMAGE}"])
    cluster("load", context / "image.tar")
    return IMAGE


def submit(cluster, namespace, image, example):
    """Submits one of examples/ with that image and with TensorFlow; its name."""
    job = yaml.safe_load((ROOT / "examples" / example).read_text())
    packages = ROOT / "build/venv/lib/python3.11/site-packages"
    for replica in job["spec"]["replicaSpecs"].values():
        spec = replica["template"]["spec"]
        spec["volumes"] = [{"name": "packages", "hostPath": {"path": str(packages), "type": "Directory"}}]
        [container] = spec["containers"]
        container["image"] = image
        container["env"] = [{"name": "PYTHONPATH", "value": "/packages"}]
        container["volumeMounts"] = [{"name": "packages", "mountPath": "/packages", "readOnly": True}]
    cluster.apply(job, namespace=namespace)
    return job["metadata"]["name"]


def log(cluster, namespace, job, replica):
    role, index = replica.split("-")
    labels = f"muster.dev/job={job},muster.dev/role={role},muster.dev/index={index}"
    return cluster.kubectl("logs", "-l", labels, "--tail=-1", namespace=namespace)


def test_workers_mirror_each_other(cluster, muster, namespace, image):
    job = submit(cluster, namespace, image, "tensorflow.yaml")
    jobs.await_success(cluster, namespace, job)
    for replica in ("worker-0", "worker-1"):
        said = log(cluster, namespace, job, replica)
        assert f"{replica} of 2: loss" in said and "y = 2.00 x + 10.00" in said


def test_chief_and_worker_train_what_the_ps_holds(cluster, muster, namespace, image):
    job = submit(cluster, namespace, image, "tensorflow-parameter-server.yaml")
    jobs.await_success(cluster, namespace, job)
    assert "y = 2.00 x + 10.00" in log(cluster, namespace, job, "chief-0")
