#include "operator/kube/api/packed_text.h"

#include <zlib.h>

#include <new>

namespace muster::kube {

namespace {

// Parts of finished TrainingJobs as the API server sends them. The parts that a text has in common
// with these take hardly any memory. If today's TrainingJobs differ from this text, they only take
// a little more memory.
constexpr std::string_view kTypical =
    R"({"apiVersion":"muster.dev/v1alpha1","kind":"TrainingJob","metadata":{"annotations":{},)"
    R"("creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"labels":{},"name":"mnist",)"
    R"("namespace":"default","resourceVersion":"1000","uid":"01234567-89ab-4def-8123-456789abcdef"},)"
    R"("spec":{"enableDynamicWorker":false,"managedBy":"muster.dev/operator","replicaSpecs":{)"
    R"("evaluator":{"replicas":1,"restartPolicy":"OnFailure","template":{"spec":{"containers":[{)"
    R"("args":[],"command":[],"env":[{"name":"","value":""}],"image":"muster-trainer",)"
    R"("name":"trainer","resources":{"limits":{"cpu":"1","memory":"1Gi","nvidia.com/gpu":1},)"
    R"("requests":{"cpu":"1","memory":"1Gi"}},"volumeMounts":[]}],"nodeSelector":{},"volumes":[]}}},)"
    R"("master":{"replicas":1,"restartPolicy":"OnFailure","template":{"spec":{"containers":[{)"
    R"("ps":{"replicas":1,"replication":1,"restartPolicy":"OnFailure","template":{"spec":{)"
    R"("worker":{"replicas":1,"restartPolicy":"OnFailure","template":{"spec":{"containers":[{)"
    R"("image":"tf","name":"tensorflow"}],"nodeName":"node-0"}}}},"runPolicy":{"backoffLimit":6,)"
    R"("cleanPodPolicy":"Running","evaluatorTimeoutSeconds":600,"ttlSecondsAfterFinished":86400},)"
    R"("schedulingPolicy":{"gang":"none"},"security":{"transport":"tls"},)"
    R"("startupPolicy":{"order":"Any"},"storage":{"mountPath":"/muster","volume":{)"
    R"("persistentVolumeClaim":{"claimName":"mnist"}}},"strategy":"parameterServer",)"
    R"("suspend":false,"training":{}},"status":{"completionTime":"2026-01-01T00:00:00.000Z",)"
    R"("conditions":[{"lastTransitionTime":"2026-01-01T00:00:00.000Z","message":"the job can be run",)"
    R"("reason":"Valid","status":"True","type":"Accepted"},{"lastTransitionTime":)"
    R"("2026-01-01T00:00:00.000Z","message":"the job has finished","reason":"Finished",)"
    R"("status":"False","type":"Running"},{"lastTransitionTime":"2026-01-01T00:00:00.000Z",)"
    R"("message":"chief-0 succeeded","reason":"ChiefSucceeded","status":"True",)"
    R"("type":"SuccessCriteriaMet"},{"lastTransitionTime":"2026-01-01T00:00:00.000Z",)"
    R"("message":"chief-0 succeeded","reason":"ChiefSucceeded","status":"True","type":"Succeeded"},)"
    R"({"lastTransitionTime":"2026-01-01T00:00:00.000Z","message":"chief-0 succeeded",)"
    R"("reason":"ChiefSucceeded","status":"True","type":"Finished"}],"countedUids":[""],)"
    R"("finalCheckpointTime":"2026-01-01T00:00:00.000Z","group":{"chief":1,"ps":1,"worker":1},)"
    R"("labelSelector":"muster.dev/job=mnist,muster.dev/role=worker","observedGeneration":1,)"
    R"("progress":{"step":1000,"stepsHere":1000,"totalSteps":1000},"ready":"0/0","records":[{)"
    R"("attempt":1,"exitCode":143,"index":0,"role":"ps"},{"exitCode":0,"index":0,"role":"chief",)"
    R"("succeeded":true},{"exitCode":0,"index":0,"role":"worker","succeeded":true},{"exitCode":0,)"
    R"("index":0,"role":"evaluator","succeeded":true}],"replicaStatuses":{"chief":{"active":0,)"
    R"("failed":0,"ready":0,"restarts":0,"succeeded":1},"evaluator":{"active":0,"failed":0,"ready":0,)"
    R"("restarts":0,"succeeded":1},"ps":{"active":0,"failed":0,"ready":0,"restarts":0,"succeeded":0},)"
    R"("worker":{"active":0,"failed":0,"ready":0,"restarts":0,"succeeded":1}},"restarts":0,)"
    R"("startTime":"2026-01-01T00:00:00.000Z","state":"Succeeded","steps":"1000/1000","writes":4}})";

const Bytef* bytes(std::string_view text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

// These calls of zlib fail only if there is no memory.
void require(bool holds) {
  if (!holds) throw std::bad_alloc();
}

std::string pack(std::string_view text) {
  z_stream stream{};
  require(deflateInit(&stream, Z_DEFAULT_COMPRESSION) == Z_OK);
  require(deflateSetDictionary(&stream, bytes(kTypical), kTypical.size()) == Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = const_cast<Bytef*>(bytes(text));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  require(result == Z_STREAM_END);
  packed.shrink_to_fit();
  return packed;
}

std::string unpack(std::string_view packed, size_t size) {
  std::string text(size, '\0');
  z_stream stream{};
  stream.next_in = const_cast<Bytef*>(bytes(packed));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(size);
  require(inflateInit(&stream) == Z_OK);
  int result = inflate(&stream, Z_FINISH);
  if (result == Z_NEED_DICT) {
    inflateSetDictionary(&stream, bytes(kTypical), kTypical.size());
    result = inflate(&stream, Z_FINISH);
  }
  inflateEnd(&stream);
  require(result == Z_STREAM_END);
  return text;
}

}  // namespace

PackedText::PackedText(std::string_view text) : size_(text.size()), packed_(pack(text)) {}

std::string PackedText::text() const {
  return packed_.empty() ? "" : unpack(packed_, size_);
}

}  // namespace muster::kube
