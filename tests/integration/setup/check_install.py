#!/usr/bin/env python3
"""Tests of what deploy/setup/install.sh says and does: on a machine where nothing is missing, with and without root, on
a system of other packages, and on one that lacks some of Debian's. The commands of Debian are stand-ins that say what
they are told, in a folder that is all of PATH."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
INSTALL = ROOT / "deploy/setup/install.sh"
USED = ["bash", "sed", "grep", "awk", "comm", "sort", "dirname", "true", "env"]
RELEASE = re.search(r"^VERSION_CODENAME=(\w+)$", pathlib.Path("/etc/os-release").read_text(), re.MULTILINE)[1]
# A second word is the only release that needs the package.
LINES = (ROOT / "deploy/setup/debian-packages.txt").read_text().split("# [packaging]")[1].splitlines()[1:]
PACKAGES = sorted(words[0] for words in map(str.split, LINES) if words[1:] in ([], [RELEASE]))


class Install(unittest.TestCase):
    def setUp(self):
        self.bin = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.bin)
        for command in USED:
            (self.bin / command).symlink_to(shutil.which(command))

    def stand_in(self, name, script):
        (self.bin / name).write_text(f"#!/bin/bash\n{script}\n")
        (self.bin / name).chmod(0o755)

    def debian(self, user=0, installed=(), known=PACKAGES, apt="exit 0"):
        self.stand_in("id", f"echo {user}")
        self.stand_in("sleep", "exit 0")
        self.stand_in("dpkg-query", "".join(f"echo installed {package}\n" for package in installed))
        self.stand_in("apt-cache", "".join(f"echo Package: {package}\n" for package in known))
        self.stand_in("apt-get", f'echo "$@" >>{self.bin}/log\n{apt}')

    def run_install(self, *sections):
        return subprocess.run([INSTALL, *sections], env={"PATH": str(self.bin)}, capture_output=True, text=True)

    def calls(self):
        log = self.bin / "log"
        return [line for line in log.read_text().splitlines()] if log.exists() else []

    def test_says_nothing_where_nothing_is_missing(self):
        self.debian(installed=PACKAGES)
        done = self.run_install("packaging")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.calls(), [])

    def test_installs_what_is_missing(self):
        self.debian(installed=PACKAGES[:1])
        done = self.run_install("packaging")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(" ".join(PACKAGES[1:]), self.calls()[-1])
        self.assertNotIn(PACKAGES[0], self.calls()[-1])

    def test_without_root_or_sudo_it_says_what_root_must_do(self):
        for sudo in [None, "exit 1"]:  # none, and one that does not let this user in
            with self.subTest(sudo):
                self.debian(user=1000)
                if sudo:
                    self.stand_in("sudo", sudo)
                done = self.run_install("packaging")
                self.assertEqual(done.returncode, 1)
                self.assertIn("expected root, or sudo for this user", done.stderr)
                self.assertIn("As root: apt-get update && apt-get install --no-install-recommends " + " ".join(PACKAGES),
                              done.stderr)
                self.assertEqual(self.calls(), [])

    def test_says_what_failed_and_what_root_may_try(self):
        self.debian(apt="echo 'Temporary failure resolving' >&2; exit 100")
        done = self.run_install("packaging")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("Temporary failure resolving"), 3)
        self.assertIn("apt-get has failed three times, for the reasons above. As root: apt-get update && ", done.stderr)

    def test_uses_sudo(self):
        self.debian(user=1000)
        self.stand_in("sudo", 'exec "$@"')
        self.assertEqual(self.run_install("packaging").returncode, 0)
        self.assertIn("install -y", self.calls()[-1])

    def test_names_packages_that_the_system_does_not_have_and_installs_none(self):
        self.debian(known=PACKAGES[1:])
        done = self.run_install("packaging")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"without {PACKAGES[0]}: nothing is installed", done.stderr)
        self.assertFalse([call for call in self.calls() if " install " in call])

    def test_tells_a_system_of_other_packages_what_it_must_have(self):
        done = self.run_install("packaging")
        self.assertEqual(done.returncode, 0)
        self.assertIn("expected Debian 13 or 12", done.stderr)
        for package in PACKAGES:
            self.assertIn(f" {package} ", done.stderr)

    def test_refuses_a_section_that_there_is_not(self):
        self.debian()
        done = self.run_install("nonsense")
        self.assertEqual(done.returncode, 64)
        self.assertIn('found "nonsense"', done.stderr)


if __name__ == "__main__":
    unittest.main()
