#!/usr/bin/env python3
"""Runs the blocks of the pages as the comments above them say (tests/python/page_blocks.py): each page in a folder
that has the repository's examples, and what README's `make run` leaves in `runs`. Of blocks that are not run, muster and
helm must know the options.

    run_pages.py build/release/bin [-k PAGE]
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/python"))
import page_blocks  # noqa: E402

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
KUBERNETES = "1.34"
USAGE = 64  # the exit code of muster for a wrong command line
STOPPED = (0, 143, -signal.SIGTERM)


class Pages(unittest.TestCase):
    def setUp(self):
        self.folder.mkdir()
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ["charts", "deploy", "docs", "examples"]:
            (self.folder / name).symlink_to(ROOT / name)
        (self.folder / "empty").mkdir()
        shutil.copytree(self.trained, self.folder / "runs")
        self.output = ""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder, cls.trained = (pathlib.Path(temporary.name).resolve() / name for name in ["page", "trained"])
        paths = [BIN, ROOT / "build/tools", pathlib.Path(sys.executable).parent, os.environ["PATH"]]
        cls.environment = {**os.environ, "PATH": ":".join(map(str, paths)), "KUBECONFIG": "/nonexistent"}
        cls.folder.mkdir()
        (cls.folder / "examples").symlink_to(ROOT / "examples")
        subprocess.run(["muster", "run", "examples/mnist-mlp.yaml"], cwd=cls.folder, env=cls.environment, timeout=300,
                       stdout=subprocess.DEVNULL, check=True)
        (cls.folder / "runs").rename(cls.trained)
        shutil.rmtree(cls.folder)

    def bash(self, script, folder=None):
        done = subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=folder or self.folder, text=True,
                              timeout=120, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=self.environment)
        return done.returncode, done.stdout

    def in_background(self, script):
        process = subprocess.Popen(["bash", "-ec", f"exec {script}"], cwd=self.folder, env=self.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: self.assertIn(process.wait(60), STOPPED, script))
        self.addCleanup(process.terminate)

    def check(self, block):
        form = block.form
        if block.before or form["run"]:
            script = block.before + "\n" + (block.text if form["run"] else "")
            if form["background"]:
                self.in_background(script)
                return
            code, self.output = self.bash(script)
            self.assertEqual(code, int(form["code"] or 0), self.output)
        if form["run"]:
            return
        if form["output"]:
            self.assertRegex(" ".join(self.output.split()), page_blocks.expression(block.text))
        elif form["manifest"]:
            for text in page_blocks.alternatives(block.text):
                self.check_manifest(yaml.safe_load(text), form)
        else:
            for command in block.commands:
                self.check_options(command)

    def check_manifest(self, part, form):
        base = yaml.safe_load((ROOT / form["manifest"]).read_text())
        manifest = page_blocks.manifest_with(part, base, form["at"], form["without"])
        # As JSON, which quotes each text: PyYAML takes y for a text, kubectl for a truth.
        (self.folder / "part.yaml").write_text(json.dumps(manifest, default=str))
        code, output = self.bash("muster validate part.yaml")
        self.assertEqual(code, 0, output)

    def check_options(self, command):
        """muster finds nothing in an empty folder, but knows its options; helm renders what it would install."""
        if command.startswith("muster"):
            code, output = self.bash(command, self.folder / "empty")
            self.assertNotEqual(code, USAGE, f"{command}\n{output}")
        elif command.split()[1] in ("install", "upgrade"):
            options = re.sub(r" --(install|create-namespace|reset-then-reuse-values)\b", "", command)
            render = re.sub("^helm (install|upgrade)", f"helm template --kube-version {KUBERNETES}", options)
            code, output = self.bash(render)
            self.assertEqual(code, 0, f"{command}\n{output}")


def test_of(page):
    def test(self):
        for block in page_blocks.blocks((ROOT / page).read_text()):
            if block.form:
                with self.subTest(f"{page}:{block.line}"):
                    self.check(block)
    return test


for path in [ROOT / "README.md", ROOT / "charts/muster/README.md", *ROOT.glob("docs/**/*.md")]:
    name = str(path.relative_to(ROOT))
    setattr(Pages, f"test_{name}", test_of(name))

if __name__ == "__main__":
    unittest.main()
