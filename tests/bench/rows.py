"""The rows: what is measured on our side, which peers could be the fastest, and what must be reached."""

import dataclasses
import functools
import json
import pathlib
import sys
from collections.abc import Callable

import build_time
import collective
import detector
import disturbance
import muster
import on_cluster
import operators
import scale
import scaling
import tables
from collective import AllReduce, WIDE
from operator_large import PS, WORKERS, Large
from operator_load import Burst, fairness, leader_loss
from operator_many import FINISHED, LARGE, Many, large
from operator_scale import SameCalls, Scale
from operator_scrape import JOBS, REPLICAS, Scrape
from slow_link import SlowLink

PEERS = pathlib.Path(__file__).resolve().parent / "peers"


@dataclasses.dataclass
class Peer:
    name: str
    command: list
    field: str = "stepsPerSecond"

    def measure(self):
        answer = muster.call([sys.executable, PEERS / self.command[0], *self.command[1:]])
        return json.loads(answer.splitlines()[-1])[self.field]


@dataclasses.dataclass
class Limit:
    """What a row may come to at most; in place of a peer, so that the ratio says how much of it is
    used."""
    name: str
    value: float

    def measure(self):
        return self.value


@dataclasses.dataclass
class Row:
    name: str
    what: str
    unit: str
    required: str                # what issue and README promise, in words
    ours: Callable[[], float]
    peers: list                  # the fastest of them is measured against
    beside: list = dataclasses.field(default_factory=list)  # shown, not compared
    pairs: int = 5               # that take turns; fewer where no peer's speed is compared


def torch(mode, threads, data):
    name = {"eager": "PyTorch eager", "compile": "PyTorch compile"}[mode]
    return Peer(f"{name}, {threads} threads" if threads > 1 else f"{name}, 1 thread",
                ["torch_mlp.py", "--mode", mode, "--threads", threads, "--input", data])


def torches(data):
    return [torch(mode, threads, data) for mode in ("eager", "compile") for threads in (1, 2)]


def torch_cnn(mode, layout):
    return Peer(f"PyTorch {mode}, {layout}",
                ["torch_cnn.py", "--mode", mode, "--layout", layout, "--threads", 2])


def torch_images(mode="eager", *arguments, field="imagesPerSecond"):
    name = " ".join(["PyTorch", mode, *(argument.strip("-") for argument in arguments)])
    return Peer(name, ["torch_ssd.py", "--mode", mode, *arguments], field)


@dataclasses.dataclass
class Compute:
    """What bench_compute says of a model: a step on two threads, of batches in memory."""
    model: str
    field: str = "imagesPerSecond"
    options: tuple = ()
    name: str = "Muster"

    def measure(self):
        answer = muster.call([muster.BIN / "bench_compute", "--json", "--threads=2", *self.options, self.model])
        return json.loads(answer.splitlines()[-1])[self.field]


INPUT = muster.ROOT / "build/bench/input"


def decoded():
    """Images a second of one thread of ours, of the images that the peer has made."""
    answer = muster.call([muster.BIN / "bench_input", INPUT / "train-*-of-*.tfrecord", INPUT / "label_map.pbtxt"])
    return json.loads(answer.splitlines()[-1])["imagesPerSecond"]


def adam(model, train, steps):
    return functools.partial(muster.steps_per_second, {
        "model": {"name": model}, "data": {"train": train}, "batchSize": 32, "steps": steps,
        "optimizer": {"name": "adam", "learningRate": 0.001}, "checkpoint": {"everySeconds": None},
        "seed": 1})


def sigmoid(steps):
    return functools.partial(muster.steps_per_second, {
        "model": {"name": "mnist-sigmoid"}, "data": {"train": muster.idx("train", take=50000)},
        "batchSize": 100, "steps": steps, "optimizer": {"name": "sgd", "learningRate": 0.001},
        "checkpoint": {"everySeconds": None}, "seed": 1})


def accuracy(*sets):
    return lambda: muster.run_example("mnist-mlp", *sets)["testAccuracy"]


