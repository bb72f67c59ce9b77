#!/usr/bin/env python3
"""Draws docs/images/loss.svg from the TensorBoard events of a real run:

    build/release/bin/muster run examples/mnist-mlp.yaml --directory build/loss \\
        --set spec.training.summary.everySteps=10
    build/venv/bin/python docs/images/make_loss_curve.py build/loss
"""

import pathlib
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 50, 50, 20, 40
LOSS, ACCURACY = "#1f77b4", "#d65f0e"


def series(folder, tag):
    """[(step, value)] of a tag in all event files of the folder, or none."""
    events = EventAccumulator(str(folder))
    events.Reload()
    names = events.Tags()["scalars"] + events.Tags()["tensors"]
    if tag not in names:
        sys.exit(f"{folder}: expected the tag {tag}, found {', '.join(names) or 'none'}")
    if tag in events.Tags()["scalars"]:
        return [(point.step, point.value) for point in events.Scalars(tag)]
    return [(point.step, point.tensor_proto.float_val[0]) for point in events.Tensors(tag)]


def line(points, x, y, color):
    path = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in points)
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.6"/>'


def text(x, y, words, anchor="middle", color="#444"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{color}">{words}</text>'


def draw(loss, accuracy):
    steps = max(step for step, _ in loss)
    highest = max(value for _, value in loss)
    low = 0.5  # the accuracy axis starts here
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT

    def x(step):
        return LEFT + (right - LEFT) * step / steps

    def y_loss(value):
        return bottom - (bottom - TOP) * value / highest

    def y_accuracy(value):
        return bottom - (bottom - TOP) * (max(value, low) - low) / (1 - low)

    marks = [text(x(steps * i / 4), bottom + 16, f"{steps * i / 4:.0f}") for i in range(5)]
    for i in range(5):
        at = bottom - (bottom - TOP) * i / 4
        marks += [f'<line x1="{LEFT}" x2="{right}" y1="{at:.0f}" y2="{at:.0f}" stroke="#ddd"/>',
                  text(LEFT - 6, at + 4, f"{highest * i / 4:.2f}", "end", LOSS),
                  text(right + 6, at + 4, f"{low + (1 - low) * i / 4:.2f}", "start", ACCURACY)]
    marks += [text((LEFT + right) / 2, HEIGHT - 6, "step"),
              text(right - 8, TOP + 70, "training loss", "end", LOSS),
              text(right - 8, TOP + 86, "training accuracy", "end", ACCURACY)]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
        ' font-size="11">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', *marks,
        line(accuracy, x, y_accuracy, ACCURACY), line(loss, x, y_loss, LOSS), "</svg>\n"])


def main(directory):
    events = pathlib.Path(directory) / "events/chief-0"
    picture = draw(series(events, "loss"), series(events, "accuracy"))
    (pathlib.Path(__file__).parent / "loss.svg").write_text(picture)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
