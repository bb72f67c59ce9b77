#!/usr/bin/env python3
"""Tests of what is installed: `cmake --install` into a folder, the Debian package, and that completion and man page
have every command and option that the programs' --help has.

    check_package.py BUILD_FOLDER
"""

import functools
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

# The programs that describe their command lines: completion and man page.
DESCRIBED = ["muster", "muster-trainer"]
# Where each shell looks for a program's completion, below share/.
SHELLS = {"bash": "bash-completion/completions/{}", "fish": "fish/vendor_completions.d/{}.fish",
          "zsh": "zsh/vendor-completions/_{}"}
FILES = {"usr/bin/muster", "usr/bin/muster-trainer", "usr/share/doc/muster/copyright"}
FILES |= {f"usr/share/{file.format(program)}" for program in DESCRIBED for file in SHELLS.values()}
FILES |= {f"usr/share/man/man1/{program}.1" for program in DESCRIBED}
FILES |= {f"usr/lib/muster/{library}" for library in ("libmuster_tables.so", "libarrow.so.2600", "libparquet.so.2600")}
FILES |= {f"usr/share/doc/muster/arrow/{text}" for text in ("LICENSE.txt", "NOTICE.txt")}
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


class Program:
    """An installed program, and what its --help says about its commands."""

    def __init__(self, root, name):
        self.name = name
        self.program = root / "usr/bin" / name
        self.completions = {shell: root / "usr/share" / file.format(name) for shell, file in SHELLS.items()}
        self.page = (root / f"usr/share/man/man1/{name}.1").read_text()
        for roff, text in [("\\-", "-"), ("\\fB", ""), ("\\fR", "")]:
            self.page = self.page.replace(roff, text)
        overview = run(self.program, "--help")
        self.commands = re.findall(r"^  ([a-z]+) ", overview.split("Subcommands:")[1].split("Examples:")[0],
                                   re.MULTILINE)
        self.options = {"": options_in(overview)}
        for command in self.commands:
            self.options[command] = options_in(run(self.program, command, "--help"))

    def complete(self, shell, *words):
        """What a shell offers for the last of the words after the program's name."""
        return getattr(self, "complete_in_" + shell)(self.completions[shell], *words)

    def complete_in_bash(self, file, *words):
        # bash takes the = of --option=value for a word of its own.
        words = [part for word in words for part in (re.findall("=|[^=]+", word) or [""])]
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  f'_{self.name.replace("-", "_")}; printf "%s\\n" "${{COMPREPLY[@]}}"')
        return set(run("bash", "-c", script, "bash", file, self.program, *words).split())

    def complete_in_fish(self, file, *words):
        # fish writes to its home, and completes the names of files in the current folder.
        with (tempfile.TemporaryDirectory(prefix="muster-fish-") as home,
              tempfile.TemporaryDirectory(prefix="muster-fish-") as here):
            places = {"HOME": home, "XDG_CONFIG_HOME": home, "PATH": f"{self.program.parent}:{os.environ['PATH']}"}
            lines = run("fish", "-c", 'source $argv[1]; complete -C "$argv[2..]"', file, self.name, *words,
                        cwd=here, env={**os.environ, **places}).splitlines()
        return {re.sub("^-.*=", "", line.split("\t")[0]) for line in lines}

    def complete_in_zsh(self, file, *words):
        # These functions take the place of zsh's own, which need a terminal: they print all that is offered.
        script = ('compdef() {}; compset() {}; _files() {}; _describe() { print -rl -- "${(@)${(@P)@[-1]}%%:*}" }; '
                  f'source "$1"; shift; words=("$@"); CURRENT=$#; _{self.name.replace("-", "_")}')
        offered = run("zsh", "-f", "-c", script, "zsh", file, self.program, *words).split()
        return {word for word in offered if word.startswith(words[-1].split("=")[-1])}

    def chapters(self):
        """The man page's text about each command, and "" for what comes before them."""
        found = {"": self.page.split("\n.SH COMMANDS")[0]}
        for chapter in self.page.split("\n.SS ")[1:]:
            found[chapter.removeprefix(self.name).split()[0]] = chapter
        return found


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="muster-package-")
        cls.root = pathlib.Path(cls.folder.name)
        run("cmake", "--install", BUILD, "--prefix", cls.root / "usr")
        cls.programs = [Program(cls.root, name) for name in DESCRIBED]
        cls.muster = cls.programs[0]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_installs_the_programs_and_their_texts(self):
        found = {str(file.relative_to(self.root)) for file in self.root.rglob("*") if file.is_file()}
        self.assertEqual(found, FILES)

    def test_installed_programs_run(self):
        version = run(self.muster.program, "--version").split()[1]
        trainer = self.root / "usr/bin/muster-trainer"
        self.assertEqual(run(trainer, "--version"), f"muster-trainer {version}\n")
        # muster finds the trainer beside it.
        self.assertIn("--checkpoint", run(self.muster.program, "evaluate", "--help"))

    def test_completion_offers_all_that_help_lists(self):
        for shell, program in itertools.product(SHELLS, self.programs):
            self.assertGreater(len(program.commands), 4)
            self.assertEqual(program.complete(shell, ""), set(program.commands))
            for command in ["", *program.commands]:
                with self.subTest(program.name, shell=shell, command=command):
                    words = [command] if command else []
                    self.assertGreater(len(program.options[command]), 0)
                    self.assertGreaterEqual(program.complete(shell, *words, "-"), program.options[command])

    def test_completion_offers_values_and_leaves_files_to_the_shell(self):
        for shell in SHELLS:
            with self.subTest(shell):
                complete = functools.partial(self.muster.complete, shell)
                self.assertEqual(complete("run", "-o", ""), {"text", "json"})
                self.assertEqual(complete("run", "--output", "j"), {"json"})
                self.assertEqual(complete("run", "--output=t"), {"text"})
                self.assertEqual(complete("run", "--output="), {"text", "json"})
                self.assertEqual(complete("status", "runs/a", "-o", ""), {"text", "json", "yaml"})
                self.assertEqual(complete("completion", ""), set(SHELLS))
                self.assertEqual(complete("run", ""), set())
                self.assertEqual(complete("run", "--directory", ""), set())
                self.assertEqual(complete("va"), {"validate"})

    def test_man_page_has_all_that_help_lists(self):
        for program in self.programs:
            chapters = program.chapters()
            self.assertEqual(set(chapters), {"", *program.commands})
            for command, chapter in chapters.items():
                with self.subTest(program.name, command=command):
                    if f"{program.name} {command} --help lists its options." in chapter:
                        continue
                    names = {name for line in re.findall(r"^\.TP\n(-.*)$", chapter, re.MULTILINE)
                             for name in re.findall(r"(?:^|, )(-[-a-zA-Z]+)", line)}
                    self.assertEqual(names, program.options[command])

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