def parameter_servers(policy, *sets, **environment):
    """Global steps a second of 1 ps + chief + worker, the chief being the second worker of the peer."""
    def measure():
        summary = muster.run_example("mnist-mlp", f"spec.training.synchronization.policy={policy}",
                                     "spec.training.epochs=4", "spec.replicaSpecs.evaluator.replicas=0",
                                     *sets, **environment)
        return summary["examplesPerSecond"] / (32 * (2 if policy == "sync" else 1))
    return measure


@dataclasses.dataclass
class InPlaintext:
    """What a row comes to where replicas know each other, against where everybody is believed."""
    measure: Callable[[], float]
    name: str = "in plaintext"


PLAINTEXT = "spec.security.transport=none"
GRPC = {"MUSTER_SHARED_MEMORY": "0"}


@dataclasses.dataclass
class Exchange:
    """GB/s that bench_ps says of one of its modes."""
    name: str
    mode: str

    def measure(self):
        answer = muster.call([muster.BIN / "bench_ps", self.mode])
        return json.loads(answer.splitlines()[-1])["gigabytesPerSecond"]


def both(figure):
    """Muster's measure and the peer's, of 250 jobs at once."""
    return Burst(operators.MUSTER, figure).measure, [Burst(operators.PEER, figure)]


DENSE = {"syntheticClasses": {"samples": 50000, "shape": [784], "classes": 10, "density": 1}}
KERAS = Peer("Keras fit", ["keras_mlp.py"])
KERAS_JIT = Peer("Keras fit, jit_compile", ["keras_mlp.py", "--jit"])
KERAS_ACCURACY = Peer("Keras", ["keras_mlp.py"], "testAccuracy")
ALONE = ["spec.replicaSpecs.ps.replicas=0", "spec.replicaSpecs.worker.replicas=0",
         "spec.replicaSpecs.evaluator.replicas=0"]

SLOW_LINK = SlowLink()
SSD_BFLOAT16 = Compute("ssd-mobilenet-v1", options=("--bfloat16",))
TF_ASYNC = Peer("TF 1 ps, async", ["tf1_ps.py", "--mode", "async"])
TF_SYNC = Peer("TF 1 ps, SyncReplicasOptimizer", ["tf1_ps.py", "--mode", "sync"])
DDP_FORMS = {"PyTorch DDP": [], "PyTorch DDP, bucket views": ["--views"]}


def ddp(*arguments):
    return [Peer(name, ["ddp_mlp.py", *form, *arguments]) for name, form in DDP_FORMS.items()]


def gloo(megabytes):
    """Who adds up so much by Gloo over loopback."""
    return [AllReduce("Gloo, ring", "gloo-ring", megabytes),
            AllReduce("Gloo, halving-doubling", "gloo-halving-doubling", megabytes),
            Peer("PyTorch's Gloo", ["torch_all_reduce.py", "--bytes", megabytes * 1_000_000],
                 "gigabytesPerSecond")]


def all_reduce(megabytes):
    """Two rows: against Gloo, and against what memory allows."""
    ours = AllReduce("", "shm", megabytes).measure
    return [
        Row(f"all-reduce-{megabytes}", f"{megabytes} MB of 2 processes of one host", "GB/s", "3 x Gloo",
            ours, gloo(megabytes), [AllReduce("ours by TCP", "tcp", megabytes)]),
        Row(f"all-reduce-{megabytes}-memcpy", "the same against memory", "GB/s",
            "0.8 x memcpy of what must be moved", ours, [AllReduce("memcpy", "memcpy", megabytes)],
            [AllReduce("with the log that an update keeps", "shm-logged", megabytes)])]


