"""What the end-to-end tests share: one cluster, from nothing, and a namespace for each test."""

import json
import os
import uuid

import jobs
import pytest
from cluster import ROOT, Cluster, run


@pytest.fixture(scope="session")
def cluster():
    """Two nodes. MUSTER_E2E_KEEP leaves them and the namespaces, to look at: MUSTER_CLUSTER=e2e cluster.sh."""
    it = Cluster("e2e")
    it("down")
    it("up", "2")
    yield it
    if "MUSTER_E2E_KEEP" not in os.environ:
        it("down")


@pytest.fixture(scope="session")
def muster(cluster):
    """The chart on the cluster, with images made of build/release/bin, or of $BINARIES. Its namespace."""
    name = "muster-system"
    run([ROOT / "docker/build"], timeout=600)
    cluster("load", *sorted((ROOT / "build/images").glob("*.tar")))
    cluster.helm("install", "muster", ROOT / "charts/muster", "--create-namespace", "--wait", "--timeout", "120s",
                 namespace=name, timeout=180)
    return name


@pytest.fixture
def namespace(cluster):
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    if "MUSTER_E2E_KEEP" not in os.environ:
        cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def summary_of_run(tmp_path_factory):
    """What `muster run` makes of jobs.mnist() on this machine."""
    folder = tmp_path_factory.mktemp("run") / "mnist"
    program = ROOT / os.environ.get("BINARIES", "build/release/bin") / "muster"
    run([program, "run", jobs.EXAMPLES / "mnist-mlp.yaml", "--directory", folder,
         "--set", "spec.training.threads=1"], timeout=600)
    return json.loads((folder / "summary.json").read_text())


@pytest.fixture
def storage(cluster, namespace, tmp_path):
    """The folder of this machine that is the claim jobs.STORAGE of the test's namespace."""
    folder = tmp_path / "storage"
    jobs.claim_storage(cluster, namespace, folder)
    yield folder
    if "MUSTER_E2E_KEEP" not in os.environ:
        cluster.kubectl("delete", "persistentvolume", namespace, "--wait=false")
