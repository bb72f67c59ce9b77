#!/usr/bin/env python3
"""Tests that CI runs what the README tells a newcomer to run: the same commands, in the same order, on a bare system,
with nothing set."""

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


def call_of_bare():
    """What stands before bare.sh in its line, and the commands that it is given."""
    call = re.search(r'^(.*)deploy/setup/bare\.sh "\$suite" \\\n((?: +"[^"]*" \\\n)+)', CI, re.MULTILINE)
    return call.group(1).strip(), re.findall(r'"([^"]*)"', call.group(2))


class Ci(unittest.TestCase):
    def test_runs_the_commands_of_the_readme_on_a_bare_system(self):
        before, commands = call_of_bare()
        expected = commands_of_readme()
        self.assertEqual(commands[:len(expected)], expected)
        self.assertIn(before, ["", "nice"], "a variable or flag of CI's own")

    def test_sets_nothing_for_what_it_starts(self):
        self.assertNotRegex(CI, r"(?m)^\s*(export|declare -x)\b")
        self.assertIn("/usr/bin/env -i", (ROOT / "deploy/setup/bare.sh").read_text())

    def test_runs_targets_that_there_are(self):
        targets = set(re.findall(r"^([a-z0-9-]+(?: [a-z0-9-]+)*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        targets = {target for group in targets for target in group.split()}
        for text in [CI, "\n".join(commands_of_readme())]:
            for target in re.findall(r"\bmake (?:-o build )?([a-z0-9-]+)", text):
                self.assertIn(target, targets)


if __name__ == "__main__":
    unittest.main()