def tables_rows():
    inputs = [
        Row(f"criteo-input-{ending}", f"500,000 rows of Criteo's shape, {ending}, to batches: 13 logarithms, 26 "
            "categories as 11 inputs each; one thread", "samples per CPU s", "0.8 of pyarrow",
            tables.Input(ending).measure, [tables.Input(ending, "pyarrow")],
            [tables.Input(ending, by) for by in beside])
        for ending, beside in (("csv", ["pandas", "tensorflow"]), ("parquet", ["pandas"]))]
    suggested = [
        Row(f"table-suggest-{table}", f"what `muster data suggest` writes for {table}, five-fold, five times", measure,
            "no worse by more than 0.01", tables.Suggested(table, True).measure, [tables.Suggested(table, False)],
            pairs=1)
        for table, measure in (("breast_cancer", "AUC"), ("wine", "accuracy"), ("diabetes", "R2"))]
    return [
        *inputs,
        Row("table-step", "30 numbers, 128-64-1, Adam, batch 256, from a Parquet file, one process", "steps/s",
            "4 x PyTorch", tables.steps_per_second,
            [Peer(f"PyTorch, {threads} threads", ["torch_table.py", "--threads", threads]) for threads in (1, 2)]),
        Row("table-memory", "30 numbers, a Parquet file of 483 MB, cache: false: peak of the trainer's own memory",
            "MB", "at most a quarter of the file", tables.peak_megabytes,
            [Limit("limit", tables.MEMORY_BOUND / 1e6)], pairs=1),
        *suggested]


