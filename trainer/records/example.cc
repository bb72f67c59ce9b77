#include "trainer/records/example.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>

#include "common/error.h"
#include "common/text/shorten.h"
#include "proto/muster/example.pb.h"

namespace muster::records {
namespace {

using tfexample::Feature;

const char* kind_name(Feature::KindCase kind) {
  switch (kind) {
    case Feature::kBytesList:
      return "bytes";
    case Feature::kFloatList:
      return "floats";
    case Feature::kInt64List:
      return "int64s";
    case Feature::KIND_NOT_SET:
      break;
  }
  return "nothing";
}

constexpr const char* kEncoded = "image/encoded";
constexpr const char* kClass = "image/object/class/label";
constexpr const char* kClassText = "image/object/class/text";

}  // namespace

// The features of one example by their names. A feature that is not there reads as an empty list.
class ExampleReader::Features {
 public:
  void parse(std::string_view bytes, const images::Name& name) {
    name_ = name;
    if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
        !example_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      throw Invalid(fmt::format("{}: expected a tf.train.Example, found {} bytes of something else",
                                name, bytes.size()));
    }
  }

  auto& bytes(const char* key) { return *list(key, Feature::kBytesList).mutable_bytes_list(); }
  auto& floats(const char* key) { return *list(key, Feature::kFloatList).mutable_float_list(); }
  auto& integers(const char* key) { return *list(key, Feature::kInt64List).mutable_int64_list(); }

  std::string text(const char* key) {
    auto& list = bytes(key);
    return list.value_size() == 0 ? std::string() : list.value(0);
  }
  int64_t integer(const char* key) {
    auto& list = integers(key);
    return list.value_size() == 0 ? 0 : list.value(0);
  }

  // Swaps the bytes of the image with the content of `image`.
  void take_image(std::string& image, const char* key = kEncoded) {
    auto& list = bytes(key);
    if (list.value_size() != 1 || list.value(0).empty()) {
      fail(key, fmt::format("expected the bytes of one image, found {}",
                            list.value_size() == 1 ? "none" : count(list.value_size())));
    }
    image.swap(*list.mutable_value(0));
  }

  // `expected`: the number of boxes.
  void check_length(const char* key, int found, int expected) const {
    if (found == expected) return;
    fail(key, fmt::format("expected {} values, one a box, found {}", expected, found));
  }

  [[noreturn]] void fail(const char* key, const std::string& problem) const {
    throw Invalid(fmt::format("{}: {}: {}", name_, key, problem));
  }

 private:
  static std::string count(int values) { return fmt::format("{} values", values); }

  Feature& list(const char* key, Feature::KindCase kind) {
    Feature& feature = (*example_.mutable_features()->mutable_feature())[key];
    if (feature.kind_case() != kind && feature.kind_case() != Feature::KIND_NOT_SET) {
      fail(key,
           fmt::format("expected {}, found {}", kind_name(kind), kind_name(feature.kind_case())));
    }
    return feature;
  }

  images::Name name_{""};
  tfexample::Example example_;
};

ExampleReader::ExampleReader() : features_(std::make_unique<Features>()) {}
ExampleReader::~ExampleReader() = default;

void ExampleReader::read(std::string_view bytes, const images::Name& name, const LabelMap* labels,
                         DetectionExample& example) {
  Features& features = *features_;
  features.parse(bytes, name);
  features.take_image(example.image);
  example.format = features.text("image/format");
  example.filename = features.text("image/filename");
  example.source_id = features.text("image/source_id");
  example.height = features.integer("image/height");
  example.width = features.integer("image/width");

  const auto& ymin = features.floats("image/object/bbox/ymin");
  const int count = ymin.value_size();
  const auto floats = [&](const char* key) -> const auto& {
    const auto& list = features.floats(key);
    features.check_length(key, list.value_size(), count);
    return list;
  };
  const auto& xmin = floats("image/object/bbox/xmin");
  const auto& ymax = floats("image/object/bbox/ymax");
  const auto& xmax = floats("image/object/bbox/xmax");
  const auto& texts = features.bytes(kClassText);
  const auto& ids = features.integers(kClass);
  const bool by_text = labels != nullptr && texts.value_size() > 0;
  if (by_text) {
    features.check_length(kClassText, texts.value_size(), count);
  } else {
    features.check_length(kClass, ids.value_size(), count);
  }
  const auto label = [&](int box) -> int32_t {
    if (by_text) {
      const std::string& text = texts.value(box);
      if (const auto id = labels->id_of(text)) return *id;
      features.fail(kClassText, fmt::format("expected a class of the label map, found \"{}\"",
                                            shorten(text, 64)));
    }
    const int64_t id = ids.value(box);
    if (id < 1 || id > std::numeric_limits<int32_t>::max()) {
      features.fail(kClass, fmt::format("expected a label of at least 1, found {}", id));
    }
    if (labels != nullptr && !labels->index_of(static_cast<int32_t>(id))) {
      features.fail(kClass, fmt::format("expected an id of the label map, found {}", id));
    }
    return static_cast<int32_t>(id);
  };
  // Many writers leave these features out.
  const auto optional = [&](const char* key, const auto& list) {
    if (list.value_size() > 0) features.check_length(key, list.value_size(), count);
    return [&list](int box) { return list.value_size() > 0 ? list.value(box) : 0; };
  };
  const auto crowd = optional("image/object/is_crowd", features.integers("image/object/is_crowd"));
  const auto difficult =
      optional("image/object/difficult", features.integers("image/object/difficult"));
  const auto area = optional("image/object/area", features.floats("image/object/area"));

  example.boxes.clear();
  example.boxes.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    example.boxes.push_back({.ymin = ymin.value(i),
                             .xmin = xmin.value(i),
                             .ymax = ymax.value(i),
                             .xmax = xmax.value(i),
                             .label = label(i),
                             .crowd = crowd(i) != 0,
                             .difficult = difficult(i) != 0,
                             .area = area(i)});
  }
  example.problems = images::keep_usable(example.boxes);
}

