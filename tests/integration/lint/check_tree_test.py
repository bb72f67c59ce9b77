#!/usr/bin/env python3
"""Tests what tests/python/check_tree.py finds in a small tree, and that its lists name what is there."""

import pathlib
import sys
import tomllib
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import check_tree  # noqa: E402

FOLDERS = {"low": {"may_include": []},
           "low/wires": {"may_include": ["low"], "alone": ["cpprest/"]},
           "mid": {"may_include": ["low/..."], "pure": True},
           "high": {"may_include": ["low", "mid"]}}


def found(check, files, *more):
    return list(check({"low/a.h": "", "low/wires/w.h": "", "mid/m.h": "", **files}, *more))


class Includes(unittest.TestCase):
    def test_are_allowed_of_the_own_folder_and_of_those_in_the_table(self):
        files = {"mid/m.cc": '#include "mid/m.h"\n#include "low/a.h"\n#include "low/wires/w.h"\n#include <vector>\n'}
        self.assertEqual(found(check_tree.includes, files, FOLDERS), [])

    def test_of_a_folder_that_is_not_allowed_are_found_with_file_and_line(self):
        files = {"low/b.cc": '#include "low/a.h"\n\n#include "mid/m.h"\n',
                 "high/h.cc": '#include "low/wires/w.h"\n#include "tests/unit/low/support.h"\n'}
        self.assertEqual(found(check_tree.includes, files, FOLDERS),
                         ["low/b.cc:3: low may include no other folder; found mid/m.h",
                          "high/h.cc:1: high may include low, mid; found low/wires/w.h",
                          "high/h.cc:2: high may include low, mid; found tests/unit/low/support.h"])

    def test_of_a_library_are_found_outside_the_folder_that_has_it_alone(self):
        files = {"low/wires/w.cc": "#include <cpprest/json.h>\n", "mid/m.cc": "#include <cpprest/json.h>\n"}
        self.assertEqual(found(check_tree.includes, files, FOLDERS),
                         ["mid/m.cc:1: only low/wires may include cpprest/; found cpprest/json.h"])

    def test_need_a_folder_of_the_table(self):
        self.assertEqual(found(check_tree.includes, {"new/n.h": ""}, FOLDERS),
                         ["new/n.h: expected a folder of tests/python/folders.toml, found new"])


class PureFolders(unittest.TestCase):
    def test_have_no_clock_file_or_chance(self):
        files = {"mid/m.cc": "int x;\nauto now = std::chrono::system_clock::now();\n",
                 "mid/n.cc": "#include <random>\n", "low/a.cc": "#include <fstream>\n"}
        self.assertEqual(found(check_tree.purity, files, FOLDERS),
                         ["mid/m.cc:2: mid is pure; found system_clock::now",
                          "mid/n.cc:1: mid is pure; found #include <random>"])


class Sizes(unittest.TestCase):
    def test_of_files_and_functions_have_a_limit(self):
        body = "  f();\n" * 78
        files = {"low/at_limit.cc": f"void g() {{\n{body}}}\n",
                 "low/long.cc": f"\nvoid g(int a,\n       int b) {{\n{body}}}\n",
                 "low/large.cc": "int x;\n" * 601, "low/types.h": "struct S {\n" + "  int x;\n" * 90 + "};\n"}
        self.assertEqual(found(check_tree.sizes, files),
                         ["low/long.cc:2: expected a function of at most 80 lines, found 81",
                          "low/large.cc: expected at most 600 lines, found 601"])


class HiddenNames(unittest.TestCase):
    def test_of_two_sources_of_a_target_differ(self):
        hides = "namespace low {{\nnamespace {{\n\n{}\n}}  // namespace\n}}  // namespace low\n".format
        files = {"low/a.cc": hides("constexpr int kMost = 1;\nstruct Case {\n};\nusing Clock = One;\nint f(int a) {}"),
                 "low/b.cc": hides("constexpr int kMost = 2;\nclass Case {\n};\nusing Clock = Two;\nint f(int b) {\n}"),
                 "low/c.cc": hides("constexpr int kLeast = 1;\nclass Case;\nusing Clock = One;\nint f(char a) {\n}"),
                 "low/wires/d.cc": hides("constexpr int kMost = 3;")}
        self.assertEqual(found(check_tree.clashes, files, ["low", "low/wires"]),
                         [f"low/b.cc:{line}: expected a name that low/a.cc does not have, found low::{name}"
                          for line, name in ((4, "kMost"), (5, "Case"), (7, "Clock"), (8, "f(int)"))])


class Definitions(unittest.TestCase):
    def test_are_declared_in_the_header_of_the_same_name(self):
        files = {"low/x.h": "int one();\nclass Two {\n  void go();\n};\n",
                 "low/x.cc": "int one() { return 1; }\nvoid Two::go() {}\n"
                             "namespace {\nint own() { return 2; }\n}  // namespace\n"}
        self.assertEqual(found(check_tree.definitions, files), [])

    def test_that_another_header_declares_are_found(self):
        files = {"low/x.h": "int one();\n", "low/x.cc": "int two() {\n}\nThree::Three() {}\n", "low/y.cc": "int y();\n"}
        self.assertEqual(found(check_tree.definitions, files),
                         ["low/x.cc:1: two is not declared in the header of the same name",
                          "low/x.cc:3: Three is not declared in the header of the same name",
                          "low/y.cc: expected a header of the same name"])


class Errors(unittest.TestCase):
    def test_are_of_a_kind(self):
        files = {"low/e.h": "class Lost : public Unavailable {};\nclass Odd : public std::runtime_error {};\n"}
        self.assertEqual(found(check_tree.errors, files),
                         ["low/e.h:2: expected Odd to be Unavailable, Invalid or DeviceError (common/error.h)"])

    def test_of_all_kinds_are_caught_to_be_thrown_again_only(self):
        catch = "  try {{\n    f();\n  }} catch ({}) {{\n    {}\n  }}\n"
        files = {"low/again.cc": catch.format("...", "undo();\n    throw;"),
                 "low/later.cc": catch.format("...", "kept = std::current_exception();"),
                 "low/lost.cc": catch.format("const std::exception& error", "log(error);"),
                 "low/kind.cc": catch.format("const Unavailable&", "retry();")}
        self.assertEqual(found(check_tree.errors, files),
                         ["low/lost.cc:3: expected a kind of errors to be caught, found all of them"])


class Lists(unittest.TestCase):
    """What is named must be there, so that no list keeps what has gone."""

    def test_of_folders_name_folders(self):
        for folder in tomllib.loads(check_tree.FOLDERS.read_text()):
            self.assertTrue((check_tree.ROOT / folder).is_dir(), folder)

    def test_of_exceptions_name_files_that_need_them(self):
        files = check_tree.read_tree()
        for table, check in [("ENDS", check_tree.errors), ("DECLARED_ELSEWHERE", check_tree.definitions)]:
            for name in getattr(check_tree, table):
                some = {file: files[file] for file in (name, name.removesuffix(".cc") + ".h") if file in files}
                with unittest.mock.patch.object(check_tree, table, {}):
                    self.assertTrue(list(check(some)), name)


if __name__ == "__main__":
    unittest.main()
