#!/usr/bin/env python3
"""Tests of charts/muster and deploy/ on a real API server, which takes every object that helm makes. Needs
build/tools/{helm, kubectl, kube-apiserver, etcd} (deploy/setup/go.sh), go and build/venv.
"""

import copy
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

import yaml

from chart import CASES, CHART, MONITORING, ROOT, TOOLS, helm, hook, kinds, objects, operator, run, template


def prometheus_operator():
    """The folder of the Prometheus Operator's sources, as the Go module beside pins them."""
    module = "github.com/prometheus-operator/prometheus-operator"
    download = run("go", "mod", "download", "-json", module, cwd=pathlib.Path(__file__).parent / "prometheus-operator")
    if download.returncode != 0:
        raise AssertionError(download.stdout + download.stderr)
    return pathlib.Path(json.loads(download.stdout)["Dir"])


class OnAnApiServer(unittest.TestCase):
    """Every object, as a real API server takes it: unknown fields, wrong types and warnings are failures."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="muster-chart-")
        cls.server("start")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.addClassCleanup(cls.server, "stop")
        for name in ("muster-system", "team-a"):
            cls.kubectl("create", "namespace", name)
            cls.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted",
                        "pod-security.kubernetes.io/warn=restricted")
        monitors = prometheus_operator() / "example/prometheus-operator-crd"
        for definition in (CHART / "files/crd.yaml", *(monitors / f"monitoring.coreos.com_{name}.yaml"
                           for name in ("servicemonitors", "podmonitors", "prometheusrules"))):
            cls.kubectl("apply", "--server-side", "-f", definition)
        for kind in ("trainingjobs", "servicemonitors", "podmonitors", "prometheusrules"):
            cls.await_kind(kind)

    @classmethod
    def await_kind(cls, kind):
        """`kubectl wait` fails where a definition has no conditions yet."""
        for _ in range(600):
            try:
                return cls.kubectl("get", kind)
            except AssertionError:
                time.sleep(0.1)
        raise AssertionError(f"{kind}: expected to be served within a minute")

    @classmethod
    def server(cls, verb):
        subprocess.run([ROOT / "deploy/cluster/api-server.sh", verb, cls.folder.name], check=True)

    @classmethod
    def kubectl(cls, *arguments, **more):
        environment = {**os.environ, "KUBECONFIG": f"{cls.folder.name}/kubeconfig",
                       "KUBECACHEDIR": f"{cls.folder.name}/cache"}  # another server may have had our port
        result = run(TOOLS / "kubectl", *arguments, env=environment, **more)
        if result.returncode != 0:
            raise AssertionError(f"kubectl {arguments}: {result.stderr}")
        return result

    def check(self, manifest):
        result = self.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts",
                              "-f", "-", input=manifest)
        self.assertNotIn("Warning", result.stderr)

    def test_it_takes_what_helm_renders(self):
        for name, sets in {**CASES, "monitoring": MONITORING}.items():
            with self.subTest(name):
                self.check(template(sets))

    def test_it_takes_the_plain_manifests(self):
        self.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts",
                     "-k", ROOT / "deploy")

    def test_the_job_in_the_notes_and_that_of_helm_test_are_jobs(self):
        environment = {**os.environ, "KUBECONFIG": f"{self.folder.name}/kubeconfig"}
        install = run(TOOLS / "helm", "install", "muster", CHART, "--namespace", "muster-system", "--dry-run=server",
                      "--set", "crds.enabled=false", env=environment)
        self.assertEqual(install.returncode, 0, install.stderr)
        notes = re.search(r"<<'YAML'\n(.*?)\n  YAML", install.stdout, re.DOTALL)[1]
        self.check(re.sub("^  ", "", notes, flags=re.MULTILINE))
        tests = [item for item in objects([], "-s", "templates/tests/train.yaml") if item["kind"] == "ConfigMap"]
        self.check(tests[0]["data"]["job.yaml"])

    def test_an_installation_may_change_whether_it_elects(self):
        environment = {**os.environ, "KUBECONFIG": f"{self.folder.name}/kubeconfig"}
        command = ("muster", CHART, "--namespace", "team-a", "--set", "crds.enabled=false")
        settings = {"default": [], "alone": [part for setting in CASES["alone"] for part in ("--set", setting)]}
        self.addCleanup(run, TOOLS / "helm", "uninstall", "muster", "--namespace", "team-a", "--no-hooks", env=environment)
        for verb, case, strategy in (("install", "default", "RollingUpdate"), ("upgrade", "alone", "Recreate"),
                                     ("upgrade", "default", "RollingUpdate")):
            result = run(TOOLS / "helm", verb, *command, *settings[case], env=environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            live = self.kubectl("get", "deployment", "muster", "-n", "team-a", "-o", "jsonpath={.spec.strategy.type}")
            self.assertEqual(live.stdout, strategy)

    def test_tfjobs_outlive_whatever_becomes_of_their_definition(self):
        environment = {**os.environ, "KUBECONFIG": f"{self.folder.name}/kubeconfig"}
        release = ("muster", "--namespace", "muster-system")
        ours = yaml.safe_load((CHART / "files/tfjobs.yaml").read_text())
        others = copy.deepcopy(ours)  # a stand-in for that of the training-operator
        others["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "TFJob represents a TFJob resource."
        name = ours["metadata"]["name"]
        job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "mnist", "namespace": "team-a"},
               "spec": {"tfReplicaSpecs": {}}}
        wanted, unwanted = ["--set", "tfjob.enabled=true"], ["--set", "tfjob.enabled=false"]

        def install(settings):
            result = run(TOOLS / "helm", "upgrade", "--install", *release, CHART, "--set", "crds.enabled=false", *settings,
                         env=environment)
            self.assertEqual(result.returncode, 0, result.stderr)

        def upgrade(settings):
            install(settings)
            definition = json.loads(self.kubectl("get", "crd", name, "-o", "json").stdout)
            self.assertNotIn("deletionTimestamp", definition["metadata"])
            self.kubectl("get", "tfjob", "mnist", "-n", "team-a")
            return definition

        def description(definition):
            return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"]

        for label, take, settings in (
                ("replaced", ("replace", "-f", "-"), wanted), ("replaced", ("replace", "-f", "-"), unwanted),
                ("applied", ("apply", "--server-side", "--force-conflicts", "-f", "-"), wanted)):
            with self.subTest(label, settings=settings):
                install(wanted)
                self.await_kind("tfjobs")
                self.kubectl("apply", "-f", "-", input=json.dumps(job))
                self.assertIn("Muster", description(upgrade(wanted)))
                self.kubectl(*take, input=json.dumps(others))
                for following in (settings, unwanted, wanted):
                    self.assertNotIn("Muster", description(upgrade(following)))
                run(TOOLS / "helm", "uninstall", *release, "--no-hooks", env=environment)
                self.kubectl("get", "tfjob", "mnist", "-n", "team-a")
                self.kubectl("delete", "crd", name)

    def test_a_pod_of_the_operator_passes_the_restricted_standard(self):
        releases = kinds(hook(objects(), "pre-delete"), "Job")[0]["spec"]["template"]["spec"]
        for pod in (releases, operator(objects())):
            pod["serviceAccountName"] = "default"
            manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator", "namespace": "muster-system"},
                        "spec": pod}
            self.check(json.dumps(manifest))
        pod["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        with self.assertRaisesRegex(AssertionError, "violates PodSecurity"):
            self.check(json.dumps(manifest))


if __name__ == "__main__":
    unittest.main(verbosity=2)
