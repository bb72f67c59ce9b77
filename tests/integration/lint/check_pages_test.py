#!/usr/bin/env python3
"""Tests what tests/python/check_pages.py finds in a few small pages."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import check_pages  # noqa: E402

TREE = "trainer/ps/shard.cc\ntrainer/ps/shard.h\ntests/a_test.cc\ndocs/internals/extending/a.md\nMakefile"
SOURCES = {"trainer/ps/shard.cc": "void Shard::push() {}", "trainer/ps/shard.h": "class Shard;",
           "tests/a_test.cc": "TEST(A, Holds)"}


def named(text):
    return list(check_pages.names({"docs/internals/extending/a.md": text}, SOURCES, TREE))


class Links(unittest.TestCase):
    PAGES = {"a.md": "# The first\n\n## Of `x`, and why?\n```\n# no heading\n```\n", "docs/b.md": "## Twice\n## Twice\n"}

    def found(self, text):
        exists = {*self.PAGES, "docs", "docs/c.md"}.__contains__
        return list(check_pages.links({**self.PAGES, "docs/c.md": text}, exists))

    def test_to_files_folders_headings_and_the_web_are_right(self):
        text = ("## Here\n[a](../a.md) [b](../a.md#of-x-and-why) [c](b.md#twice-1) [d](#here)\n[e](../docs)"
                " [f](https://example.org/x#y)\n```\n[g](nothing.md)\n```\n")
        self.assertEqual(self.found(text), [])

    def test_that_lead_nowhere_are_found(self):
        self.assertEqual(self.found("[a](a.md)\n\n[b](../a.md#no-heading) [c](b.md#thrice)\n"),
                         ["docs/c.md:1: no file docs/a.md", "docs/c.md:3: no heading #no-heading in a.md",
                          "docs/c.md:3: no heading #thrice in docs/b.md"])


class Names(unittest.TestCase):
    def test_of_files_and_functions_that_are_there_are_right(self):
        text = ("`shard.cc` of `trainer/ps`, `trainer/ps/<name>.h`, `Shard::push()` and `result.json`, `a b`\n"
                "| `trainer/ps/shard.cc`, `shard.h` | `push()` |\n")
        self.assertEqual(named(text), [])

    def test_of_others_are_found(self):
        self.assertEqual(named("`trainer/gone.cc`\n`gone.h` `trainer/<name>.py` `Shard::pull()`\n"),
                         ["docs/internals/extending/a.md:1: `trainer/gone.cc` is not in the tree",
                          "docs/internals/extending/a.md:2: `gone.h` is not in the tree",
                          "docs/internals/extending/a.md:2: `trainer/<name>.py` is not in the tree",
                          "docs/internals/extending/a.md:2: `Shard::pull()` is not in the tree"])

    def test_of_a_row_must_be_in_the_files_of_the_row(self):
        self.assertEqual(named("| `trainer/ps/shard.h` | `push()` |\n"),
                         ["docs/internals/extending/a.md:1: `push()` is not in trainer/ps/shard.h"])


class Decisions(unittest.TestCase):
    def found(self, decisions, text=""):
        return list(check_pages.decisions({check_pages.DECISIONS: decisions, "a.cc": text}))

    def test_are_numbered_in_order_and_referred_to_by_number(self):
        self.assertEqual(self.found("1. **One.**\n2. **Two.**\n", "// See decisions 1 and 2."), [])

    def test_that_are_missing_are_found(self):
        self.assertEqual(self.found("1. **One.**\n3. **Three.**\n", "\n// By decision 2, and decisions 1 and 7.\n"),
                         ["docs/decisions.md: expected the numbers 1, 2, 3 and so on, found [1, 3]",
                          "a.cc:2: no decision 2 in docs/decisions.md", "a.cc:2: no decision 7 in docs/decisions.md"])


if __name__ == "__main__":
    unittest.main()
