#include "trainer/spec/data_source.h"

#include "common/text/listed.h"

namespace muster::spec {

namespace {

using compute::LabelKind;

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

ImageSettings to_images(const Json& value) {
  ImageSettings images;
  if (const Json& size = member(value, "imageSize"); size.is_array() && size.size() == 2) {
    images.height = size[0].get<int64_t>();
    images.width = size[1].get<int64_t>();
  }
  images.channels = integer_or(value, "channels", images.channels);
  images.scale = static_cast<float>(number_or(value, "scale", 1.0 / 255.0));
  images.offset = static_cast<float>(number_or(value, "offset", 0.0));
  images.max_corrupt = number_or(value, "maxCorrupt", images.max_corrupt);
  return images;
}

ImageCsvSource to_csv(const Json& value) {
  ImageCsvSource source{
      string_or(value, "file", ""), string_or(value, "folder", ""), {}, to_images(value)};
  for (const Json& name : member(value, "classes")) source.classes.push_back(name);
  return source;
}

RecordSource to_records(const Json& value) {
  RecordSource source;
  const Json& list = member(value, "fileList");
  source.listed = list.is_array();
  if (!source.listed) source.files.emplace_back(string_or(value, "files", ""));
  for (const Json& file : list) source.files.emplace_back(file.get<std::string>());
  source.label_map = string_or(value, "labelMap", "");
  source.first_label = integer_or(value, "firstLabel", source.first_label);
  source.image_key = string_or(value, "imageKey", source.image_key);
  source.label_key = string_or(value, "labelKey", source.label_key);
  if (string_or(value, "labels", "class") == "objects") source.labels = LabelKind::objects;
  source.images = to_images(value);
  return source;
}

Transform to_transform(const Json& value, const char* fallback) {
  const std::string name = string_or(value, "transform", fallback);
  if (name == "minMax") return Transform::min_max;
  if (name == "log") return Transform::log;
  if (name == "buckets") return Transform::buckets;
  return name == "none" ? Transform::none : Transform::standardize;
}

TableFeature to_feature(const Json& value) {
  TableFeature feature;
  feature.columns = strings_in(member(value, "columns"));
  if (const std::string kind = string_or(value, "kind", ""); !kind.empty())
    feature.kind = kind == "category"     ? FeatureKind::category
                   : kind == "categories" ? FeatureKind::categories
                   : kind == "vector"     ? FeatureKind::vector
                                          : FeatureKind::number;
  feature.separator = string_or(value, "separator", "");
  if (given(value, "least")) feature.least = number_or(value, "least", 0);
  if (given(value, "most")) feature.most = number_or(value, "most", 0);
  feature.buckets = integer_or(value, "buckets", feature.buckets);
  feature.transform = to_transform(value, "standardize");
  const std::string missing = string_or(value, "missing", "mean");
  feature.missing = missing == "flag"       ? Missing::flag
                    : missing == "constant" ? Missing::constant
                                            : Missing::mean;
  feature.constant = number_or(value, "constant", 0);
  feature.most_values = integer_or(value, "mostValues", feature.most_values);
  feature.spare_values = integer_or(value, "spareValues", feature.spare_values);
  feature.hash_buckets = integer_or(value, "hashBuckets", feature.hash_buckets);
  feature.freeze = bool_or(value, "freeze", false);
  return feature;
}

TableSource to_table(const Json& value) {
  TableSource source;
  const Json& list = member(value, "fileList");
  source.listed = list.is_array();
  if (!source.listed) source.files.emplace_back(string_or(value, "files", ""));
  for (const Json& file : list) source.files.emplace_back(file.get<std::string>());
  source.format.name = string_or(value, "format", "");
  if (const std::string text = string_or(value, "separator", ""); !text.empty())
    source.format.separator = text[0];
  source.format.decimal = string_or(value, "decimal", ".")[0];
  source.format.header = bool_or(value, "header", true);
  const std::string by = string_or(value, "orderBy", ""), group = string_or(value, "groupBy", "");
  source.order_column = by + group;
  source.order = !by.empty()                      ? RowOrder::by_value
                 : !group.empty()                 ? RowOrder::by_group
                 : bool_or(value, "mixed", false) ? RowOrder::mixed
                                                  : RowOrder::as_they_are;
  for (const Json& feature : member(value, "features"))
    source.features.push_back(to_feature(feature));
  const Json& target = member(value, "target");
  source.target.columns = strings_in(member(target, "columns"));
  if (source.target.columns.empty())
    source.target.columns.push_back(string_or(target, "column", ""));
  source.target.is_class = string_or(target, "kind", "class") == "class";
  source.target.transform = to_transform(target, "none");
  source.weight_column = string_or(value, "weight", "");
  const Json& ranking = member(value, "ranking");
  source.group_column = string_or(ranking, "groupBy", "");
  source.rank_at = integer_or(ranking, "at", source.rank_at);
  return source;
}

SourceKind to_kind(const Json& value) {
  if (const Json& table = member(value, "table"); table.is_object()) return to_table(table);
  if (const Json& idx = member(value, "idx"); idx.is_object()) return to_idx(idx);
  if (const Json& linear = member(value, "syntheticLinear"); linear.is_object())
    return to_linear(linear);
  if (const Json& folder = member(value, "imageFolder"); folder.is_object())
    return ImageFolderSource{string_or(folder, "path", ""), to_images(folder)};
  if (const Json& csv = member(value, "imageCsv"); csv.is_object()) return to_csv(csv);
  if (const Json& records = member(value, "tfRecord"); records.is_object())
    return to_records(records);
  if (const Json& coco = member(value, "coco"); coco.is_object())
    return CocoSource{string_or(coco, "annotations", ""), string_or(coco, "folder", ""),
                      to_images(coco)};
  return to_classes(member(value, "syntheticClasses"));
}

std::optional<DataFacts> facts_of(const IdxSource&) {
  return std::nullopt;
}
std::optional<DataFacts> facts_of(const LinearSource& source) {
  return DataFacts{static_cast<uint64_t>(source.samples), {1}, 1, "", "", {}};
}
std::optional<DataFacts> facts_of(const ClassesSource& source) {
  return DataFacts{static_cast<uint64_t>(source.samples), source.shape, source.classes, "", "", {}};
}
std::optional<DataFacts> facts_of(const ImageFolderSource& source) {
  return DataFacts{0, source.images.shape(), 0, "", "", {}};
}
std::optional<DataFacts> facts_of(const ImageCsvSource& source) {
  return DataFacts{0,  source.images.shape(), static_cast<int64_t>(source.classes.size()), "",
                   "", source.classes};
}
std::optional<DataFacts> facts_of(const RecordSource& source) {
  return DataFacts{0, source.images.shape(), 0, "", "", {}};
}
std::optional<DataFacts> facts_of(const CocoSource& source) {
  return DataFacts{0, source.images.shape(), 0, "", "", {}};
}
std::optional<DataFacts> facts_of(const TableSource&) {
  return std::nullopt;
}

using Path = std::filesystem::path;

// Returns the paths of a source, which may be changed in place.
std::vector<Path*> paths(IdxSource& source) {
  std::vector<Path*> paths;
  for (IdxFiles& files : source.files) {
    paths.push_back(&files.images);
    paths.push_back(&files.labels);
  }
  return paths;
}
std::vector<Path*> paths(LinearSource&) {
  return {};
}
std::vector<Path*> paths(ClassesSource&) {
  return {};
}
std::vector<Path*> paths(ImageFolderSource& source) {
  return {&source.path};
}
std::vector<Path*> paths(ImageCsvSource& source) {
  return {&source.file, &source.folder};
}
std::vector<Path*> paths(RecordSource& source) {
  std::vector<Path*> paths;
  for (Path& file : source.files) paths.push_back(&file);
  paths.push_back(&source.label_map);
  return paths;
}
std::vector<Path*> paths(CocoSource& source) {
  return {&source.annotations, &source.folder};
}
std::vector<Path*> paths(TableSource& source) {
  std::vector<Path*> paths;
  for (Path& file : source.files) paths.push_back(&file);
  return paths;
}

// Returns a name for messages about all files together.
std::string name_of(const std::vector<Path>& files) {
  std::vector<std::string> names;
  for (const Path& file : files) names.push_back(file.string());
  return muster::listed(names, 1);
}

}  // namespace

const std::vector<SourceWords>& source_words() {
  static const std::vector<SourceWords> words = {
      {"idx", "images", "labels", LabelKind::classes, "IDX files"},
      {"syntheticLinear", "", "", LabelKind::floats, ""},
      {"syntheticClasses", "shape", "classes", LabelKind::classes, ""},
      {"imageFolder", "imageSize", "path", LabelKind::classes, "folders of images"},
      {"imageCsv", "imageSize", "", LabelKind::classes, "a list of images"},
      {"tfRecord", "imageSize", "", LabelKind::classes, "TFRecord files"},
      {"coco", "imageSize", "annotations", LabelKind::objects, "COCO annotations and their images"},
      {"table", "", "", LabelKind::classes, "tables"},
  };
  return words;
}

const ImageSettings* DataSource::images() const {
  return std::visit(
      [](const auto& source) -> const ImageSettings* {
        if constexpr (requires { source.images.channels; })
          return &source.images;
        else
          return nullptr;
      },
      kind);
}

const SourceWords& words_of(const DataSource& source) {
  return source_words()[source.kind.index()];
}

std::optional<DataFacts> facts_by_manifest(const DataSource& source) {
  return std::visit([](const auto& kind) { return facts_of(kind); }, source.kind);
}

std::vector<Path> paths_of(const DataSource& source) {
  SourceKind kind = source.kind;
  std::vector<Path> found;
  for (const Path* path : std::visit([](auto& one) { return paths(one); }, kind))
    if (!path->empty()) found.push_back(*path);
  return found;
}

DataSource below(const Path& folder, DataSource source) {
  for (Path* path : std::visit([](auto& kind) { return paths(kind); }, source.kind))
    if (!path->empty()) *path = folder / *path;
  auto* table = std::get_if<TableSource>(&source.kind);
  if (table != nullptr && table->trained_on != nullptr)
    table->trained_on = std::make_shared<DataSource>(below(folder, *table->trained_on));
  return source;
}

void train_on(const DataSource& train, DataSource& source) {
  auto* table = std::get_if<TableSource>(&source.kind);
  if (table != nullptr && train.table() != nullptr)
    table->trained_on = std::make_shared<DataSource>(train);
}

std::string RecordSource::name() const {
  return name_of(files);
}

std::string RecordSource::file_field(size_t file) const {
  return listed ? "fileList[" + std::to_string(file) + "]" : "files";
}

std::string TableSource::name() const {
  return name_of(files);
}

std::string TableSource::file_field(size_t file) const {
  return listed ? "fileList[" + std::to_string(file) + "]" : "files";
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