void ExampleReader::read(std::string_view bytes, const images::Name& name,
                         ClassificationExample& example, const ClassificationKeys& keys) {
  Features& features = *features_;
  features.parse(bytes, name);
  features.take_image(example.image, keys.image.c_str());
  const char* const label_key = keys.label.c_str();
  const auto& label = features.integers(label_key);
  if (label.value_size() != 1) {
    features.fail(label_key, fmt::format("expected one label, found {}", label.value_size()));
  }
  if (label.value(0) < 0) {
    features.fail(label_key,
                  fmt::format("expected a label of at least 0, found {}", label.value(0)));
  }
  example.label = label.value(0);
  example.text = features.text("image/class/text");
}

namespace {

// Features are a map, whose order protobuf leaves to chance unless it is told otherwise.
std::string serialized(const tfexample::Example& example) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    example.SerializeToCodedStream(&coded);
  }
  return bytes;
}

}  // namespace

std::string write_example(const DetectionExample& example, const LabelMap* labels) {
  tfexample::Example out;
  auto& features = *out.mutable_features()->mutable_feature();
  const auto text = [&](const char* key, const std::string& value) {
    if (!value.empty()) features[key].mutable_bytes_list()->add_value(value);
  };
  const auto integers = [&](const char* key) -> auto& {
    return *features[key].mutable_int64_list();
  };
  const auto floats = [&](const char* key) -> auto& {
    return *features[key].mutable_float_list();
  };
  text(kEncoded, example.image);
  text("image/format", example.format);
  text("image/filename", example.filename);
  text("image/source_id", example.source_id);
  if (example.height > 0) integers("image/height").add_value(example.height);
  if (example.width > 0) integers("image/width").add_value(example.width);
  // An image without boxes has the features too, with no values.
  auto& ymin = floats("image/object/bbox/ymin");
  auto& xmin = floats("image/object/bbox/xmin");
  auto& ymax = floats("image/object/bbox/ymax");
  auto& xmax = floats("image/object/bbox/xmax");
  auto& area = floats("image/object/area");
  auto& label = integers(kClass);
  auto& crowd = integers("image/object/is_crowd");
  auto& difficult = integers("image/object/difficult");
  for (const images::Box& box : example.boxes) {
    ymin.add_value(box.ymin);
    xmin.add_value(box.xmin);
    ymax.add_value(box.ymax);
    xmax.add_value(box.xmax);
    area.add_value(box.area);
    label.add_value(box.label);
    crowd.add_value(box.crowd ? 1 : 0);
    difficult.add_value(box.difficult ? 1 : 0);
    if (labels == nullptr) continue;
    const auto index = labels->index_of(box.label);
    features[kClassText].mutable_bytes_list()->add_value(index ? labels->entries()[*index].name
                                                               : fmt::format("{}", box.label));
  }
  return serialized(out);
}

std::string write_example(const ClassificationExample& example) {
  tfexample::Example out;
  auto& features = *out.mutable_features()->mutable_feature();
  features[kEncoded].mutable_bytes_list()->add_value(example.image);
  features["image/class/label"].mutable_int64_list()->add_value(example.label);
  if (!example.text.empty()) {
    features["image/class/text"].mutable_bytes_list()->add_value(example.text);
  }
  return serialized(out);
}

}  // namespace muster::records
