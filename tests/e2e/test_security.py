"""Replicas of a job know each other by a key pair that only they have. The operator makes it, and cannot read it."""

import base64
import socket
import ssl

import jobs
import pytest
from cluster import Failed, eventually

PORT = 2222
# How a client of HTTP/2 begins, and with it gRPC; the server answers with its settings.
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def answer(pod, context=None):
    """What a replica says to a client that begins as gRPC does; nothing if it hangs up."""
    try:
        with socket.create_connection((pod["status"]["podIP"], PORT), timeout=20) as connection:
            if context:
                connection = context.wrap_socket(connection)
            connection.sendall(HELLO)
            return connection.recv(64)
    except (ssl.SSLError, ConnectionError):
        return b""


def client(*key_pair):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    if key_pair:
        context.load_cert_chain(*key_pair)
    return context


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
    others = client(*files_of(secret, tmp_path / "other"))
    for role in ("ps", "chief"):
        [pod] = jobs.running(cluster, namespace, jobs.NAME, role)
        assert answer(pod) == answer(pod, client()) == answer(pod, others) == b"", role
        assert answer(pod, client(*key_pair)) != b"", role
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
