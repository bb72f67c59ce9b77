"""A detector, trained on the cluster with parameter servers, a master, a worker and an evaluator as its example says: to
the same bits as on one machine, with its metrics, pictures and exported models."""

import json
import os

import jobs
import pytest
import yaml
from cluster import ROOT, eventually, run

MUSTER = ROOT / os.environ.get("BINARIES", "build/release/bin") / "muster"
NAME = "ssd-mobilenet-v1"


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A folder of canvases with digits, as the example's first lines make it."""
    folder = tmp_path_factory.mktemp("digits")
    folder.chmod(0o755)
    run([MUSTER, "data", "digits", "--output", folder, "--train", 96, "--validation", 12], timeout=120, cwd=ROOT)
    return folder


def detector(folder):
    """The example, but 12 steps with small pictures, which lie in `folder`."""
    job = yaml.safe_load((jobs.EXAMPLES / f"{NAME}.yaml").read_text())
    training = job["spec"]["training"]
    training.update(batchSize=4, epochs=1, threads=1, checkpoint={"everySteps": 6})
    for part in training["data"].values():
        [source] = [part[kind] for kind in ("tfRecord", "coco") if kind in part]
        source["imageSize"] = [96, 96]
        for field in {"files", "labelMap", "annotations", "folder"} & source.keys():
            source[field] = source[field].replace("data/digits", str(folder))
    return job


def test_a_detector_trains_with_a_master_as_on_one_machine(cluster, muster, namespace, storage, digits, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(detector(digits)))
    run([MUSTER, "run", file, "--directory", tmp_path / "run"], timeout=300)
    summary = json.loads((tmp_path / "run/summary.json").read_text())

    job = detector("/digits")
    job["spec"]["storage"] = {"volume": {"persistentVolumeClaim": {"claimName": jobs.STORAGE}}}
    volume = {"name": "digits", "hostPath": {"path": str(digits), "type": "Directory"}}
    container = {"name": "trainer", "volumeMounts": [{"name": "digits", "mountPath": "/digits", "readOnly": True}]}
    for replica in job["spec"]["replicaSpecs"].values():
        replica["template"] = {"spec": {"containers": [container], "volumes": [volume]}}
    cluster.apply(job, namespace=namespace)
    ended = jobs.await_success(cluster, namespace, NAME)

    assert ended["status"]["results"]["weightsDigest"] == summary["weightsDigest"]
    assert ended["status"]["progress"]["step"] == 12
    evaluation = jobs.evaluation(storage)
    for part in ("validation", "test"):
        assert 0 <= evaluation[part]["averagePrecision50"] <= 1
        assert evaluation[part]["loss"] > 0
    folder = jobs.folder_of(storage)
    assert (folder / "events/master-0").is_dir() and (folder / "events/evaluator-0").is_dir()
    assert list((folder / "evaluations/pictures").glob("*.png"))
    for model in ("model.safetensors", "model.onnx"):
        assert (folder / "model" / model).stat().st_size > 100_000
    eventually(lambda: not jobs.pods(cluster, namespace, NAME, "ps"))
