"""Rows of collectives: two replicas of a job with the strategy collective, a chief and a worker with a
thread each, against two processes of the peer."""

import dataclasses
import json
import pathlib
import tempfile

import disturbance
import muster

WIDE = {"layers": [{"dense": {"name": "hidden_1", "units": 4096, "activation": "relu"}},
                   {"dense": {"name": "hidden_2", "units": 4096, "activation": "relu"}},
                   {"dense": {"name": "logits", "units": 10}}]}
SAMPLES = 12800
COLLECTIVE = ["spec.strategy=collective", "spec.replicaSpecs.ps.replicas=0"]
PAIR = [*COLLECTIVE, "spec.replicaSpecs.evaluator.replicas=0"]
LARGE = [f"spec.training.model={json.dumps(WIDE)}", "spec.training.epochs=1",
         f"spec.training.data.train.take={SAMPLES}",  # 200 steps
         "spec.training.data.validation.take=64", "spec.training.data.test.take=64"]


def generations(folder):
    """Of how many members each of a job's was, in order."""
    log = pathlib.Path(folder) / "logs/chief-0.log"
    if not log.exists():
        return []
    return [int(line.split(" members opened")[0].split()[-1]) for line in log.read_text().splitlines()
            if " members opened" in line]


def _seconds_per_step(sets, environment):
    return muster.run_example("mnist-mlp", *PAIR, *sets, **environment)["secondsPerBatch"]


def small(*sets, **environment):
    """Steps a second of mnist-mlp."""
    return lambda: 1 / _seconds_per_step(["spec.training.epochs=16", *sets], environment)


def large():
    """Steps a second of 784-4096-4096-10."""
    return 1 / _seconds_per_step(LARGE, {})


def exposed():
    """The share of a step of 784-4096-4096-10 that communication adds to it: the step as a job makes
    it, less the same with communication disabled. Below zero where that was the slower one: then the
    machine has changed its mind between the two."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        muster.call(muster.example("mnist-mlp", folder, *PAIR, *LARGE))
        whole = json.loads((pathlib.Path(folder) / "summary.json").read_text())["secondsPerBatch"]
        training = pathlib.Path(folder) / "replicas/chief-0/training.yaml"
        apart = _bench("apart", training, 150, cwd=muster.ROOT / "examples")["secondsPerStep"]
    print(f"    {1e3 * whole:.2f} ms a step, {1e3 * apart:.2f} without communication", flush=True)
    return 1 - apart / whole


def _require_without(folder, workers):
    if generations(folder).count(workers) < workers:
        raise muster.Failed("the group waited for a worker's replacement")


def recovery(samples):
    """Seconds from `kill -9` of a worker to the group's next step, where the group has to wait for
    it."""
    return disturbance.recovery("worker", samples, *COLLECTIVE)


def elastic_recovery(samples):
    """The same where the group goes on without it, and takes its replacement in later: the longer
    of the two gaps."""
    return disturbance.recovery("worker", samples, *COLLECTIVE,
                                "spec.elastic={minReplicas: 1, maxReplicas: 2}", check=_require_without)


def _bench(*arguments, **options):
    return json.loads(muster.call([muster.BIN / "bench_collective", *arguments], **options).splitlines()[-1])


@dataclasses.dataclass
class AllReduce:
    """GB/s that bench_collective says of one of its kinds of all-reduce."""
    name: str
    kind: str
    megabytes: int

    def measure(self):
        return _bench(self.kind, self.megabytes * 1_000_000)["gigabytesPerSecond"]
