#include "trainer/spec/data_source.h"

#include <utility>

namespace muster::spec {

namespace {

// Each kind of source has these functions: words(), read() from its object in the manifest,
// facts_of() and paths_of().

SourceWords words(const IdxSource&) {
  return {"idx", "images", "labels", true};
}
SourceWords words(const LinearSource&) {
  return {"syntheticLinear", "", "", false};
}
SourceWords words(const ClassesSource&) {
  return {"syntheticClasses", "shape", "classes", true};
}

void read(const Json& value, IdxSource& source) {
  source.scale = static_cast<float>(number_or(value, "scale", 1.0 / 255.0));
  const auto read_pair = [&](const Json& files) {
    source.files.push_back({string_or(files, "images", ""), string_or(files, "labels", "")});
  };
  const Json& list = member(value, "files");
  source.listed = list.is_array();
  if (!source.listed) read_pair(value);
  for (const Json& files : list) read_pair(files);
}

void read(const Json& value, LinearSource& source) {
  source.samples = integer_or(value, "samples", 0);
  source.slope = number_or(value, "slope", source.slope);
  source.intercept = number_or(value, "intercept", source.intercept);
  source.noise = number_or(value, "noise", source.noise);
  source.seed = static_cast<uint64_t>(integer_or(value, "seed", 1));
}

void read(const Json& value, ClassesSource& source) {
  source.samples = integer_or(value, "samples", 0);
  for (const Json& axis : member(value, "shape")) source.shape.push_back(axis.get<int64_t>());
  source.classes = integer_or(value, "classes", 0);
  source.density = number_or(value, "density", source.density);
  source.seed = static_cast<uint64_t>(integer_or(value, "seed", 1));
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

struct NamedPath {
  std::string field;
  const char* content;
  std::filesystem::path& path;
};

std::vector<NamedPath> paths_of(IdxSource& source) {
  std::vector<NamedPath> paths;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const std::string list = source.listed ? "files[" + std::to_string(i) + "]." : "";
    paths.push_back({list + "images", kIdxImages, source.files[i].images});
    paths.push_back({list + "labels", kIdxLabels, source.files[i].labels});
  }
  return paths;
}
std::vector<NamedPath> paths_of(LinearSource&) {
  return {};
}
std::vector<NamedPath> paths_of(ClassesSource&) {
  return {};
}

template <size_t... Index>
std::vector<SourceKind> one_of_each(std::index_sequence<Index...>) {
  return {SourceKind(std::in_place_index<Index>)...};
}
const std::vector<SourceKind>& all_kinds() {
  static const auto kinds =
      one_of_each(std::make_index_sequence<std::variant_size_v<SourceKind>>());
  return kinds;
}

SourceWords words_of(const SourceKind& kind) {
  return std::visit([](const auto& source) { return words(source); }, kind);
}

SourceKind to_kind(const Json& value) {
  for (SourceKind kind : all_kinds()) {
    const Json& fields = member(value, words_of(kind).name);
    if (!fields.is_object()) continue;
    std::visit([&](auto& source) { read(fields, source); }, kind);
    return kind;
  }
  return ClassesSource{};  // without samples: the checks refuse a manifest without a source
}

std::vector<NamedPath> paths_of(SourceKind& kind) {
  return std::visit([](auto& source) { return paths_of(source); }, kind);
}

}  // namespace

const std::vector<SourceWords>& source_words() {
  static const std::vector<SourceWords> all = [] {
    std::vector<SourceWords> list;
    for (const SourceKind& kind : all_kinds()) list.push_back(words_of(kind));
    return list;
  }();
  return all;
}

const SourceWords& words_of(const DataSource& source) {
  return source_words()[source.kind.index()];
}

std::optional<DataFacts> facts_by_manifest(const DataSource& source) {
  return std::visit([](const auto& kind) { return facts_of(kind); }, source.kind);
}

std::vector<NamedFile> files_of(const DataSource& source) {
  SourceKind kind = source.kind;
  std::vector<NamedFile> files;
  for (const NamedPath& file : paths_of(kind))
    files.push_back({file.field, file.content, file.path});
  return files;
}

DataSource below(const std::filesystem::path& folder, DataSource source) {
  for (const NamedPath& file : paths_of(source.kind))
    if (!file.path.empty()) file.path = folder / file.path;
  return source;
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
