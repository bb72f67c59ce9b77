"""One set of cases for all places where a job runs: processes of this machine, hosts by OpenSSH, Kubernetes. What a
job comes to, and why, is the same in each."""

import dataclasses

import jobs
import pytest
from cluster import eventually
from rack import Rack
from sides import Hosts, Kubernetes, Processes, outcome_of

FOREVER = "exec sleep 3600"
ONCE = '[ "$MUSTER_ATTEMPT" = 0 ] || exit 0; '  # what follows happens to the first attempt alone


@dataclasses.dataclass
class Case:
    outcome: tuple            # see outcome_of
    commands: dict            # by role: what each of its replicas does, in the shell
    replicas: int = 1         # of each role but ps, chief, master
    spec: dict = dataclasses.field(default_factory=dict)
    of_roles: dict = dataclasses.field(default_factory=dict)  # more of each role's entry
    paused: bool = False      # it is suspended while it runs, and goes on later


def rule(action, **match):
    return {"failurePolicy": {"rules": [{"action": action, **match}]}}


ALL_WORKERS = {"successPolicy": {"decidedBy": "allWorkers"}}
MY_TASK = r'''case "$TF_CONFIG" in *"\"type\":\"$MUSTER_ROLE\",\"index\":$MUSTER_INDEX}"*) exit 0 ;; *) exit 3 ;; esac'''
CASES = {
    "chief-decides": Case(("Succeeded", "ChiefSucceeded", 0),
                          {"ps": FOREVER, "chief": "exit 0", "worker": FOREVER}),
    "master-decides": Case(("Succeeded", "ChiefSucceeded", 0), {"master": "exit 0", "worker": FOREVER}),
    "worker-zero-decides": Case(("Succeeded", "WorkerZeroSucceeded", 0),
                                {"worker": '[ "$MUSTER_INDEX" = 0 ] || exec sleep 3600'}, 3,
                                {"successPolicy": {"decidedBy": "workerZero"}}),
    "all-workers-decide": Case(("Succeeded", "AllWorkersSucceeded", 0), {"worker": "exit 0"}, 3, ALL_WORKERS),
    "a-failure-is-restarted": Case(("Succeeded", "AllWorkersSucceeded", 1), {"worker": ONCE + "exit 7"}),
    # In a template $$ is one $; the first process of a container cannot kill itself.
    "a-kill-is-restarted": Case(("Succeeded", "AllWorkersSucceeded", 1), {"worker": ONCE + "sh -c 'kill -9 $$$$'; exit $?"}),
    "restarts-are-used-up": Case(("Failed", "BackoffLimitExceeded", 1), {"worker": "exit 7"},
                                 spec={"runPolicy": {"backoffLimit": 1}}),
    "never-restarted": Case(("Failed", "RestartPolicyNever", 0), {"worker": "exit 7"},
                            of_roles={"restartPolicy": "Never"}),
    "a-rule-fails-the-job": Case(("Failed", "FailureRule", 0), {"chief": FOREVER, "worker": "exit 3"},
                                 spec=rule("FailJob", onExitCodes=[3])),
    "a-rule-counts-no-failure": Case(("Succeeded", "AllWorkersSucceeded", 0), {"worker": ONCE + "exit 5"},
                                     spec=rule("Ignore", onExitCodes=[5])),
    "a-rule-restarts-the-job": Case(("Succeeded", "AllWorkersSucceeded", 1),
                                    {"worker": ONCE + '[ "$MUSTER_INDEX" = 1 ] || exec sleep 3600; exit 9'}, 2,
                                    rule("RestartJob", onExitCodes=[9]) | ALL_WORKERS),
    "too-late": Case(("Failed", "DeadlineExceeded", 0), {"worker": FOREVER},
                     spec={"runPolicy": {"activeDeadlineSeconds": 2}}),
    "an-evaluator-fails-no-job": Case(("Succeeded", "ChiefSucceeded", 0), {"chief": "sleep 2", "evaluator": "exit 3"},
                                      spec={"runPolicy": {"backoffLimit": 0}}),
    "each-knows-its-task": Case(("Succeeded", "AllWorkersSucceeded", 0), {"ps": FOREVER, "worker": MY_TASK}, 2,
                                ALL_WORKERS),
    "paused": Case(("Succeeded", "AllWorkersSucceeded", 0), {"worker": ONCE + FOREVER}, paused=True),
}


def manifest(name, case):
    job = jobs.shell(name, **case.spec)
    job["spec"]["replicaSpecs"] = {}
    for role, command in case.commands.items():
        [spec] = jobs.shell(name, command)["spec"]["replicaSpecs"].values()
        replicas = 1 if role in ("ps", "chief", "master") else case.replicas
        job["spec"]["replicaSpecs"][role] = {**spec, "replicas": replicas, **case.of_roles}
    return job


@pytest.fixture(scope="module")
def sides(cluster, muster, namespace_of_module, tmp_path_factory):
    """All cases have begun on all sides."""
    folder = tmp_path_factory.mktemp("sides")
    # So many jobs begin at once that these refuse some of their connections.
    rack = Rack("sides", folder, ["host-a", "host-b"], slots=100, startups="2:50:6")
    found = {}
    for name in ("processes", "hosts"):
        (folder / name).mkdir()
    try:
        rack.up()
        found |= {"processes": Processes(folder / "processes"), "hosts": Hosts(folder / "hosts", rack),
                  "kubernetes": Kubernetes(cluster, namespace_of_module)}
        for side in found.values():
            for name, case in CASES.items():
                side.begin(name, manifest(name, case), case.paused)
        yield found
    finally:
        if found:
            found["processes"].end()
        rack.end_all()
        rack.down()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("side", ["processes", "hosts", "kubernetes"])
def test_a_job_comes_to_the_same_on_all_sides(sides, side, name):
    assert eventually(lambda: outcome_of(sides[side].status(name)), within=120) == CASES[name].outcome
