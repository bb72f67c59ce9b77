"""The loss of the TF Object Detection API's ssd_mobilenet_v1 in PyTorch and NumPy, written from the API's
configuration and the papers that it names, for make_pytorch_fixtures.py."""

import math

import numpy as np
import torch
import torch.nn.functional as F

# Filters of the pointwise convolution and stride of the depthwise one; filters of the four extra layers.
BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1), (512, 1),
          (512, 1), (1024, 2), (1024, 1)]
EXTRAS = [512, 256, 256, 128]
RATIOS = [1.0, 2.0, 0.5, 3.0, 0.3333]
SCALES = [0.2 + 0.75 * i / 5 for i in range(6)] + [1.0]
CODE_SCALES = np.array([10.0, 10.0, 5.0, 5.0])


def random_object(random, classes):
    """[ymin, xmin, ymax, xmax, label], float32 numbers."""
    size = random.uniform(0.15, 0.7, 2)
    corner = random.uniform(0, 1, 2) * (1 - size)
    box = np.concatenate([corner, corner + size]).astype(np.float32)
    return [*map(float, box), int(random.integers(classes))]


def anchors(image_shape):
    """[n, 4]: centre y and x, height, width."""
    # The backbone halves the image four times up to its first grid, and then once for each grid.
    grids = [math.ceil(image_shape[0] / 2**k) for k in range(4, 10)]
    found = []
    for layer, grid in enumerate(grids):
        shapes = [(SCALES[layer], ratio) for ratio in RATIOS]
        shapes.append((math.sqrt(SCALES[layer] * SCALES[layer + 1]), 1.0))
        if layer == 0:
            shapes = [(0.1, 1.0), (SCALES[0], 2.0), (SCALES[0], 0.5)]
        for y in range(grid):
            for x in range(grid):
                for scale, ratio in shapes:
                    root = math.sqrt(ratio)
                    found.append([(y + 0.5) / grid, (x + 0.5) / grid, scale / root, scale * root])
    return np.array(found)


def corners(boxes):
    return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], axis=1)


def overlap(a, b):
    """Intersection over union of boxes [n, 4] and [m, 4] by their corners: [n, m]."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    inner = np.clip(high - low, 0, None).prod(axis=2)

    def area(boxes):
        return (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)

    return inner / (area(a)[:, None] + area(b)[None, :] - inner)


def match(objects, anchor_corners):
    """For each anchor its object, or -1."""
    matches = np.full(len(anchor_corners), -1)
    if not objects:
        return matches
    similarity = overlap(np.array([one[:4] for one in objects]), anchor_corners)
    best = similarity.argmax(axis=0)
    matches = np.where(similarity.max(axis=0) >= 0.5, best, -1)
    # Each object gets the anchor that is most like it; of several that want one the first gets it.
    for index in reversed(range(len(objects))):
        matches[similarity[index].argmax()] = index
    return matches


def encode(boxes, anchor_boxes):
    centre, size = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    return CODE_SCALES * np.concatenate([(centre - anchor_boxes[:, :2]) / anchor_boxes[:, 2:],
                                         np.log(size / anchor_boxes[:, 2:])], axis=1)


def decode(codes, anchor_boxes):
    codes = codes / CODE_SCALES
    return corners(np.concatenate([codes[:, :2] * anchor_boxes[:, 2:] + anchor_boxes[:, :2],
                                   np.exp(codes[:, 2:]) * anchor_boxes[:, 2:]], axis=1))


def mine(boxes, losses, matched):
    """The anchors whose losses count: by falling loss, none that nearly is one before it, and three without
    an object for each with one."""
    left = []
    for index in np.argsort(-losses, kind="stable"):
        if len(left) == 3000:
            break
        if not left or overlap(boxes[[index]], boxes[left]).max() <= 0.99:
            left.append(index)
    left = np.array(left)
    negative = ~matched[left]
    most = int(3 * matched[left].sum())
    return left[matched[left] | (negative & (np.cumsum(negative) <= most))]


def loss(outputs, objects, classes, image_shape):
    """outputs: [batch, anchors * 4 + anchors * (classes + 1)]; objects: a list for each image."""
    anchor_boxes = anchors(image_shape)
    anchor_corners = corners(anchor_boxes)
    count = len(anchor_boxes)
    total, matches_in_all = 0, 0
    for output, shown in zip(outputs, objects):
        codes, logits = output[: count * 4].reshape(count, 4), output[count * 4 :].reshape(count, classes + 1)
        matches = match(shown, anchor_corners)
        matched = matches >= 0
        labels = np.array([shown[m][4] + 1 if m >= 0 else 0 for m in matches])
        wanted_codes = np.zeros((count, 4))
        if shown:
            boxes = np.array([shown[max(m, 0)][:4] for m in matches])
            wanted_codes = np.where(matched[:, None], encode(boxes, anchor_boxes), 0)
        wanted = F.one_hot(torch.from_numpy(labels), classes + 1).to(logits.dtype)
        classification = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none").sum(1)
        localization = F.smooth_l1_loss(codes, torch.from_numpy(wanted_codes).to(codes.dtype),
                                        reduction="none").sum(1)
        chosen = mine(decode(codes.detach().double().numpy(), anchor_boxes),
                      classification.detach().double().numpy(), matched)
        total = total + classification[chosen].sum() + localization[chosen[matched[chosen]]].sum()
        matches_in_all += int(matched.sum())
    return total / max(matches_in_all, 1)
