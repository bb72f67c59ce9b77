"""Ordinary TensorFlow programs, which know nothing of Muster: they find their peers in TF_CONFIG."""

import jobs
import programs
import pytest
from sides import Kubernetes


@pytest.fixture(autouse=True)
def image(image_of_programs):
    pass


def submit(cluster, namespace, example):
    """Submits one of examples/ with the programs' image; its name."""
    job = programs.in_pods(programs.example(example))
    cluster.apply(job, namespace=namespace)
    return job["metadata"]["name"]


def test_workers_mirror_each_other(cluster, muster, namespace):
    job = submit(cluster, namespace, "tensorflow")
    jobs.await_success(cluster, namespace, job)
    for replica in ("worker-0", "worker-1"):
        said = Kubernetes(cluster, namespace).log(job, replica)
        assert f"{replica} of 2: loss" in said and "y = 2.00 x + 10.00" in said


def test_chief_and_worker_train_what_the_ps_holds(cluster, muster, namespace):
    job = submit(cluster, namespace, "tensorflow-parameter-server")
    jobs.await_success(cluster, namespace, job)
    assert "y = 2.00 x + 10.00" in Kubernetes(cluster, namespace).log(job, "chief-0")
