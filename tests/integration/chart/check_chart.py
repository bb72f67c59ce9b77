#!/usr/bin/env python3
"""Tests of charts/muster and deploy/: what helm makes of several values, what the schema of values refuses, and that
what is generated is current. Needs build/tools/{check-dashboards, helm, kubectl} (deploy/setup/go.sh) and build/venv.
"""

import base64
import gzip
import json
import re
import sys
import tempfile
import unittest

import yaml
from chart import CASES, CHART, MONITORING, ROOT, TOOLS, helm, hook, kinds, make_chart, objects, operator, run, template


class Values(unittest.TestCase):
    def leaves(self, value, path=""):
        """Dotted paths of values that hold no further settings of the chart."""
        described = {name for name, _ in make_chart.described_values()}
        for name, inner in value.items():
            here = f"{path}{name}"
            if here in described or not isinstance(inner, dict):
                yield here
            else:
                yield from self.leaves(inner, here + ".")

    def test_each_is_described_and_in_the_schema(self):
        values = yaml.safe_load((CHART / "values.yaml").read_text())
        schema = json.loads((CHART / "values.schema.json").read_text())
        leaves = list(self.leaves(values))
        self.assertEqual(leaves, [name for name, _ in make_chart.described_values()])
        for path in leaves:
            at = schema
            for name in path.split("."):
                self.assertIs(at.get("additionalProperties"), False, path)
                at = at["properties"][name]

    def test_the_schema_has_no_other(self):
        values = yaml.safe_load((CHART / "values.yaml").read_text())

        def compare(schema, value, path):
            for name, inner in schema.get("properties", {}).items():
                if not (path or name != "global"):
                    continue  # Helm's own
                self.assertIn(name, value, path)
                if inner.get("properties"):
                    compare(inner, value[name], f"{path}.{name}")

        compare(json.loads((CHART / "values.schema.json").read_text()), values, "")

    def test_bad_ones_are_refused_with_their_name(self):
        for setting, name in {
            "replicas=two": "replicas", "replicas=-1": "replicas", "replica=2": "replica",
            "image.digest=sha256:abc": "digest", "image.pullPolicy=Sometimes": "pullPolicy", "image.repository=": "repository",
            "trainer.image.tag=a/b": "tag", "logLevel=loud": "logLevel", "threads=0": "threads",
            "watchNamespaces={Team}": "watchNamespaces", "watchNamespace=team": "watchNamespace",
            "metrics.serviceMonitor.interval=often": "interval", "metrics.servicemonitor.enabled=true": "servicemonitor",
            "networkPolicy.egress.apiServerPorts={0}": "apiServerPorts", "crds.keep=maybe": "keep",
            "podDisruptionBudget.maxUnavailable=some": "maxUnavailable", "leaderElection.enabled=false": "replicas",
            "terminationGracePeriodSeconds=0": "terminationGracePeriodSeconds",
        }.items():
            with self.subTest(setting):
                result = helm("template", "muster", CHART, "--kube-version", make_chart.KUBERNETES, sets=[setting])
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(name, result.stderr)
                self.assertIn("values don't meet the specifications of the schema", result.stderr)


class Helm(unittest.TestCase):
    def test_it_knows_its_version(self):
        module = (ROOT / "deploy/cluster/tools/helm/go.mod").read_text()
        wanted = re.search(r"helm\.sh/helm/v3 (v\S+)", module)[1]
        self.assertEqual(helm("version", "--template", "{{.Version}}").stdout, wanted)


