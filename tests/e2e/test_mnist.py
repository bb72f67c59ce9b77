"""MNIST, trained on the cluster by replicas on two nodes: as well as on one machine, and to the same bits."""

import jobs
from cluster import condition, eventually


def phases(cluster, namespace, role, job="mnist-mlp"):
    """Of the role's pods. A kubelet says that a container has ended some time before it says so of the pod."""
    return [pod["status"]["phase"] for pod in jobs.pods(cluster, namespace, job, role)]


def test_trains_as_on_one_machine(cluster, muster, namespace, storage, summary_of_run):
    cluster.apply(jobs.mnist(), namespace=namespace)
    job = jobs.await_end(cluster, namespace, "mnist-mlp")
    assert condition(job, "Succeeded") == "True", job["status"]
    assert jobs.result(storage)["weightsDigest"] == summary_of_run["weightsDigest"]
    assert jobs.evaluation(storage)["test"]["accuracy"] > 0.965
    progress = job["status"]["progress"]
    assert progress["step"] == progress["totalSteps"] == jobs.result(storage)["step"]
    results = job["status"]["results"]
    assert results["weightsDigest"] == summary_of_run["weightsDigest"]
    for data in ("validation", "test"):
        assert abs(results[data]["accuracy"] - summary_of_run[f"{data}Accuracy"]) < 1e-5
    assert results["model"].startswith("/") and results["model"].endswith("/model/model.safetensors")
    wide = cluster.kubectl("get", "tj", "mnist-mlp", "-o", "wide", namespace=namespace)
    for shown in ("weightsDigest", "checkpoint", "model"):
        assert results[shown] in wide
    # What has ended by itself stays, to be asked for its log; the ps, which ended on request, does not.
    eventually(lambda: not jobs.pods(cluster, namespace, "mnist-mlp", "ps"))
    for role in ("chief", "worker", "evaluator"):
        eventually(lambda role=role: phases(cluster, namespace, role) == ["Succeeded"])
    assert "checkpoint" in cluster.kubectl("logs", "-l", "muster.dev/role=chief", namespace=namespace)


def test_a_deleted_worker_is_replaced_and_the_weights_are_the_same(
        cluster, muster, namespace, storage, summary_of_run):
    cluster.apply(jobs.mnist(), namespace=namespace)
    jobs.await_step(cluster, namespace, "mnist-mlp", 1)
    [before] = jobs.pods(cluster, namespace, "mnist-mlp", "worker")
    cluster.kubectl("delete", "pod", before["metadata"]["name"], namespace=namespace)
    job = jobs.await_end(cluster, namespace, "mnist-mlp")
    assert condition(job, "Succeeded") == "True", job["status"]
    [after] = jobs.pods(cluster, namespace, "mnist-mlp", "worker")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert jobs.result(storage)["weightsDigest"] == summary_of_run["weightsDigest"]


def test_a_convolutional_network_trains_with_a_master_as_with_a_chief_on_one_machine(
        cluster, muster, namespace, storage, run_example):
    parts = {"train": 1280, "validation": 300, "test": 300}  # samples: 20 steps of master and worker
    summary = run_example("mnist-cnn", 1, *(f"spec.training.data.{part}.take={take}" for part, take in parts.items()))
    job = jobs.example("mnist-cnn", 1)
    for part, take in parts.items():
        job["spec"]["training"]["data"][part]["take"] = take
    roles = job["spec"]["replicaSpecs"]
    del roles["evaluator"]  # the master evaluates
    roles["master"] = roles.pop("chief")
    cluster.apply(job, namespace=namespace)
    ended = jobs.await_success(cluster, namespace, "mnist-cnn")
    assert ended["status"]["results"]["weightsDigest"] == summary["weightsDigest"]
    assert ended["status"]["progress"]["step"] == 20
    result = jobs.result(storage)
    assert result["weightsDigest"] == summary["weightsDigest"]
    assert abs(result["test"]["accuracy"] - summary["testAccuracy"]) < 1e-5
    assert (jobs.folder_of(storage) / "events/master-0").is_dir()
    eventually(lambda: not jobs.pods(cluster, namespace, "mnist-cnn", "ps"))
    for role in ("master", "worker"):
        eventually(lambda role=role: phases(cluster, namespace, role, "mnist-cnn") == ["Succeeded"])
