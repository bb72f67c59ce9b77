#!/usr/bin/env python3
"""Tests of what CMake says where something that a build needs is missing: which libraries, by Debian's names too, and
which compiler was expected. The compiler that is too old is one that calls itself so."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
LISTED = [line.split()[0] for line in (ROOT / "deploy/setup/debian-packages.txt").read_text().splitlines()
          if line and not line.startswith("#")]


def required(file):
    """The libraries that a CMakeLists.txt requires, each with Debian's names of it."""
    calls = re.findall(r'muster_(?:require|require_file|missing)\((?:find_\w+ )?(\S+) "?([^")]+)"?\)',
                       (ROOT / file).read_text())
    return {name: packages.split(", ") for name, packages in calls}


class Configuration(unittest.TestCase):
    def setUp(self):
        self.build = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.build)

    def configure(self, *flags):
        done = subprocess.run(["cmake", "-S", ROOT, "-B", self.build, *flags], capture_output=True, text=True)
        return done.returncode, " ".join(done.stderr.split())

    def test_names_all_libraries_that_are_missing(self):
        libraries = required("CMakeLists.txt")
        self.assertGreater(len(libraries), 15)
        flags = [flag for name in libraries
                 for flag in (f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON", f"-Dmuster_{re.sub('[^a-z]', '_', name)}=OFF")]
        code, said = self.configure(*flags)
        self.assertEqual(code, 1)
        for name, packages in libraries.items():
            if name != "IPSecMB":  # only OpenSSL says whether it is needed
                self.assertIn(f"{name} ({', '.join(packages)})", said)

    def test_names_libraries_of_tests(self):
        code, said = self.configure("-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON")
        self.assertEqual(code, 1)
        self.assertIn("did not find GTest (libgtest-dev, libgmock-dev).", said)

    def test_names_packages_that_are_in_the_list(self):
        for file in ["CMakeLists.txt", "tests/CMakeLists.txt"]:
            for packages in required(file).values():
                for package in packages:
                    if package != "libc6-dev":  # a part of build-essential
                        self.assertIn(package, LISTED)

    def test_names_a_compiler_that_is_too_old(self):
        for real, macro, named in [("g++", "__GNUC__", "GNU 11"), ("clang++", "__clang_major__", "Clang 13")]:
            with self.subTest(real):
                compiler = self.build / f"old-{real}"
                compiler.write_text(f'#!/bin/sh\nexec {real} -U{macro} -D{macro}={named.split()[1]} "$@"\n')
                compiler.chmod(0o755)
                code, said = self.configure("--fresh", f"-DCMAKE_CXX_COMPILER={compiler}")
                self.assertEqual(code, 1)
                self.assertIn("expected GCC 12, clang 14 or a later one, found " + named, said)
                self.assertIn(str(compiler), said)


if __name__ == "__main__":
    unittest.main()
