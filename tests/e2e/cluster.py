"""The development cluster (deploy/cluster/cluster.sh) as a test sees it."""

import json
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "build/tools"
SCRIPT = ROOT / "deploy/cluster/cluster.sh"


class Failed(AssertionError):
    """A command that ended otherwise than with 0; the message has what it wrote."""


def run(command, timeout=120, **options):
    """The command's standard output. Raises Failed, or TimeoutExpired after so many seconds."""
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=timeout, **options)
    if result.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def eventually(check, within=60, every=0.2):
    """What `check` returns once that is true; while it is not, or it raises AssertionError, again."""
    until = time.monotonic() + within
    while True:
        try:
            result = check()
            if result or time.monotonic() > until:
                assert result, f"still {result!r} after {within} s"
                return result
        except AssertionError:
            if time.monotonic() > until:
                raise
        time.sleep(every)


class Cluster:
    """A cluster of its own name, beside one that a developer has up. Not up until `up`."""

    def __init__(self, name):
        self.environment = {**os.environ, "MUSTER_CLUSTER": name}
        self.kubeconfig = ROOT / "build/cluster" / name / "pki/admin.kubeconfig"

    def __call__(self, action, *arguments, timeout=300, **options):
        """cluster.sh ACTION ARGUMENTS; see there."""
        return run([SCRIPT, action, *arguments], timeout=timeout, env=self.environment, **options)

    def kubectl(self, *arguments, namespace="default", **options):
        command = [TOOLS / "kubectl", "--kubeconfig", self.kubeconfig, "--namespace", namespace]
        return run([*command, *arguments], **options)

    def helm(self, *arguments, namespace="default", **options):
        command = [TOOLS / "helm", "--kubeconfig", self.kubeconfig, "--namespace", namespace]
        return run([*command, *arguments], **options)

    def load_images(self):
        """Muster's own, made of build/release/bin or of $BINARIES, on every node."""
        run([ROOT / "docker/build"], timeout=600)
        self("load", *sorted((ROOT / "build/images").glob("muster-*.tar")))

    def install_chart(self, namespace):
        self.helm("install", "muster", ROOT / "charts/muster", "--create-namespace", "--wait", "--timeout", "120s",
                  "--set", "tfjob.enabled=true,tfjob.take=all", namespace=namespace, timeout=180)

    def set_values(self, namespace, values):
        """Changes values of the chart that is installed."""
        self.helm("upgrade", "muster", ROOT / "charts/muster", "--reuse-values", "--wait", "--timeout", "120s",
                  "--set", values, namespace=namespace, timeout=180)

    def apply(self, manifest, **options):
        """Applies an object or a list of them (dict), or YAML (str)."""
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        return self.kubectl("apply", "-f", "-", input=text, **options)

    def get(self, *arguments, **options):
        """An object, or the items of a list."""
        answer = json.loads(self.kubectl("get", *arguments, "-o", "json", **options))
        return answer["items"] if answer["kind"] == "List" else answer


def condition(thing, kind):
    """The status of an object's condition: "True", "False" or "Unknown"; None if it has none."""
    conditions = thing.get("status", {}).get("conditions", [])
    return next((entry["status"] for entry in conditions if entry["type"] == kind), None)
