#!/usr/bin/env python3
"""Tests of what is installed: `cmake --install` into a folder, the Debian package, and that completion and man page
have every command and option that the programs' --help has.

    check_package.py BUILD_FOLDER
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

FILES = {
    "usr/bin/muster",
    "usr/bin/muster-trainer",
    "usr/share/bash-completion/completions/muster",
    "usr/share/doc/muster/copyright",
    "usr/share/man/man1/muster.1",
}
BUILD = None


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def options_in(text):
    """Options at the beginnings of the lines of a --help: -o,--output TEXT:{text,json} ..."""
    lines = re.findall(r"^  (-[^ ]+)", text, re.MULTILINE)
    return {option for line in lines for option in line.split(",")}


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="muster-package-")
        cls.root = pathlib.Path(cls.folder.name)
        run("cmake", "--install", BUILD, "--prefix", cls.root / "usr")
        cls.muster = cls.root / "usr/bin/muster"
        cls.completion = cls.root / "usr/share/bash-completion/completions/muster"
        overview = run(cls.muster, "--help")
        cls.commands = re.findall(r"^  ([a-z]+) ", overview.split("Subcommands:")[1].split("Examples:")[0],
                                  re.MULTILINE)
        cls.options = {"": options_in(overview)}
        for command in cls.commands:
            cls.options[command] = options_in(run(cls.muster, command, "--help"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def complete(self, *words):
        """What bash offers for the last of the words after `muster`."""
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _muster; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        said = run("bash", "-c", script, "bash", self.completion, self.muster, *words)
        return set(said.split())

    def test_installs_the_programs_and_their_texts(self):
        found = {str(file.relative_to(self.root)) for file in self.root.rglob("*") if file.is_file()}
        self.assertEqual(found, FILES)

    def test_installed_programs_run(self):
        version = run(self.muster, "--version").split()[1]
        self.assertEqual(run(self.muster.with_name("muster-trainer"), "--version"), f"muster-trainer {version}\n")
        # By muster-trainer, found beside it.
        self.assertIn("--checkpoint", run(self.muster, "evaluate", "--help"))

    def test_completion_offers_all_that_help_lists(self):
        self.assertGreater(len(self.commands), 15)
        self.assertEqual(self.complete(""), set(self.commands))
        for command in ["", *self.commands]:
            with self.subTest(command):
                words = [command] if command else []
                self.assertGreater(len(self.options[command]), 0)
                self.assertGreaterEqual(self.complete(*words, "-"), self.options[command])

    def test_completion_offers_values_and_leaves_files_to_bash(self):
        self.assertEqual(self.complete("run", "-o", ""), {"text", "json"})
        self.assertEqual(self.complete("run", "--output", "j"), {"json"})
        self.assertEqual(self.complete("run", "--output", "=", "t"), {"text"})
        self.assertEqual(self.complete("run", "--output", "="), {"text", "json"})
        self.assertEqual(self.complete("status", "runs/a", "-o", ""), {"text", "json", "yaml"})
        self.assertEqual(self.complete("completion", ""), {"bash"})
        self.assertEqual(self.complete("run", ""), set())
        self.assertEqual(self.complete("run", "--directory", ""), set())
        self.assertEqual(self.complete("va"), {"validate"})

    def test_man_page_has_all_that_help_lists(self):
        roff = (self.root / "usr/share/man/man1/muster.1").read_text()
        page = roff.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
        chapters = dict(zip(self.commands, page.split("\n.SS ")[1:], strict=True))
        chapters[""] = page.split("\n.SH COMMANDS")[0]
        for command, chapter in chapters.items():
            with self.subTest(command):
                self.assertTrue(command == "" or chapter.startswith(f"muster {command}"))
                if command in ("evaluate", "predict"):
                    self.assertIn(f"muster {command} --help", chapter)
                    continue
                names = {name for line in re.findall(r"^\.TP\n(-.*)$", chapter, re.MULTILINE)
                         for name in re.findall(r"(?:^|, )(-[-a-zA-Z]+)", line)}
                self.assertEqual(names, self.options[command])

    def test_debian_package_has_the_same_files_and_names_its_libraries(self):
        with tempfile.TemporaryDirectory(prefix="muster-deb-") as folder:
            run("cpack", "-G", "DEB", "-B", folder, "--config", BUILD / "CPackConfig.cmake", cwd=BUILD)
            package, = pathlib.Path(folder).glob("*.deb")
            listed = run("dpkg-deb", "--contents", package)
            found = {line.split()[-1].removeprefix("./") for line in listed.splitlines()
                     if not line.startswith("d")}
            self.assertEqual(found, FILES)
            self.assertEqual(run("dpkg-deb", "--field", package, "Package").strip(), "muster")
            self.assertRegex(run("dpkg-deb", "--field", package, "Depends"), r"libyaml-cpp.*\(>=")


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
