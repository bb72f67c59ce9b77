#!/usr/bin/env python3
"""Tests that CI runs what the README tells a newcomer to run: the same commands, in the same order, with nothing set."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text()
CI = re.sub(r"(?m)^ *#.*\n", "", (ROOT / ".ci/run").read_text())


def commands_of_readme():
    """The commands of the first block, without the comments behind them."""
    block = re.search(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL).group(1)
    return [line.split("#")[0].strip() for line in block.splitlines()]


def commands_of_ci():
    """The commands that CI gives as they stand: in lines of their own, without a variable, and on the bare system."""
    lines = re.findall(r"^(make [^|\n]*?)(?: 2>&1 \| tee .*)?$", CI, re.MULTILINE)
    bare = re.search(r'^(?:nice )?deploy/setup/bare\.sh --here \\\n((?: +"[^"]*" ?.*\n)+)', CI, re.MULTILINE).group(1)
    return lines + re.findall(r'"([^"]*)"', bare)


class Ci(unittest.TestCase):
    def test_gives_the_commands_of_the_readme_in_their_order(self):
        of_readme = commands_of_readme()
        self.assertEqual(len(of_readme), 2)
        self.assertEqual([command for command in commands_of_ci() if command in of_readme], of_readme)

    def test_sets_nothing_for_what_it_starts(self):
        self.assertNotRegex(CI, r"(?m)^\s*(export|declare -x)\b|CMAKE_FLAGS")
        self.assertIn("/usr/bin/env -i", (ROOT / "deploy/setup/bare.sh").read_text())

    def test_runs_targets_that_there_are(self):
        targets = set(re.findall(r"^([a-z0-9-]+(?: [a-z0-9-]+)*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        targets = {target for group in targets for target in group.split()}
        for text in [CI, "\n".join(commands_of_readme())]:
            for target in re.findall(r"\bmake (?:-o build )?([a-z0-9-]+)", text):
                self.assertIn(target, targets)


if __name__ == "__main__":
    unittest.main()
