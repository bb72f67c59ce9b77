#include "common/variables.h"

namespace muster {

namespace {

using enum Setter;

constexpr Variable kVariables[] = {
    {"TF_CONFIG", operators,
     R"(`{"cluster": {"ps": ["host:port", ...], "chief": [...], "worker": [...]}, "task": {"type": "worker", "index": 0}}`; no evaluator in `cluster`; unset for a job of one replica that is not elastic. `master` where the job said `master`)"},
    {"MUSTER_TF_CONFIG", kubernetes,
     "path of a file with the content of `TF_CONFIG`, if that is longer than the 128 KiB that "
     "Linux "
     "allows for a variable (only if the job has `training`; any other job is refused then)"},
    {"MUSTER_JOB", operators, "the job's name"},
    {"MUSTER_NAMESPACE", kubernetes, "the job's namespace"},
    {"MUSTER_JOB_UID", operators, "the job's unique id, which peers check"},
    {"MUSTER_ROLE", operators, "`ps`, `chief`, `master`, `worker` or `evaluator`"},
    {"MUSTER_INDEX", operators, "the replica's number within its role, from 0"},
    {"MUSTER_ATTEMPT", operators, "how often this replica has been replaced so far"},
    {"MUSTER_REPLICAS", operators,
     R"(`{"ps": 1, "chief": 1, "worker": 1, "evaluator": 1}`: every role of the job, evaluator too)"},
    {"MUSTER_ELASTIC", operators,
     R"(`{"minReplicas": 1, "maxReplicas": 4, "batch": "global"}`: spec.elastic, if the job has it; unset: the job is not elastic)"},
    {"MUSTER_TRAINED", operators,
     "`1`: the job's training had ended before this replica began, and only an evaluator has work "
     "left; unset: the training had not ended"},
    {"MUSTER_REPLICATION", operators,
     "`2`: each shard has a second copy on another ps; unset: it has none"},
    {"MUSTER_GRACE_SECONDS", operators,
     "seconds from SIGTERM until the replica is killed: `terminationGracePeriodSeconds` of its "
     "template, default 120 (only if the job has `training`)"},
    {"MUSTER_STORAGE", operators,
     "the job's folder on shared storage: for a job with `training` a folder below the mount path, "
     "created by the trainer; for any other job the mount path; with `muster run` the job's "
     "directory"},
    {"MUSTER_ADOPT", operators,
     "`lab/mnist`: the job whose training in that folder this job continues; unset: only its own"},
    {"MUSTER_TRAINING", operators, "path of training.yaml (only where the job has `training`)"},
    {"MUSTER_CHECKPOINT_REQUEST", operators,
     "path of the file that the leader watches for [requests for a "
     "checkpoint](../guides/resume.md#a-checkpoint-on-demand); each new text in the file is "
     "one request "
     "(only the "
     "leader of a job with `training`; on Kubernetes only where the job has `storage.volume`)"},
    {"MUSTER_TLS", operators,
     "folder with `tls.key` and `tls.crt`, by which [the job's replicas identify each "
     "other](../operations/security.md); unset: they trust every peer (only if the job has "
     "`training`)"},
    {"MUSTER_HTTP_ADDRESS", operators, "host:port for /metrics, /healthz and /progress"},
    {"MUSTER_POD_IP", operators,
     "the IP address of the pod (Kubernetes) or host (`muster run --hosts`) at which peers reach "
     "this replica, whatever DNS or their TF_CONFIG says"},
    {"MUSTER_PEER_PORTS", operators,
     "`2223-2254`: a member of a collective listens at a free port of these (Kubernetes, where the "
     "job has `training`, and `muster run --hosts`), so that [a "
     "NetworkPolicy](../operations/security.md#on-the-cluster) can name them; unset: any free "
     "port"},
    {"MUSTER_PS_HOSTS", operators,
     "addresses of all ps, with commas between them (like the next two variables only for jobs "
     "without `training`; "
     "see [where their scripts find each other](#for-scripts))"},
    {"MUSTER_CHIEF_HOSTS", operators, "the chief's address (see `MUSTER_PS_HOSTS`)"},
    {"MUSTER_WORKER_HOSTS", operators, "addresses of all workers (see `MUSTER_PS_HOSTS`)"},
    {"MUSTER_THREADS", run,
     "number of threads for computing, if replicas share a machine; `training.threads` wins"},
    {"MUSTER_RESTARTS_IN_PLACE", kubernetes,
     "how often the supervisor in the trainer image may start the trainer again within ten "
     "minutes; 3 if unset"},
    {"MUSTER_RESTARTS", supervisor,
     "how often the supervisor has started the trainer again in this container"},
    {"MUSTER_LAST_EXIT_CODE", supervisor,
     "the exit code of the process before this one; 0 for the first process"},
    {"MUSTER_TERMINATION_LOG", starter,
     "path of the file for a container's last words; /dev/termination-log"},
    {"MUSTER_TRAINER", starter, "path of the muster-trainer that `muster` starts"},
    {"MUSTER_HANG_SECONDS", user,
     "seconds after which work without a sign of life [stands still](../concepts/hangs.md); 30 if "
     "unset; 0: "
     "no watch"},
    {"MUSTER_INSTRUCTION_SET", starter,
     "`generic`, `avx2`, `avx512` or `avx512_bf16`: the vector instructions to compute with; if "
     "unset, the best that the processor has"},
    {"MUSTER_SHARED_MEMORY", starter,
     "`0`: replicas on one host exchange data through the network, as if they were on several "
     "hosts"},
    {"MUSTER_LOG_FORMAT", starter, "`json` or `text`: how log lines are written"},
    {"MUSTER_LOG_LEVEL", starter,
     "`debug`, `info`, `warning` or `error`: the lowest level that is logged"},
};

}  // namespace

std::span<const Variable> variables() {
  return kVariables;
}

}  // namespace muster
