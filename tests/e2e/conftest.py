"""What the end-to-end tests share: one cluster, from nothing, and a namespace for each test."""

import os
import uuid

import pytest
from cluster import Cluster


@pytest.fixture(scope="session")
def cluster():
    """Two nodes. MUSTER_E2E_KEEP leaves them up at the end, to look at: MUSTER_CLUSTER=e2e cluster.sh."""
    it = Cluster("e2e")
    it("down")
    it("up", "2")
    yield it
    if "MUSTER_E2E_KEEP" not in os.environ:
        it("down")


@pytest.fixture
def namespace(cluster):
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
