"""Compares the COCO evaluation of trainer/detection with pycocotools on random cases, which
tests/integration/detection/evaluate_coco reads. Run by ctest as coco_python."""

import contextlib
import io
import subprocess
import sys

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

CASES = 400
TOLERANCE = 1e-6
NAMES = (
    "ap ap50 ap75 ap_small ap_medium ap_large ar1 ar10 ar100 ar_small ar_medium ar_large".split()
)


class Evaluation(COCOeval):
    """COCOeval, but the field `ignore` of an annotation counts: COCOeval overwrites it."""

    def _prepare(self):
        ignored = {id: bool(gt.get("ignore")) for id, gt in self.cocoGt.anns.items()}
        super()._prepare()
        for annotations in self._gts.values():
            for gt in annotations:
                gt["ignore"] = int(ignored[gt["id"]] or gt["iscrowd"])


def random_boxes(random, count, whole):
    """Boxes of all three classes of size, with borders and areas that are often equal."""
    sides = random.choice([4.0, 16.0, 32.0, 64.0, 96.0, 200.0], (count, 2))
    sides *= np.where(random.random((count, 1)) < 0.5, 1, random.uniform(0.5, 1.5, (count, 2)))
    corners = random.uniform(-20, 400, (count, 2))
    boxes = np.concatenate([corners, sides], axis=1)
    return np.round(boxes) if whole else np.round(boxes, 2)


def found_boxes(random, boxes, whole):
    """Boxes near the given ones: the same, or moved and resized by up to half of their size."""
    size = boxes[:, 2:].repeat(2, axis=0).reshape(-1, 4)
    step = random.choice([0, 0.1, 0.2, 0.5, 1], (len(boxes), 1))
    shift = random.uniform(-0.5, 0.5, boxes.shape) * step
    found = boxes + shift * size
    found[:, 2:] = np.maximum(found[:, 2:], 1)
    return np.round(found) if whole else found


def random_image(random, id, labels, style):
    count = int(random.integers(0, style["objects"] + 1)) if random.random() > 0.1 else 0
    boxes = random_boxes(random, count, style["whole"])
    objects = []
    for box in boxes:
        crowd = bool(random.random() < style["crowd"])
        area = box[2] * box[3] * (1 if random.random() < 0.5 else random.uniform(0.3, 1))
        ignore = bool(random.random() < style["ignore"])
        objects.append([int(random.choice(labels)), *box, area, int(crowd), int(ignore)])
    detections = []
    if random.random() > 0.1:
        chosen = random.integers(0, count, style["detections"] if count else 0)
        near = found_boxes(random, boxes[chosen], style["whole"])
        others = int(random.integers(0, style["detections"] + 1))
        wild = random_boxes(random, others, style["whole"])
        for i, box in enumerate(np.concatenate([near, wild])):
            right = i < len(near) and random.random() < 0.8
            label = objects[chosen[i]][0] if right else int(random.choice(labels))
            score = random.random() * (1 if right else 0.7)
            detections.append([label, round(score, 1) if style["ties"] else score, *box])
    return id, detections, objects


def random_case(random):
    labels = np.sort(random.choice(90, random.integers(1, 6), replace=False) + 1)
    style = {
        "objects": int(random.choice([1, 6, 15, 15])),
        "detections": int(random.choice([0, 4, 12, 25, 25])),
        "whole": bool(random.random() < 0.5),
        "ties": bool(random.random() < 0.5),
        "crowd": random.choice([0, 0.1, 0.5]),
        "ignore": random.choice([0, 0, 0.3]),
    }
    if random.random() < 0.05:  # more than 100 detections of a class in an image
        labels = labels[:1]
        style["detections"] = 150
    ids = random.choice(1000, random.integers(1, 7), replace=False)
    # Some labels have neither objects nor detections, and some are not evaluated.
    used = labels[random.random(len(labels)) < 0.8]
    used = used if len(used) else labels
    images = [random_image(random, int(id), used, style) for id in ids]
    evaluated = labels[random.random(len(labels)) < 0.9]
    return [int(label) for label in evaluated], images


def coco_of(labels, images, annotations):
    coco = COCO()
    coco.dataset = {
        "images": [{"id": id} for id in images],
        "categories": [{"id": label, "name": str(label)} for label in labels],
        "annotations": [{"id": i + 1, **a} for i, a in enumerate(annotations)],
    }
    coco.createIndex()
    return coco


def by_pycocotools(labels, images):
    wanted = [
        {"image_id": id, "category_id": label, "bbox": box, **rest}
        for id, _, objects in images
        for label, *box, area, crowd, ignore in objects
        for rest in [{"area": area, "iscrowd": crowd, "ignore": ignore}]
    ]
    found = [
        {"image_id": id, "category_id": label, "score": score, "bbox": box, **rest}
        for id, detections, _ in images
        for label, score, *box in detections
        for rest in [{"area": box[2] * box[3], "iscrowd": 0}]
    ]
    if not labels:  # pycocotools would take the annotations of all labels
        return np.full(len(NAMES), -1.0)
    ids = [id for id, _, _ in images]
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = Evaluation(coco_of(labels, ids, wanted), coco_of(labels, ids, found), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    precision = evaluation.eval["precision"][:, :, :, 0, -1]  # [threshold, recall, class]
    return np.concatenate([evaluation.stats, precision.mean(axis=(0, 1))])


def text_of(labels, images):
    lines = [[len(labels), *labels, len(images)]]
    for id, detections, objects in images:
        lines += [[id, len(detections)], *detections, [len(objects)], *objects]
    # repr() of a Python float says all of its bits.
    numbers = [[repr(float(v)) if isinstance(v, float) else str(v) for v in line] for line in lines]
    return "\n".join(" ".join(line) for line in numbers) + "\n"


def by_muster(program, cases):
    done = subprocess.run(
        [program],
        input="".join(text_of(*case) for case in cases),
        check=True,
        timeout=250,
        stdout=subprocess.PIPE,
        text=True,
    )
    return [np.array(line.split(), dtype=float) for line in done.stdout.splitlines()]


def check(program):
    random = np.random.default_rng(17)
    cases = [random_case(random) for _ in range(CASES)]
    results = by_muster(program, cases)
    assert len(results) == CASES, len(results)
    told = 0
    for number, (case, result) in enumerate(zip(cases, results)):
        expected = by_pycocotools(*case)
        assert result.shape == expected.shape, (number, result, expected)
        names = NAMES + [f"ap of class {label}" for label in case[0]]
        for name, found, wanted in zip(names, result, expected):
            assert abs(found - wanted) <= TOLERANCE, (number, name, found, wanted)
        told += np.count_nonzero((expected > 0.01) & (expected < 0.99))
    assert told > 5 * CASES, told  # numbers that say something
    print(f"{CASES} cases agree with pycocotools; {told} numbers are between 0.01 and 0.99")


def main():
    check(sys.argv[1])


if __name__ == "__main__":
    main()
