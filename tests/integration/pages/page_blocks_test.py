#!/usr/bin/env python3
"""Tests how tests/python/page_blocks.py reads the blocks of pages, and what check_pages.py says of their comments."""

import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import check_pages  # noqa: E402
import page_blocks  # noqa: E402


def block(comments, text="muster run a.yaml\n", language="sh"):
    return f"{comments}```{language}\n{text}```\n"


class Blocks(unittest.TestCase):
    def test_have_the_comments_above_them(self):
        page = "Text.\n\n" + block("<!-- before: mkdir a\ntouch a/b -->\n<!-- run, ends with 65 -->\n")
        one, = page_blocks.blocks(page)
        self.assertEqual((one.line, one.language, one.text), (6, "sh", "muster run a.yaml\n"))
        self.assertEqual((one.before.strip(), one.form["code"]), ("mkdir a\ntouch a/b", "65"))

    def test_in_lists_lose_their_indent(self):
        one, = page_blocks.blocks("- a\n\n  <!-- run -->\n  ```sh\n  if true\n    then :\n  fi\n  ```\n")
        self.assertEqual(one.text, "if true\n  then :\nfi\n")

    def test_have_commands_without_comments_and_pipes(self):
        one, = page_blocks.blocks(block("", "muster status JOB   # says it\n  kubectl get pods |\n  xargs\n"
                                        "helm upgrade \\\n  --set a=b\nmake run\n"))
        self.assertEqual(one.commands, ["muster status JOB", "kubectl get pods", "helm upgrade --set a=b"])


class Outputs(unittest.TestCase):
    def fits(self, shown, printed):
        return re.search(page_blocks.expression(shown), " ".join(printed.split())) is not None

    def test_may_differ_in_what_varies_by_machine(self):
        shown = f"12:04:31 step 7\n  accuracy  0.9730 of {'ab' * 32}, 1,564 steps\n...\nthe end"
        printed = f"00:00:00 step 7 accuracy 1.2e-05 of {'01' * 32}, 980 steps\nmore\nthe end\n"
        self.assertTrue(self.fits(shown, printed))

    def test_differ_in_words_whole_numbers_and_their_order(self):
        for printed in ["step 8 of a job", "step 7 of the job", "of a job step 7"]:
            self.assertFalse(self.fits("step 7\nof a job", printed), printed)


class Manifests(unittest.TestCase):
    def test_get_a_part_at_a_path_in_place_of_another(self):
        base = {"spec": {"data": {"train": {"idx": 1}, "test": 2}, "steps": 3}}
        part = {"train": {"coco": 4}, "test": "..."}
        self.assertEqual(page_blocks.manifest_with(part, base, "spec.data", "spec.data.train"),
                         {"spec": {"data": {"train": {"coco": 4}, "test": 2}, "steps": 3}})

    def test_alternatives_have_the_same_first_line(self):
        self.assertEqual(page_blocks.alternatives("a:\n  b: 1\n# or\n  c: 2\n"), ["a:\n  b: 1\n", "a:\n  c: 2\n"])


class Comments(unittest.TestCase):
    def found(self, page):
        texts = {"tests/a.py": 'muster("run")', "examples/a.yaml": ""}
        return list(check_pages.tests_of_blocks({"docs/a.md": page}, texts))

    def test_that_say_how_a_block_is_tested_are_right(self):
        for comment in ["run", "run in the background", "output", "tested by tests/a.py", "not run: it needs a GPU",
                        "part of examples/a.yaml at spec without spec.a"]:
            self.assertEqual(self.found(block(f"<!-- {comment} -->\n")), [], comment)
        self.assertEqual(self.found(block("", "a --> b\n", "text")), [])

    def test_that_are_missing_or_say_something_else_are_found(self):
        expected = "docs/a.md:{}: expected one comment above the block (run, output, part of FILE, tested by FILE, " \
                   "not run: REASON), found {}"
        self.assertEqual(self.found(block("")), [expected.format(1, "none")])
        self.assertEqual(self.found(block("<!-- not run -->\n")), [expected.format(2, '"not run"')])

    def test_that_name_files_without_the_command_are_found(self):
        self.assertEqual(self.found(block("<!-- part of examples/b.yaml -->\n")),
                         ["docs/a.md:2: no file examples/b.yaml"])
        self.assertEqual(self.found(block("<!-- tested by tests/a.py -->\n", "muster stop\n")),
                         ["docs/a.md:2: expected the word stop in tests/a.py, found none"])


if __name__ == "__main__":
    unittest.main()
