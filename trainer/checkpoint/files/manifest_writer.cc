#include <fmt/format.h>

#include "common/digest.h"
#include "trainer/checkpoint/files/manifest.h"

namespace muster::checkpoint {
namespace {

Json object_or_empty(const Json& value) {
  return value.is_object() ? value : Json::object();
}

Json json_of(const EpochSums& sums) {
  Json list = Json::array();
  for (const EpochSums::Epoch& epoch : sums.known()) {
    list.push_back({{"epoch", epoch.number},
                    {"loss", epoch.sums.loss},
                    {"weight", epoch.sums.weight},
                    {"rows", epoch.sums.rows},
                    {"terms", epoch.sums.terms}});
  }
  return list;
}

Json json_of(const std::optional<Best>& best) {
  if (!best) return nullptr;
  return {{"value", best->value}, {"step", best->step}, {"epoch", best->epoch}};
}

Json json_of(const Evaluations& evaluations) {
  return {
      {"epoch", evaluations.epoch},        {"step", evaluations.step},
      {"best", json_of(evaluations.best)}, {"withoutImprovement", evaluations.without_improvement},
      {"kept", json_of(evaluations.kept)}, {"reached", json_of(evaluations.reached)}};
}

Json json_of(const Position& position) {
  Json json = {{"step", position.step},
               {"epoch", position.epoch},
               {"nextBatch", position.next_batch},
               {"optimizerT", position.optimizer_t},
               {"outstanding", position.outstanding},
               {"sums", json_of(position.sums)}};
  if (position.evaluations != Evaluations{}) json["evaluations"] = json_of(position.evaluations);
  return json;
}

Json json_of(const Manifest& manifest) {
  Json files = Json::array();
  for (const FileEntry& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"crc32c", file.crc32c}});
  }
  Json slices = Json::array();
  for (const Slice& slice : manifest.slices) {
    slices.push_back({{"file", slice.file},
                      {"tensor", slice.tensor},
                      {"shape", slice.shape},
                      {"firstRow", slice.first_row}});
  }
  Json json = {{"version", manifest.version},
               {"jobUid", manifest.job_uid},
               {"generation", manifest.generation},
               {"position", json_of(manifest.position)},
               {"final", manifest.is_final()},
               {"model", manifest.model},
               {"layoutFingerprint", manifest.layout_fingerprint},
               {"fingerprint", manifest.fingerprint},
               {"shardSteps", manifest.shard_steps},
               {"files", files},
               {"slices", slices},
               {"metrics", object_or_empty(manifest.metrics)},
               {"training", object_or_empty(manifest.training)},
               {"samples", object_or_empty(manifest.samples)}};
  if (manifest.ended) json["endedBy"] = kEndWords.at(static_cast<size_t>(*manifest.ended));
  if (!manifest.request.empty()) json["request"] = manifest.request;
  return json;
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  std::string text = json_of(manifest).dump(2, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // "\n}"
  text += ",\n  ";
  const uint32_t crc = crc32c(std::as_bytes(std::span(text)));
  return text + fmt::format("\"crc32c\": {}\n}}\n", crc);
}

std::string shard_file_name(std::string_view kind, int shard, int shards) {
  return fmt::format("{}-{:05}-of-{:05}.safetensors", kind, shard, shards);
}

}  // namespace muster::checkpoint
