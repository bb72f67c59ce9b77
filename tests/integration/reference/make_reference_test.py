#!/usr/bin/env python3
"""Tests what tests/python/make_reference.py makes of small schemas and of a small man page."""

import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import make_reference  # noqa: E402

NAME = {"type": "string", "description": "Its name."}
CONTEXT = ".TP\n\\fB\\-\\-context\\fR \\fITEXT\\fR\nContext.\n"
METRICS = ["validationLoss", "validationAccuracy"]


class Fields(unittest.TestCase):
    def test_that_three_kinds_have_are_said_once(self):
        kind = {"type": "object", "description": "A kind.", "properties": {"name": NAME}}
        own = {**kind, "properties": {"name": NAME, "units": {"type": "integer", "description": "Its units."}}}
        text = make_reference.chapter_of_kinds("Kinds", "All.", {"properties": {"a": own, "b": kind, "c": kind}})
        self.assertEqual(text.count("Its name."), 1)
        self.assertIn("| `a` | object |  | A kind. Also has `name`. |\n| `a.units` | integer |  | Its units. |", text)

    def test_that_take_a_metric_lead_to_the_list_of_metrics(self):
        self.assertEqual(make_reference.bounds({"enum": METRICS}), "one of the [metrics](#metrics)")
        self.assertEqual(make_reference.bounds({"enum": ["trainLoss", *METRICS]}),
                         "`trainLoss` or one of the [metrics](#metrics)")
        self.assertEqual(make_reference.bounds({"enum": ["sync", "async"]}), "one of `sync`, `async`")

    def test_that_are_initializers_lead_to_their_chapter(self):
        schema = {"type": "object", "description": "First values.", "properties": {
            "name": {"type": "string", "default": "zeros"}, "scale": {"type": "number"}}}
        self.assertEqual(list(make_reference.rows({"properties": {"biasInitializer": schema}}, "", ())),
                         [("`biasInitializer`", "[initializer](#initializers)", '`"zeros"`', "First values.")])

    def test_show_angle_brackets_and_bars(self):
        self.assertEqual(make_reference.plain("runs/<name>, `<job>` or a|b"), "runs/&lt;name>, `<job>` or a\\|b")


class Commands(unittest.TestCase):
    PAGE = ".SH COMMANDS\n" + "".join(
        f".SS muster {name} [OPTION...] JOB\nDo {name}\n.TP\n\\fIJOB\\fR\nThe job\n{CONTEXT}.PP\n.nf\nExample:\n"
        f"  muster {name} a\\-job\n.fi\n" for name in ("list", "stop", "scale", "logs")) + ".SH NOTES\n"

    def test_have_their_options_and_examples_and_share_what_all_have(self):
        text = "".join(make_reference.commands(self.PAGE))
        self.assertEqual(text.count("| `--context TEXT` | Context. |"), 1)
        self.assertIn("### muster stop\n\n`muster stop [OPTION...] JOB`: do stop.\n\n| option | meaning |\n|---|---|\n"
                      "| `JOB` | The job |\n\nAlso `--context`.\n\n<!-- not run: its options alone are tried -->\n```\n  muster stop a-job\n```\n", text)


class ExitCodes(unittest.TestCase):
    def test_are_all_there(self):
        header = (make_reference.ROOT / "common/exit_code.h").read_text()
        numbers = re.findall(r"\d+(?=,)", header)
        self.assertGreater(len(numbers), 10)
        for number in numbers:
            self.assertIn(f"| {number} | ", "".join(make_reference.exit_codes()))


if __name__ == "__main__":
    unittest.main()
