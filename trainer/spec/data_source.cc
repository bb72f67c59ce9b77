#include "trainer/spec/data_source.h"

namespace muster::spec {

namespace {

IdxSource to_idx(const Json& value) {
  IdxSource source;
  source.scale = static_cast<float>(number_or(value, "scale", 1.0 / 255.0));
  const auto read = [&](const Json& files) {
    source.files.push_back({string_or(files, "images", ""), string_or(files, "labels", "")});
  };
  const Json& list = member(value, "files");
  source.listed = list.is_array();
  if (!source.listed) read(value);
  for (const Json& files : list) read(files);
  return source;
}

LinearSource to_linear(const Json& value) {
  LinearSource source;
  source.samples = integer_or(value, "samples", 0);
  source.slope = number_or(value, "slope", source.slope);
  source.intercept = number_or(value, "intercept", source.intercept);
  source.noise = number_or(value, "noise", source.noise);
  source.seed = static_cast<uint64_t>(integer_or(value, "seed", 1));
  return source;
}

ClassesSource to_classes(const Json& value) {
  ClassesSource source;
  source.samples = integer_or(value, "samples", 0);
  for (const Json& axis : member(value, "shape")) source.shape.push_back(axis.get<int64_t>());
  source.classes = integer_or(value, "classes", 0);
  source.density = number_or(value, "density", source.density);
  source.seed = static_cast<uint64_t>(integer_or(value, "seed", 1));
  return source;
}

SourceKind to_kind(const Json& value) {
  if (const Json& idx = member(value, "idx"); idx.is_object()) return to_idx(idx);
  if (const Json& linear = member(value, "syntheticLinear"); linear.is_object())
    return to_linear(linear);
  return to_classes(member(value, "syntheticClasses"));
}

std::optional<DataFacts> facts_of(const IdxSource&) {
  return std::nullopt;
}
std::optional<DataFacts> facts_of(const LinearSource& source) {
  return DataFacts{static_cast<uint64_t>(source.samples), {1}, 1, "", ""};
}
std::optional<DataFacts> facts_of(const ClassesSource& source) {
  return DataFacts{static_cast<uint64_t>(source.samples), source.shape, source.classes, "", ""};
}

}  // namespace

const std::vector<SourceWords>& source_words() {
  static const std::vector<SourceWords> words = {
      {"idx", "images", "labels", true},
      {"syntheticLinear", "", "", false},
      {"syntheticClasses", "shape", "classes", true},
  };
  return words;
}

const SourceWords& words_of(const DataSource& source) {
  return source_words()[source.kind.index()];
}

std::optional<DataFacts> facts_by_manifest(const DataSource& source) {
  return std::visit([](const auto& kind) { return facts_of(kind); }, source.kind);
}

DataSource below(const std::filesystem::path& folder, DataSource source) {
  auto* idx = std::get_if<IdxSource>(&source.kind);
  if (idx == nullptr) return source;
  for (IdxFiles& files : idx->files) {
    files.images = folder / files.images;
    if (!files.labels.empty()) files.labels = folder / files.labels;
  }
  return source;
}

std::string file_field(const IdxSource& source, size_t file, const char* field) {
  return source.listed ? "files[" + std::to_string(file) + "]." + field : field;
}

DataSource to_source(const Json& value, bool shuffle) {
  DataSource source;
  source.kind = to_kind(value);
  source.skip = integer_or(value, "skip", 0);
  source.take = integer_or(value, "take", -1);
  if (const Json& split = member(value, "split"); split.is_object()) {
    source.split_fraction = number_or(split, "fraction", 0.5);
    source.split_part =
        string_or(split, "part", "first") == "rest" ? SplitPart::rest : SplitPart::first;
  }
  source.augment = to_stages(member(value, "augment"));
  source.shard = string_or(value, "shard", "record") == "file" ? ShardBy::file : ShardBy::record;
  source.shuffle = bool_or(value, "shuffle", shuffle);
  source.cache = bool_or(value, "cache", true);
  source.prefetch = integer_or(value, "prefetch", 0);
  return source;
}

}  // namespace muster::spec
