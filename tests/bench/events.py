"""When each step of a job was committed, to the microsecond: the wall clock of the points that the
chief writes for TensorBoard (summary.everySteps: 1)."""

import pathlib
import struct


def _varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def _read(file):
    """(step, time) of each record of a step's loss: length, its checksum, the event, its checksum.
    An event begins with the fields wall_time (1, a double) and step (2, a varint); points of epochs
    have the epoch there. Its value begins with the tag (1, a string)."""
    data = file.read_bytes()
    at = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        event = data[at + 12 : at + 12 + length]
        at += 16 + length
        if event[0:1] == b"\x09" and event[9:10] == b"\x10" and b"\x0a\x04loss" in event[10:]:
            yield _varint(event, 10)[0], struct.unpack_from("<d", event, 1)[0]


def commits(directory):
    """[(step, time)] in the order of time, a step that was repeated as often as it was; several
    points of one step are the last of them."""
    points = sorted((time, step) for file in pathlib.Path(directory).glob("events/chief-0/*")
                    for step, time in _read(file))
    return [(step, time) for i, (time, step) in enumerate(points)
            if step > 0 and (i + 1 == len(points) or points[i + 1][1] != step)]