class Rendered(unittest.TestCase):
    def test_helm_lint_is_content(self):
        for name, sets in {**CASES, "monitoring": MONITORING}.items():
            with self.subTest(name):
                result = helm("lint", "--strict", "--kube-version", make_chart.KUBERNETES, CHART, sets=sets)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_an_older_kubernetes_is_refused(self):
        result = helm("template", "muster", CHART, "--kube-version", "1.28.9")
        self.assertIn("incompatible with Kubernetes v1.28.9", result.stderr)

    def test_rights_are_the_clusters_or_the_namespaces(self):
        everywhere = objects([], "--no-hooks")
        self.assertEqual([item["metadata"]["name"] for item in kinds(everywhere, "ClusterRoleBinding")], ["muster"])
        some = objects(CASES["namespaced"], "--no-hooks")
        self.assertEqual(kinds(some, "ClusterRole", "ClusterRoleBinding"), [])
        self.assertEqual(sorted(item["metadata"]["namespace"] for item in kinds(some, "Role")),
                         ["muster-system", "team-a"])
        whole = [rule for rule in kinds(everywhere, "ClusterRole")[0]["rules"]
                 if rule["resources"] not in (["nodes"], ["customresourcedefinitions"])]
        self.assertEqual([item["rules"] for item in kinds(some, "Role") if item["metadata"]["namespace"] != "muster-system"],
                         [whole])
        self.assertIn("--namespace=team-a", operator(some)["containers"][0]["args"])

    def test_several_namespaces_each_have_a_role(self):
        items = objects(CASES["two namespaces"])
        self.assertEqual(kinds(items, "ClusterRoleBinding"), [])
        for name in ("muster", "muster-uninstall"):
            for kind in ("Role", "RoleBinding"):
                self.assertEqual([item["metadata"]["namespace"] for item in kinds(items, kind)
                                  if item["metadata"]["name"] == name], ["team-a", "muster-system"])
        release = kinds(hook(items, "pre-delete"), "Job")[0]["spec"]["template"]["spec"]
        for pod in (operator(items), release):
            self.assertIn("--namespace=team-a,muster-system", pod["containers"][0]["args"])
        weights = [int(item["metadata"]["annotations"]["helm.sh/hook-weight"]) for item in hook(items, "pre-delete")]
        self.assertEqual(sorted(weights), list(range(8)))

    def test_replicas_are_for_the_operators_and_for_monitoring(self):
        def peers(sets):
            flag = "--replica-http-peers="
            [word] = [word for word in operator(objects(sets))["containers"][0]["args"] if word.startswith(flag)]
            return json.loads(word.removeprefix(flag))

        def of_namespace(name):
            return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}

        own = {**of_namespace("muster-system"), "podSelector": {"matchLabels": kinds(objects(), "Deployment")[0]["spec"][
            "selector"]["matchLabels"]}}
        self.assertEqual(peers([]), [own])
        self.assertEqual(peers(CASES["secured"]), [own, of_namespace("monitoring"), of_namespace("logs")])
        self.assertNotIn("--replica-http-peers", str(operator(objects(CASES["open jobs"]))))
        right = {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["get", "create", "patch"]}
        self.assertIn(right, kinds(objects(), "ClusterRole")[0]["rules"])
        self.assertNotIn(right, kinds(objects(CASES["open jobs"]), "ClusterRole")[0]["rules"])

    def test_who_would_scrape_replicas_in_vain_is_told(self):
        result = helm("template", "muster", CHART, "--kube-version", make_chart.KUBERNETES,
                      sets=["metrics.podMonitor.enabled=true"])
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("security.networkPolicy.monitoringNamespaces", result.stderr)

    def test_service_accounts_are_named_to_the_operator(self):
        self.assertIn("--allowed-service-accounts=trainer,loader", operator(objects(CASES["secured"]))["containers"][0]["args"])
        self.assertNotIn("--allowed-service-accounts", str(operator(objects())))

    def test_who_runs_tfjobs_may_and_others_may_not(self):
        def rights(sets, *kind):
            return {(resource, verb) for role in kinds(objects(sets, "--no-hooks"), *kind) for rule in role["rules"]
                    for resource in rule["resources"] for verb in rule["verbs"]}

        needed = {("trainingjobs", "create"), ("trainingjobs", "update"), ("tfjobs", "watch"), ("tfjobs/status", "update")}
        self.assertLessEqual(needed, rights(CASES["tfjobs"], "ClusterRole"))
        self.assertLessEqual(needed, rights(CASES["tfjobs of some"], "Role"))
        self.assertFalse({right for right in rights([], "ClusterRole", "Role") if "tfjobs" in right[0]})
        args = operator(objects(CASES["tfjobs"]))["containers"][0]["args"]
        self.assertLessEqual({"--tfjobs=all", "--tfjob-gang-scheduler=volcano"}, set(args))
        self.assertNotIn("--tfjobs", str(operator(objects())))

    def test_the_definition_of_tfjobs_is_there_if_it_is_wanted_and_is_kept(self):
        def policies(sets):
            return {item["metadata"]["name"]: item["metadata"]["annotations"].get("helm.sh/resource-policy")
                    for item in kinds(objects(sets), "CustomResourceDefinition")}

        self.assertEqual(policies(CASES["tfjobs"]).get("tfjobs.kubeflow.org"), "keep")
        self.assertNotIn("tfjobs.kubeflow.org", {**policies([]), **policies(CASES["tfjobs of some"])})

    def test_of_nodes_only_leases_may_be_looked_at_and_by_name(self):
        [role] = [item for item in kinds(objects([], "--no-hooks"), "Role")
                  if item["metadata"]["namespace"] == "kube-node-lease"]
        self.assertEqual(role["rules"],
                         [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]}])

    def test_rights_are_few(self):
        for rule in [rule for item in kinds(objects(), "ClusterRole", "Role") for rule in item["rules"]]:
            self.assertNotIn("*", rule["resources"] + rule["verbs"] + rule["apiGroups"])
            if "secrets" in rule["resources"]:  # it makes those of jobs, and reads none
                self.assertEqual(rule, {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]})
                continue
            if "configmaps" in rule["resources"]:
                continue  # the next test looks at these
            self.assertFalse({"pods/exec", "serviceaccounts"} & set(rule["resources"]), rule)
            if "nodes" in rule["resources"]:
                self.assertEqual((rule["resources"], rule["verbs"]), (["nodes"], ["get"]))

    def test_of_config_maps_only_the_one_with_the_sums_may_be_read(self):
        for case in CASES.values():
            found = [(item["kind"], item["metadata"]["namespace"], rule.get("resourceNames"), rule["verbs"])
                     for item in kinds(objects(case), "ClusterRole", "Role") for rule in item["rules"]
                     if "configmaps" in rule["resources"]]
            if not found:  # the rights are somebody else's
                continue
            args = operator(objects(case))["containers"][0]["args"]
            [name] = [word.removeprefix("--usage-name=") for word in args if word.startswith("--usage-name=")]
            self.assertEqual(found, [("Role", "muster-system", None, ["create"]),
                                     ("Role", "muster-system", [name], ["get", "update"])])

    def test_users_get_what_they_have_of_the_namespace(self):
        roles = {item["metadata"]["name"]: item for item in kinds(objects(), "ClusterRole")}
        view, edit = roles["muster-view"], roles["muster-edit"]
        to = "rbac.authorization.k8s.io/aggregate-to-"
        self.assertEqual([view["metadata"]["labels"].get(to + role) for role in ("view", "edit", "admin")], ["true"] * 3)
        self.assertEqual([edit["metadata"]["labels"].get(to + role) for role in ("view", "edit", "admin")],
                         [None, "true", "true"])
        self.assertEqual({verb for rule in view["rules"] for verb in rule["verbs"]}, {"get", "list", "watch"})

    def test_pods_are_released_before_anything_is_deleted(self):
        items = hook(objects(), "pre-delete")
        self.assertEqual([item["kind"] for item in items],
                         ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Job"])
        weights = [int(item["metadata"]["annotations"]["helm.sh/hook-weight"]) for item in items]
        self.assertEqual(weights, sorted(set(weights)))
        job = kinds(items, "Job")[0]["spec"]
        pod = job["template"]["spec"]
        self.assertEqual(pod["containers"][0]["args"],
                         ["release-pods", "--timeout-seconds=120", "--scale-down=muster-system/muster",
                          "--lease-namespace=muster-system", "--lease-name=muster"])
        self.assertEqual(pod["containers"][0]["image"], operator(objects())["containers"][0]["image"])
        self.assertNotIn("component: operator", json.dumps(job["template"]["metadata"]["labels"]))
        self.assertLess(job["activeDeadlineSeconds"], 300)  # Helm's own
        self.assertEqual(hook(objects(CASES["no hook"]), "pre-delete"), [])

    def test_who_releases_pods_may_do_little_else(self):
        def rights(sets):
            roles = kinds(hook(objects(sets), "pre-delete"), "ClusterRole", "Role")
            return {(item["kind"], item["metadata"].get("namespace")):
                    {(resource, verb) for rule in item["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
                    for item in roles}

        pods = {("pods", "list"), ("pods", "patch")}
        lead = {("deployments/scale", "patch"), ("leases", "create"), ("leases", "get"), ("leases", "update"),
                ("leases", "delete")}
        self.assertEqual(rights([]), {("ClusterRole", None): pods, ("Role", "muster-system"): lead})
        self.assertEqual(rights(CASES["namespaced"]), {("Role", "team-a"): pods, ("Role", "muster-system"): lead})
        self.assertEqual(rights(CASES["alone"])[("Role", "muster-system")],
                         {("deployments/scale", "patch"), ("pods", "list")})
        names = {(item["kind"], item["metadata"]["name"]) for item in hook(objects(CASES["one namespace for all"]), "pre-delete")}
        self.assertEqual(len(names), 6, names)
        borrowed = hook(objects(CASES["borrowed account"]), "pre-delete")
        self.assertEqual([item["kind"] for item in borrowed], ["Job"])
        self.assertEqual(borrowed[0]["spec"]["template"]["spec"]["serviceAccountName"], "mine")

    def test_who_releases_pods_is_told_how_operators_agree(self):
        def words(case):
            return kinds(hook(objects(CASES[case]), "pre-delete"), "Job")[0]["spec"]["template"]["spec"]["containers"][0]["args"]

        self.assertIn("--no-leader-election", words("alone"))
        self.assertFalse([word for word in words("alone") if word.startswith("--lease")])
        self.assertIn("--namespace=team-a", words("namespaced"))

    def test_a_digest_wins_over_a_tag(self):
        digest = "sha256:" + "0" * 64
        image = operator(objects(["image.repository=r/o", "image.tag=t", f"image.digest={digest}"]))["containers"][0]
        self.assertEqual(image["image"], f"r/o@{digest}")
        self.assertIn("--trainer-image=muster-trainer:" + yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"],
                      image["args"])

    def test_spread_operators_are_counted_among_themselves(self):
        spread = operator(objects(CASES["placed"] + ["topologySpreadConstraints[1].labelSelector.matchLabels.a=b"]))
        one, two = spread["topologySpreadConstraints"]
        self.assertEqual((one["topologyKey"], two["topologyKey"]), ("zone", "rack"))
        self.assertEqual(one["labelSelector"]["matchLabels"]["app.kubernetes.io/component"], "operator")
        self.assertEqual(two["labelSelector"], {"matchLabels": {"a": "b"}})

    def test_one_operator_has_no_budget_and_no_lease(self):
        alone = objects(CASES["alone"])
        self.assertEqual(kinds(alone, "PodDisruptionBudget", "NetworkPolicy"), [])
        words = operator(alone)["containers"][0]["args"]
        self.assertIn("--no-leader-election", words)
        # The namespace of a lease is also that of the sums that `muster usage` prints.
        self.assertFalse([word for word in words if re.match("--lease(?!-namespace=)", word)])

    def test_an_operator_that_shares_no_lease_is_never_there_twice(self):
        strategy = lambda sets: kinds(objects(sets), "Deployment")[0]["spec"]["strategy"]  # noqa: E731
        self.assertEqual(strategy(CASES["alone"]), {"type": "Recreate"})
        self.assertEqual(strategy([]), {"rollingUpdate": {"maxUnavailable": 1}})

    def test_the_readme_says_what_a_borrowed_account_needs_beyond_the_operators_rights(self):
        def rights(items):
            return {(item["metadata"].get("namespace"), resource, verb)
                    for item in kinds(items, "ClusterRole", "Role") if not item["metadata"]["name"].endswith(("-view", "-edit"))
                    for rule in item["rules"] for resource in rule["resources"] for verb in rule["verbs"]}

        sets = CASES["namespaced"] + CASES["alone"]
        more = rights(hook(objects(sets), "pre-delete")) - rights(objects(sets, "--no-hooks"))
        self.assertEqual(more, {("muster-system", "deployments/scale", "patch"), ("muster-system", "pods", "list")})
        text = " ".join((CHART / "README.md").read_text().split("## Values")[0].split())
        for _, resource, verb in more:
            self.assertIn(f"`{verb}` of `{resource}`", text)

    def test_the_definition_is_kept_unless_told_otherwise(self):
        policy = lambda sets: kinds(objects(sets), "CustomResourceDefinition")[0]["metadata"]["annotations"]  # noqa: E731
        self.assertEqual(policy([]).get("helm.sh/resource-policy"), "keep")
        self.assertNotIn("helm.sh/resource-policy", policy(["crds.keep=false"]))
        self.assertEqual(kinds(objects(["crds.enabled=false"]), "CustomResourceDefinition"), [])

    def test_versions_are_the_projects(self):
        version = re.search(r"project\(muster VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual((chart["version"], chart["appVersion"]), (version, version))

    def test_a_release_fits_into_its_secret(self):
        """Helm keeps chart and manifest as JSON, gzip and base64, twice, in a Secret of at most 1 MiB."""
        chart = b"".join(path.read_bytes() for path in sorted(CHART.rglob("*")) if path.is_file())
        held = base64.b64encode(base64.b64encode(gzip.compress(chart + template(MONITORING).encode())))
        self.assertLess(len(held), 512 * 1024)


class Monitoring(unittest.TestCase):
    # Of every Kubernetes controller; the rest is read from docs/reference/metrics.md.
    usual = {f"workqueue_{name}" for name in (
        "depth", "adds_total", "retries_total", "queue_duration_seconds", "work_duration_seconds",
        "unfinished_work_seconds", "longest_running_processor_seconds")} | {
        "controller_runtime_reconcile_total", "controller_runtime_reconcile_errors_total",
        "controller_runtime_reconcile_time_seconds", "rest_client_requests_total"}
    documented = set()

    @classmethod
    def setUpClass(cls):
        text = (ROOT / "docs/reference/metrics.md").read_text()
        cells = re.findall(r"^\| (`[^|]*`) \| (?:gauge|counter|histogram)", text, re.MULTILINE)
        names = {name for cell in cells for name in re.findall(r"`([a-z_]+)", cell)}
        cls.documented = cls.usual | {name if name.startswith(("muster_", "process_")) else "muster_trainer_" + name
                                      for name in names}

    def ours(self, expression):
        names = re.findall(r"\b((?:muster|process|workqueue|controller_runtime|rest_client)_[a-z_]+)", expression)
        return {re.sub("_(bucket|sum|count)$", "", name) for name in names}

    def check_query(self, expression, name):
        self.assertTrue(self.ours(expression), name)
        self.assertEqual(self.ours(expression) - self.documented, set(), name)
        self.assertNotRegex(expression, r"\b(container|kube|node)_", f"{name} needs an exporter that is not ours")
        self.assertNotRegex(expression, r"\bby \((?!namespace\b)[^)]*trainingjob", f"{name} mixes jobs of two namespaces")

    def test_alerts_ask_for_what_is_documented(self):
        rules = [rule for group in yaml.safe_load((CHART / "files/alerts.yaml").read_text())["groups"] for rule in group["rules"]]
        for rule in rules:
            self.check_query(rule["expr"], rule["alert"])
            self.assertEqual(set(rule["annotations"]), {"summary", "description", "runbook_url"}, rule["alert"])

    def test_each_alert_has_a_runbook(self):
        page, sections = "docs/operations/runbooks.md", {}
        text = (ROOT / page).read_text()
        groups = {group.split("\n")[0]: group for group in re.split("^## ", text, flags=re.MULTILINE)}
        for name, section in re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL):
            sections[name] = re.findall(r"^- \*\*(.*?)\*\*:", section, re.MULTILINE)
            look = section.split("**How to look**:")[1].split("- **")[0]
            group = {"(#the-operator)": "The operator", "(#jobs)": "Jobs"}.get("".join(re.findall(r"\(#.*?\)", look)))
            commands = groups[group].split("### ")[0] if group else look
            self.assertRegex(commands, r"```sh\n *\w", name)
        rules = [rule for group in yaml.safe_load((CHART / "files/alerts.yaml").read_text())["groups"] for rule in group["rules"]]
        self.assertEqual(list(sections), [rule["alert"] for rule in rules])
        for rule in rules:
            self.assertEqual(sections[rule["alert"]], ["Meaning", "Impact", "How to look", "What to do"], rule["alert"])
            self.assertEqual(rule["annotations"]["runbook_url"], f'{page}#{rule["alert"].lower()}')
        sets = [*MONITORING, "monitoring.prometheusRule.runbooks=https://docs/runbooks.html"]
        shown = re.findall(r"runbook_url: (\S+)", template(sets))
        self.assertEqual(shown, [f'https://docs/runbooks.html#{rule["alert"].lower()}' for rule in rules])

    def test_dashboards_ask_for_what_is_documented(self):
        boards = [json.loads(path.read_text()) for path in sorted((CHART / "files/dashboards").glob("*.json"))]
        self.assertEqual(len({board["uid"] for board in boards}), 3)
        for board in boards:
            panels = [panel for panel in board["panels"] if panel["type"] != "row"]
            self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))
            for panel in panels:
                with self.subTest(f'{board["title"]}: {panel["title"]}'):
                    self.assertTrue(panel["title"] and panel["description"])
                    self.assertEqual(panel["datasource"]["uid"], "${datasource}")
                    self.assertLessEqual(panel["gridPos"]["x"] + panel["gridPos"]["w"], 24)
                    for target in panel["targets"]:
                        self.check_query(target["expr"], panel["title"])

    def test_grafana_knows_each_field_of_a_dashboard(self):
        boards = sorted((CHART / "files/dashboards").glob("*.json"))
        result = run(TOOLS / "check-dashboards", *boards)
        self.assertEqual(result.returncode, 0, result.stderr)
        target = {"refId": "A", "datasource": {"type": "prometheus"}, "expr": "up"}
        for panel, found in (
            ({"type": "stat", "titel": "Jobs"}, "panels[0].Panel: unexpected field 'titel'"),
            ({"type": "stat", "options": {"graphmode": "none"}}, "panels[0].options.Options: unexpected field 'graphmode'"),
            ({"type": "stat", "title": 3}, "panels[0].title: json: cannot unmarshal number"),
            ({"type": "graph"}, 'panels[0].type: expected a kind that main.go registers, found "graph"'),
            ({"type": "stat", "targets": [{**target, "legend": "x"}]}, "panels[0].targets[0].Dataquery: unexpected field 'legend'"),
            ({"type": "stat", "targets": [{"expr": "up"}]}, "panels[0].targets[0].datasource.type: expected prometheus"),
            ({"title": "Jobs"}, "panels[0]: discriminator field 'type' not found"),
        ):
            with self.subTest(panel), tempfile.NamedTemporaryFile("w", suffix=".json") as board:
                json.dump({**json.loads(boards[0].read_text()), "panels": [panel]}, board)
                board.flush()
                result = run(TOOLS / "check-dashboards", board.name)
                self.assertEqual(result.returncode, 1)
                self.assertIn(f"{board.name}: ", result.stderr)
                self.assertIn(found, result.stderr)

    def test_no_panel_lies_on_another(self):
        for path in (CHART / "files/dashboards").glob("*.json"):
            taken = set()
            for panel in json.loads(path.read_text())["panels"]:
                box = panel["gridPos"]
                cells = {(x, y) for x in range(box["x"], box["x"] + box["w"]) for y in range(box["y"], box["y"] + box["h"])}
                self.assertFalse(cells & taken, f'{path.name}: {panel["title"]}')
                taken |= cells


class Generated(unittest.TestCase):
    def test_what_follows_from_the_chart_is_current(self):
        result = run(sys.executable, ROOT / "tests/python/make_chart.py", "--check")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_deploy_is_the_chart(self):
        def named(items):
            # Labels of Helm and the policy are Helm's alone.
            items = [item for item in items if item]
            for item in items:
                item["metadata"].pop("annotations", None)
                if item["kind"] == "CustomResourceDefinition":
                    item["metadata"].pop("labels", None)
            return {(item["kind"], item["metadata"]["name"]): item for item in items}

        result = run(TOOLS / "kubectl", "kustomize", ROOT / "deploy")
        self.assertEqual(result.returncode, 0, result.stderr)
        plain = named(yaml.safe_load_all(result.stdout))
        self.assertEqual(plain.pop(("Namespace", "muster-system"))["metadata"]["name"], "muster-system")
        self.assertEqual(plain, named(yaml.safe_load_all(make_chart.OF_HELM.sub("", template([], "--no-hooks")))))


if __name__ == "__main__":
    unittest.main(verbosity=2)
