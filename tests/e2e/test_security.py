"""Replicas of a job know each other by a key pair that only they have. The operator makes it, and cannot read it."""

import base64
import pathlib
import sys

import jobs
import pytest
from cluster import Failed, eventually

SAY_HELLO = pathlib.Path(__file__).with_name("say_hello.py")


def files_of(secret, folder):
    """The certificate and the key of a Secret, as files."""
    folder.mkdir()
    for name, content in secret["data"].items():
        (folder / name).write_bytes(base64.b64decode(content))
    return folder / "tls.crt", folder / "tls.key"


def secret_of(cluster, namespace, job):
    return cluster.get("trainingjob", job, namespace=namespace)["status"]["security"]["secret"]


@pytest.fixture
def key_pair(cluster, namespace, tmp_path):
    """Of the job of the test."""
    secret = cluster.get("secret", secret_of(cluster, namespace, jobs.NAME), namespace=namespace)
    assert secret["metadata"]["ownerReferences"][0]["name"] == jobs.NAME
    return files_of(secret, tmp_path / "key")


@pytest.fixture
def training(cluster, muster, namespace, storage):
    cluster.apply(jobs.mnist(jobs.LONGER), namespace=namespace)
    jobs.await_step(cluster, namespace, jobs.NAME, 1)


def test_who_has_no_key_of_the_job_is_told_nothing(cluster, namespace, training, key_pair, tmp_path):
    other = jobs.mnist()
    other["metadata"]["name"] = "other"
    other["spec"]["storage"]["folder"] = "other"
    cluster.apply(other, namespace=namespace)
    secret = eventually(lambda: cluster.get("secret", secret_of(cluster, namespace, "other"), namespace=namespace))
    others_key_pair = files_of(secret, tmp_path / "other")
    for role in ("ps", "chief"):
        [pod] = jobs.running(cluster, namespace, jobs.NAME, role)
        def answer(*tls, pod=pod):
            return cluster("enter", sys.executable, SAY_HELLO, pod["status"]["podIP"], *tls).strip()
        assert answer() == answer("tls") == answer("tls", *others_key_pair) == "", role
        assert answer("tls", *key_pair) != "", role
    jobs.await_success(cluster, namespace, jobs.NAME)


def test_the_operator_may_make_secrets_and_read_none(cluster, muster):
    def may(verb):
        account = f"system:serviceaccount:{muster}:muster"
        try:
            return cluster.kubectl("auth", "can-i", verb, "secrets", f"--as={account}").strip()
        except Failed as refusal:  # it ends with 1 where the answer is no
            return str(refusal).splitlines()[1]
    assert may("create") == "yes"
    for verb in ("get", "list", "watch", "update", "patch", "delete"):
        assert may(verb) == "no", verb
