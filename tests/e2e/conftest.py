"""What the end-to-end tests share: one cluster, from nothing, and a namespace for each test."""

import contextlib
import json
import os
import signal
import uuid

import jobs
import programs
import pytest
from cluster import ROOT, Cluster, eventually, run


KEEP = "MUSTER_E2E_KEEP" in os.environ


def pytest_configure(config):
    config.addinivalue_line("markers", "nightly: takes long and differs little from one that `make e2e` passes")
    # Whoever is asked to leave tears down first, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def cluster():
    """Two nodes. MUSTER_E2E_KEEP leaves them, with all that the tests made, to look at (MUSTER_CLUSTER=e2e
    cluster.sh), and takes them as they are if an earlier run has left them."""
    it = Cluster("e2e-ipv6" if os.environ.get("MUSTER_CLUSTER_IPV6") else "e2e")
    try:
        if not (KEEP and it.kubeconfig.exists()):
            it("down")
            it("up", "2")
        yield it
    finally:
        if not KEEP:
            it("down")


@pytest.fixture(scope="session")
def muster(cluster):
    """The chart on the cluster. Its namespace."""
    name = "muster-system"
    if KEEP and "muster" in cluster.helm("list", "--short", namespace=name):
        return name
    cluster.load_images()
    cluster.install_chart(name)
    return name


@pytest.fixture(scope="session")
def image_of_programs(cluster, tmp_path_factory):
    """programs.IMAGE is on all nodes."""
    programs.give_image(cluster, tmp_path_factory.mktemp("programs"))


@contextlib.contextmanager
def a_namespace(cluster):
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    # Without it there can be no pods; its controller may still wait for an API server that was away.
    eventually(lambda: cluster.kubectl("get", "serviceaccount", "default", namespace=name), within=120)
    yield name
    if not KEEP:
        cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def namespace(cluster):
    with a_namespace(cluster) as name:
        yield name


@pytest.fixture(scope="module")
def namespace_of_module(cluster):
    with a_namespace(cluster) as name:
        yield name


@pytest.fixture(scope="session")
def run_example(tmp_path_factory):
    """What `muster run` makes of jobs.example(...) on this machine, with further `--set`."""
    def summary(name, epochs, *settings):
        folder = tmp_path_factory.mktemp("run") / name
        program = ROOT / os.environ.get("BINARIES", "build/release/bin") / "muster"
        settings = ("spec.training.threads=1", f"spec.training.epochs={epochs}", *settings)
        run([program, "run", jobs.EXAMPLES / f"{name}.yaml", "--directory", folder,
             *(word for setting in settings for word in ("--set", setting))], timeout=600)
        return json.loads((folder / "summary.json").read_text())
    return summary


@pytest.fixture(scope="session")
def summary_of_run(run_example):
    """What `muster run` makes of jobs.mnist() on this machine."""
    return run_example(jobs.NAME, 2)


@pytest.fixture(scope="session")
def summary_of_longer_run(run_example):
    """The same of jobs.mnist(jobs.LONGER)."""
    return run_example(jobs.NAME, jobs.LONGER)


@pytest.fixture
def storage(cluster, namespace, tmp_path):
    """The folder of this machine that is the claim jobs.STORAGE of the test's namespace."""
    folder = tmp_path / "storage"
    jobs.claim_storage(cluster, namespace, folder)
    yield folder
    if not KEEP:
        cluster.kubectl("delete", "persistentvolume", namespace, "--wait=false")