ROWS = [
    Row("mlp-single", "784-256-256-10, Adam, batch 32, MNIST, one process", "steps/s",
        "5 x PyTorch, 10 x Keras fit", adam("mnist-mlp", muster.idx("train", take=50000), 30000), torches("mnist"),
        [KERAS, KERAS_JIT]),
    Row("mlp-dense", "the same, input without zeros", "steps/s", "3.5 x PyTorch",
        adam("mnist-mlp", DENSE, 20000), torches("dense")),
    Row("sigmoid-single", "784-100-10 sigmoid, SGD, batch 100, one process", "steps/s",
        "4 x TensorFlow 1", sigmoid(30000),
        [Peer(f"TF 1 feed_dict, {n} threads", ["tf1_sigmoid.py", "--threads", n]) for n in (1, 2)]),
    Row("cnn", "mnist-cnn: two convolutions, pool, two dense layers, Adam, batch 32, one process", "steps/s",
        "4 x PyTorch", adam("mnist-cnn", muster.idx("train", take=50000), 1200),
        [torch_cnn("eager", "channels-last"), torch_cnn("eager", "contiguous")],
        [torch_cnn("compile", "channels-last")]),
    Row("ssd", "SSD MobileNet v1, 300x300, batch 8, a training step on 2 threads, float32", "images/s",
        "1.7 x PyTorch", Compute("ssd-mobilenet-v1").measure, [torch_images()], [torch_images("compile")]),
    Row("ssd-bf16", "the same in bfloat16: here outputs and gradients between layers, in PyTorch autocast", "images/s",
        "2.4 x PyTorch with AVX-512 BF16 and no AMX", SSD_BFLOAT16.measure, [torch_images("eager", "--bfloat16")],
        [Compute("ssd-mobilenet-v1", name="Muster in float32"), torch_images()]),
    Row("ssd-limit", "the same against its convolutions alone, by oneDNN", "images/s", "0.85 of oneDNN",
        Compute("ssd-mobilenet-v1").measure, [torch_images("eager", "--convolutions")], pairs=3),
    Row("ssd-memory", "peak resident memory of the same", "MB", "0.6 of PyTorch's",
        Compute("ssd-mobilenet-v1", "peakMegabytes").measure, [torch_images(field="peakMegabytes")], pairs=1),
    Row("mobilenet", "MobileNet v1, 224x224, batch 16, a training step on 2 threads, float32", "images/s",
        "1.7 x PyTorch", Compute("mobilenet-v1").measure, [torch_images("eager", "--classification")],
        [torch_images("compile", "--classification")]),
    Row("input", "JPEG 640x480 decoded, cropped around objects, resized to 300x300, mirrored: one thread", "images/s",
        "1.2 x tf.data", decoded, [Peer("tf.data", ["tf_input.py", INPUT], "imagesPerSecond")]),
    *tables_rows(),
    Row("accuracy-single", "mnist-mlp, 2 epochs, one process", "test accuracy", "0.965",
        accuracy(*ALONE), [KERAS_ACCURACY], pairs=1),
    Row("accuracy-ps", "mnist-mlp, 2 epochs, 1 ps + chief + worker, sync", "test accuracy", "0.965",
        accuracy(), [KERAS_ACCURACY], pairs=1),
    Row("digits-map", "examples/ssd-mobilenet-v1.yaml: mAP at IoU 0.5 of 2 ps, master, worker and evaluator", "mAP",
        "0.90", detector.precision, [Limit("asked", 0.9)], pairs=1),
    Row("ps-async", "mnist-mlp, 1 ps + 2 trainers on loopback, async", "global steps/s",
        "15 x TensorFlow's ps", parameter_servers("async"), [TF_ASYNC]),
    Row("ps-sync", "the same, sync", "global steps/s", "20 x SyncReplicasOptimizer",
        parameter_servers("sync"), [TF_SYNC]),
    Row("ps-async-grpc", "ps-async with MUSTER_SHARED_MEMORY=0, in plaintext as the peer", "global steps/s",
        "5 x TensorFlow's ps", parameter_servers("async", PLAINTEXT, **GRPC), [TF_ASYNC]),
    Row("ps-sync-grpc", "ps-sync with MUSTER_SHARED_MEMORY=0, in plaintext as the peer", "global steps/s",
        "5 x SyncReplicasOptimizer", parameter_servers("sync", PLAINTEXT, **GRPC), [TF_SYNC]),
    Row("ps-sync-tls", "ps-sync-grpc by TLS", "global steps/s", "0.5 of plaintext",
        parameter_servers("sync", **GRPC), [InPlaintext(parameter_servers("sync", PLAINTEXT, **GRPC))]),
    Row("ps-bandwidth", "49 MB pushed and pulled, 1 worker, 1 ps, shared memory", "GB/s",
        "0.5 x memcpy's four passes", Exchange("", "shm").measure, [Exchange("memcpy", "memcpy")]),
    Row("ps-bandwidth-grpc", "the same by gRPC over loopback", "GB/s", "0.6 x plain TCP",
        Exchange("", "grpc").measure, [Exchange("TCP there and back", "tcp")]),
    Row("ps-bandwidth-tls", "the same by TLS", "GB/s", "0.4 of plaintext",
        Exchange("", "grpc-tls").measure, [Exchange("in plaintext", "grpc")]),
    Row("ps-scale", "synchronous steps, 1-16 members, 1-8 ps: farthest from the linear model",
        "share", "at most 0.25", lambda: scale.measure(muster.REPORT), [Limit("limit", 0.25)],
        pairs=1),
    Row("checkpoint-stall", "mnist-mlp, 1 ps + 2 trainers: added to the longest step by a checkpoint of 3 MB, p95",
        "ms", "at most 5 ms",
        lambda: disturbance.checkpoint_stall(500, "spec.training.epochs=16"),
        [Limit("limit", 5)], pairs=3),
    Row("checkpoint-stall-240", "784-4096-4096-10, the same: a checkpoint of 240 MB", "ms",
        "at most 50 ms",
        lambda: disturbance.checkpoint_stall(
            60, "spec.training.epochs=1", "spec.training.data.train.take=30720",
            f"spec.training.model={json.dumps(WIDE)}"),
        [Limit("limit", 50)], pairs=1),
    Row("recovery-worker", "kill -9 of a worker until the group's next step, p95 of 20", "s",
        "at most 1 s", lambda: disturbance.recovery("worker", 20), [Limit("limit", 1)], pairs=1),
    Row("recovery-ps", "the same of a ps, from a checkpoint", "s", "at most 3 s",
        lambda: disturbance.recovery("ps", 20), [Limit("limit", 3)], pairs=1),
    Row("recovery-ps-replicated", "the same of one of 2 ps with replication: 2, by its standby", "s",
        "at most 1 s",
        lambda: disturbance.recovery("ps", 20, "spec.replicaSpecs.ps.replication=2"),
        [Limit("limit", 1)], pairs=1),
    Row("stranger", "60 s of bytes from a stranger without the key at every port: memory that a process takes more", "MiB",
        "under 64 MiB", lambda: disturbance.stranger(60), [Limit("limit", 64)], pairs=1),
    Row("ssd-ps", "SSD MobileNet v1, 27 MB, 1 ps + 2 workers of a thread: share of a step that communication adds",
        "share", "at most 0.15", detector.exposed, [Limit("limit", 0.15)], pairs=3),
    Row("ssd-slow-link", "the same on three hosts, 100 Mbit/s, bfloat16 wire, accumulation 4: share of a step that is "
        "computing", "share", "shown", SLOW_LINK.share, [SLOW_LINK], pairs=1),
    Row("collective", "mnist-mlp, strategy collective, 2 replicas x batch 32", "steps/s",
        "10 x PyTorch DDP", collective.small(), ddp()),
    Row("collective-tcp", "the same with MUSTER_SHARED_MEMORY=0, in plaintext as the peer", "steps/s", "",
        collective.small(PLAINTEXT, **GRPC), ddp()),
    Row("collective-tls", "collective-tcp by TLS", "steps/s", "0.5 of plaintext",
        collective.small(**GRPC), [InPlaintext(collective.small(PLAINTEXT, **GRPC))]),
    Row("collective-large", "784-4096-4096-10, the same", "steps/s", "2.5 x PyTorch DDP",
        collective.large, ddp("--hidden", 4096, 4096, "--steps", 40)),
    Row("collective-exposed", "share of that step that communication adds", "share", "at most 0.25",
        collective.exposed, [Limit("limit", 0.25)], pairs=3),
    *all_reduce(1), *all_reduce(100),
    Row("collective-recovery", "kill -9 of one of 3 until the group's next step, elastic, without it, p95 of 20",
        "s", "at most 1 s", lambda: collective.elastic_recovery(20), [Limit("limit", 1)], pairs=1),
    Row("collective-recovery-back", "the same, not elastic, with it back", "s", "at most 3 s",
        lambda: collective.recovery(20), [Limit("limit", 3)], pairs=1),
    Row("scaling", "2 -> 3 -> 2 members within an epoch, no process restarted", "samples seen",
        "each sample once", scaling.samples_seen, [Limit("data set", collective.SAMPLES)], pairs=1),
    Row("operator-pace", "250 jobs of 4 replicas met at once, until all 1,000 pods exist", "pods/s",
        "2 x training-operator", *both("podsPerSecond")),
    Row("operator-calls", "calls of the API server that the same takes", "calls a job", "at most 8",
        Burst(operators.MUSTER, "callsPerJob").measure, [Limit("limit", 8)],
        [Burst(operators.PEER, "callsPerJob")], pairs=1),
    Row("operator-rss", "peak resident memory of the same", "MB", "1/3 of training-operator's",
        *both("peakMegabytes"), pairs=1),
    Row("operator-scale", "2,500 jobs run to completion by KWOK, first create to last Finished", "s",
        "at most 120 s", Scale("seconds").measure, [Limit("limit", 120)],
        [Scale(f"CPU s of {name}") for name in ("operator", "API server", "etcd", "KWOK")], pairs=1),
    Row("operator-scale-calls", "the same against a client that does nothing but make the operator's calls", "s",
        "120 s, or at most 1.15", Scale("seconds").measure, [SameCalls()], pairs=1),
    Row("operator-calls-life", "calls of the API server that a job of it takes from its creation to its end",
        "calls a job", "at most 14", Scale("calls a job").measure, [Limit("limit", 14)], pairs=1),
    Row("operator-scale-rss", "peak resident memory of the same", "MB", "at most 100 MB",
        Scale("peakMegabytes").measure, [Limit("limit", 100)], pairs=1),
    Row("leader-loss", "kill -9 of the leader under 100 jobs until the next one makes a pod", "s",
        "at most 20 s", leader_loss, [Limit("limit", 20)], pairs=1),
    Row("operator-fair", "5,000 new jobs of one namespace: the first pod of another's single job", "s",
        "at most 2 s", fairness, [Limit("limit", 2)], pairs=1),
    Row("operator-tfjob", "250 TFJobs of 4 replicas met at once, until all 1,000 pods exist, with each its Service",
        "pods/s", "1.3 x training-operator", Burst(operators.MUSTER_OF_TF_JOBS, "podsPerSecond").measure,
        [Burst(operators.peer_with(threads), "podsPerSecond") for threads in (4, 10, 32)]),
    Row("operator-many-rss", f"{FINISHED:,} finished jobs and 1,000 that run: peak resident memory of the operator",
        "MB", "at most 256 MB", Many("peakMegabytes").measure, [Limit("limit", 256)],
        [Many(name) for name in ("MB of kube-apiserver", "MB of etcd's file", "bytes of a job", "seconds to make them")],
        pairs=1),
    Row("operator-large-rss", f"{LARGE} suspended jobs, each with a megabyte of program in its template: the same", "MB",
        "at most 256 MB", large, [Limit("limit", 256)], pairs=1),
    Row("operator-many-takeover", "the same: kill -9 of the leader until the next one makes a new job's pod", "s",
        "at most 20 s", Many("seconds to take over").measure, [Limit("limit", 20)],
        [Many(name) for name in ("seconds to look at all", "seconds to list")], pairs=1),
    Row("operator-scrape", f"{JOBS:,} jobs with {JOBS * REPLICAS:,} replicas, run by KWOK: an answer of the operator's "
        "/metrics", "MB", "at most 5 MB", Scrape("megabytes").measure, [Limit("limit", 5)],
        [Scrape(name) for name in ("series", "peakMegabytes")], pairs=1),
    Row("operator-scrape-time", "the same: the longest of 20 answers, a second apart", "ms", "at most 200 ms",
        Scrape("milliseconds").measure, [Limit("limit", 200)], [Scrape("CPU ms of a scrape")], pairs=1),
    Row("large-job", f"one job of {WORKERS:,} workers, {PS} ps and a chief, pods run by KWOK: created until all are "
        "ready", "s", "at most 60 s", Large("seconds").measure, [Limit("limit", 60)],
        [Large(name) for name in ("CPU s of operator", "CPU s of API server", "CPU s of etcd", "CPU s of KWOK",
                                  "calls a replica", "peakMegabytes")], pairs=1),
    Row("job-start", "mnist-mlp on two nodes: kubectl apply to the first step, p95 of 20", "s", "at most 3 s",
        lambda: on_cluster.job_start(20), [Limit("limit", 3)], pairs=1),
    Row("cluster-recovery-kill", "kill -9 in a worker's container until the group's next step, p95 of 20",
        "s", "at most 2 s", lambda: on_cluster.recovery(on_cluster.Training.kill_trainer, 20, 6),
        [Limit("limit", 2)], pairs=1),
    Row("cluster-recovery-pod", "the same of a worker's pod that is deleted", "s", "at most 8 s",
        lambda: on_cluster.recovery(on_cluster.Training.delete_pod, 20, 15), [Limit("limit", 8)], pairs=1),
    Row("node-loss", "the same of a worker's node that dies, the longest of 5", "s", "at most 30 s",
        lambda: on_cluster.node_loss(5), [Limit("limit", 30)], pairs=1),
    Row("build-run", "a clone without anything built, no ccache, two cores: `make run` up to the trained model", "s",
        "at most 300 s", build_time.Build("run").measure, [Limit("limit", 300)],
        [build_time.Build("run", "CPU seconds")], pairs=1),
    Row("build-all", "the same: `make build`, which `make test` begins with", "s",
        "at most 720 s", build_time.Build("build").measure, [Limit("limit", 720)],
        [build_time.Build("build", "CPU seconds")], pairs=1),
]
