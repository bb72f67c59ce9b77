"""Whose the folders of a claim are."""

import jobs
from cluster import condition


def reason(job, kind):
    return next(each["reason"] for each in job["status"]["conditions"] if each["type"] == kind)


def test_a_job_goes_on_only_from_its_own_folder(cluster, muster, namespace, storage):
    job = jobs.mnist(1)
    cluster.apply(job, namespace=namespace)
    first = jobs.await_success(cluster, namespace, jobs.NAME)
    folder = f"{namespace}-{jobs.NAME}"
    assert first["status"]["storageFolder"] == folder
    assert jobs.folder_of(storage).name == folder
    digest = jobs.result(storage)["weightsDigest"]

    # Another job is sent into the folder, with another seed.
    other = jobs.mnist(1)
    other["metadata"]["name"] = "other"
    other["spec"]["training"]["seed"] = 77
    other["spec"]["storage"]["folder"] = folder
    cluster.apply(other, namespace=namespace)
    refused = jobs.await_end(cluster, namespace, "other")
    assert condition(refused, "Failed") == "True"
    told = jobs.await_event(cluster, namespace, "other", f"the job {namespace}/{jobs.NAME} has trained there")
    assert told and not any(event.startswith("FirstStep") for event in jobs.events(cluster, namespace, "other"))
    assert jobs.result(storage)["weightsDigest"] == digest

    # The first one is deleted and made again.
    cluster.kubectl("delete", "trainingjob", jobs.NAME, "--wait", namespace=namespace)
    cluster.apply(job, namespace=namespace)
    again = jobs.await_success(cluster, namespace, jobs.NAME)
    assert again["metadata"]["uid"] != first["metadata"]["uid"]
    assert reason(again, "Succeeded") == "AlreadyFinished"
    assert jobs.result(storage)["weightsDigest"] == digest

    # With other values it is refused.
    cluster.kubectl("delete", "trainingjob", jobs.NAME, "--wait", namespace=namespace)
    job["spec"]["training"]["seed"] = 78
    cluster.apply(job, namespace=namespace)
    assert condition(jobs.await_end(cluster, namespace, jobs.NAME), "Failed") == "True"
    jobs.await_event(cluster, namespace, jobs.NAME, "training.seed (was 1, is 78)")
