#!/usr/bin/env python3
"""Tests that inputs of users that once went wrong come out right: tests/fixtures/cases, by the real programs.

    check_cases.py build/release/bin
"""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

CASES = pathlib.Path(__file__).resolve().parents[2] / "fixtures/cases"
BIN = pathlib.Path(sys.argv.pop(1)).resolve()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def muster(self, *arguments, **options):
        done = subprocess.run([BIN / "muster", *map(str, arguments)], cwd=self.folder, text=True, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        return done.returncode, done.stdout

    def run_case(self, name, code=0):
        """What `muster run` prints."""
        found, text = self.muster("run", CASES / f"{name}.yaml", "--directory", pathlib.Path(name).name)
        self.assertEqual(found, code, text)
        return text


class Images(Case):
    def test_boxes_fit_the_picture_that_they_were_drawn_on(self):
        for name in ["turned-tfrecord", "coco-turned"]:
            with self.subTest(name):
                self.run_case(f"images/{name}")

    def test_label_maps(self):
        text = self.run_case("images/label-map-from-0", code=65)
        self.assertRegex(text, r"label_map-from-0\.pbtxt: line 1, column 8: expected an id of at least 1")
        self.run_case("images/label-map-bom")

    def test_annotations_of_a_plain_meaning_are_read(self):
        for name in ["coco-bom", "coco-text-numbers"]:
            with self.subTest(name):
                self.run_case(f"images/{name}")

    def test_files_that_are_left_out_are_counted(self):
        text = self.run_case("images/half-webp")
        self.assertRegex(text, r"3 .*\.webp")

    def test_lists_are_csv(self):
        self.run_case("images/quoted-csv")

    def test_a_picture_of_which_every_pixel_is_there_is_used(self):
        code, text = self.muster("run", CASES / "images/quoted-csv.yaml", "--directory", "model")
        self.assertEqual(code, 0, text)
        for picture in ["plain", "extraneous"]:
            code, text = self.muster("predict", "--checkpoint", "model", CASES / f"images/{picture}.jpg")
            self.assertEqual(code, 0, text)

    def test_a_metric_that_the_data_cannot_give_decides_nothing(self):
        text = self.run_case("images/coco-all-crowd", code=65)
        self.assertIn("object", text)
        text = self.run_case("images/validation-without-objects", code=65)
        self.assertIn("earlyStopping.metric", text)

    def test_weights_that_have_not_settled_are_told(self):
        for name in ["early-stop-normalization", "moving-average-short"]:
            with self.subTest(name):
                text = self.run_case(f"images/{name}")
                self.assertRegex(text, r"warning: .*still \d+ %")


class Operator(Case):
    def test_numbers_are_kubectls(self):
        self.run_case("operator/octal")
        job = (self.folder / "octal/job.yaml").read_text()
        self.assertEqual([job.count(f"ode: {mode}\n") for mode in (256, 420, 384)], [1, 1, 1], job)

    def test_replicas_that_fail_together_use_up_one_restart(self):
        program = (CASES / "operator/together.py").read_text()
        (self.folder / "together.py").write_text(program)
        (self.folder / "together.yaml").write_text((CASES / "operator/together.yaml").read_text())
        code, text = self.muster("run", "together.yaml", "--directory", "run")
        self.assertEqual(code, 0, text)
        state = json.loads((self.folder / "run/job.json").read_text())
        self.assertEqual(state["status"]["restarts"], 1, text)

    def test_a_failed_job_ends_with_the_code_of_its_replica(self):
        for code in (126, 127, 128, 255):
            with self.subTest(code):
                job = (CASES / "operator/octal.yaml").read_text().replace("'true'", f"'exit {code}'")
                (self.folder / "job.yaml").write_text(job)
                found, text = self.muster("run", "job.yaml", "--directory", str(code),
                                          "--set", "spec.runPolicy.backoffLimit=0")
                self.assertEqual(found, code, text)

    def test_a_tensor_that_nobody_wants_is_not_judged(self):
        text = self.run_case("operator/initialize-i64")
        self.assertIn("step", text)

    def test_a_descriptor_that_is_closed_takes_no_file(self):
        job = self.folder / "job.yaml"
        job.write_text((CASES / "operator/octal.yaml").read_text().replace("'true'", "'sleep 30'"))
        run = subprocess.Popen(["sh", "-c", f'exec "{BIN}/muster" run job.yaml --directory closed >&-'],
                               cwd=self.folder)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        log = self.folder / "closed/logs/worker-0.log"
        while run.poll() is None and not log.exists():
            time.sleep(0.05)
        self.assertNotIn("runs in", (self.folder / "closed/lock").read_text())
        self.assertEqual(self.muster("stop", "closed")[0], 0)
        self.assertEqual(run.wait(60), 128 + signal.SIGTERM)


class Cluster(Case):
    def refused(self, name):
        code, text = self.muster("submit", CASES / f"cluster/{name}.yaml", "--kubeconfig", "/nowhere")
        self.assertEqual(code, 65, text)
        return text

    def test_a_volume_that_each_pod_has_for_itself_is_refused(self):
        self.assertIn("a volume that all replicas share, found one that each pod has", self.refused("emptydir"))

    def test_a_container_beside_the_trainer_does_not_replace_it(self):
        self.assertIn("containers[0].name: expected trainer", self.refused("side-trainer"))

    def test_a_tfjob_with_dynamic_workers_is_valid(self):
        self.assertEqual(self.muster("validate", CASES / "cluster/tfjob-dyn.yaml")[0], 0)


if __name__ == "__main__":
    unittest.main()
