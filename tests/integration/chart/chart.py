"""What the tests of charts/muster share: cases of values, and what helm makes of them."""

import pathlib
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHART = ROOT / "charts/muster"
TOOLS = ROOT / "build/tools"
sys.path.insert(0, str(ROOT / "tests/python"))
import make_chart  # noqa: E402

MONITORING = ["metrics.serviceMonitor.enabled=true", "metrics.podMonitor.enabled=true",
              "monitoring.prometheusRule.enabled=true", "monitoring.grafanaDashboard.create=true",
              "security.networkPolicy.monitoringNamespaces={monitoring}"]
CASES = {
    "defaults": [],
    "namespaced": ["watchNamespaces={team-a}", "rbac.aggregateRoles=false"],
    "alone": ["replicas=1", "leaderElection.enabled=false", "networkPolicy.enabled=false"],
    "strict network": ["networkPolicy.egress.enabled=true", "networkPolicy.egress.apiServerPorts={8443}",
                       "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=monitoring"],
    "dashboards": ["monitoring.grafanaDashboard.create=true", "monitoring.grafanaDashboard.annotations.folder=Muster"],
    "placed": ["priorityClassName=system-cluster-critical", "tolerations[0].operator=Exists",
               "topologySpreadConstraints[0].maxSkew=1", "topologySpreadConstraints[0].topologyKey=zone",
               "topologySpreadConstraints[0].whenUnsatisfiable=ScheduleAnyway",
               "topologySpreadConstraints[1].maxSkew=1", "topologySpreadConstraints[1].topologyKey=rack",
               "topologySpreadConstraints[1].whenUnsatisfiable=ScheduleAnyway", "podLabels.a=b",
               "podAnnotations.a=b", "commonLabels.c=d", "imagePullSecrets[0].name=pull", "clusterDomain=cluster.local",
               "podDisruptionBudget.maxUnavailable=50%", "extraArgs={--version}"],
    "borrowed account": ["serviceAccount.create=false", "serviceAccount.name=mine", "rbac.create=false"],
    "one namespace for all": ["watchNamespaces={muster-system}"],
    "two namespaces": ["watchNamespaces={team-a,muster-system}"],
    "secured": ["security.networkPolicy.monitoringNamespaces={monitoring,logs}",
                "security.allowedServiceAccounts={trainer,loader}"],
    "open jobs": ["security.networkPolicy.enabled=false"],
    "tfjobs": ["tfjob.enabled=true", "tfjob.take=all", "tfjob.gangScheduler=volcano"],
    "tfjobs of some": ["tfjob.enabled=true", "tfjob.crd=false", "watchNamespaces={team-a}"],
    "no hook": ["uninstall.releasePods=false"],
}


def run(*command, **more):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)


def helm(*arguments, sets=()):
    settings = [part for setting in sets for part in ("--set", setting)]
    return run(TOOLS / "helm", *arguments, *settings)


def template(sets=(), *more):
    result = helm("template", "muster", CHART, "--namespace", make_chart.NAMESPACE, "--kube-version",
                  make_chart.KUBERNETES, *more, sets=sets)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return result.stdout


def objects(sets=(), *more):
    return [item for item in yaml.safe_load_all(template(sets, *more)) if item]


def kinds(items, *wanted):
    return [item for item in items if item["kind"] in wanted]


def hook(items, when):
    return [item for item in items if item["metadata"].get("annotations", {}).get("helm.sh/hook") == when]


def operator(items):
    return kinds(items, "Deployment")[0]["spec"]["template"]["spec"]
