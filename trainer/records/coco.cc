#include "trainer/records/coco.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <limits>
#include <span>
#include <unordered_map>

#include "common/error.h"
#include "common/system/input_file.h"
#include "common/text/shorten.h"

namespace muster::records {
namespace {

namespace ondemand = simdjson::ondemand;

struct Annotation {
  int64_t image = 0;
  int64_t category = 0;
  double x = 0, y = 0, width = 0, height = 0;  // in pixels
  double area = 0;
  bool crowd = false;
};

// Reads one file. simdjson goes through the text once, from front to back, and throws
// simdjson_error, to which this adds where it was.
class Parser {
 public:
  explicit Parser(const std::string& name) : name_(name) {}

  CocoAnnotations parse(const simdjson::padded_string& text) {
    try {
      ondemand::parser parser;
      ondemand::document document = parser.iterate(text);
      read_file(document);
    } catch (const simdjson::simdjson_error& error) {
      fail(simdjson::error_message(error.error()));
    }
    place_.clear();
    for (const auto& [seen, key] :
         {std::pair(images_seen_, "images"), std::pair(annotations_seen_, "annotations"),
          std::pair(categories_seen_, "categories")}) {
      if (!seen) fail(fmt::format("expected a list \"{}\", found none", key));
    }
    return joined();
  }

 private:
  [[noreturn]] void fail(std::string_view problem) const {
    throw Invalid(fmt::format("{}: {}expected COCO annotations: {}", name_,
                              place_.empty() ? "" : place_ + ": ", problem));
  }

  // Returns the result of `get`; fails if the value is of another type than it takes, which
  // `expected` names.
  template <typename Get>
  auto typed(ondemand::value value, std::string_view expected, const Get& get) const {
    std::string_view found = value.raw_json_token();
    auto result = get(value);
    if (result.error() != simdjson::INCORRECT_TYPE) return result.value();
    found = found.substr(0, found.find_last_not_of(" \t\r\n") + 1);
    fail(fmt::format("expected {}, found {}", expected, shorten(std::string(found), 40)));
  }

  int64_t whole_number(ondemand::value value) const {
    return typed(value, "a whole number", [](ondemand::value& one) { return one.get_int64(); });
  }

  double number(ondemand::value value) const {
    return typed(value, "a number", [](ondemand::value& one) { return one.get_double(); });
  }

  std::string text(ondemand::value value) const {
    return std::string(
        typed(value, "a text", [](ondemand::value& one) { return one.get_string(); }));
  }

  ondemand::array list(ondemand::value value) const {
    return typed(value, "a list", [](ondemand::value& one) { return one.get_array(); });
  }

  void read_file(ondemand::document& document) {
    for (ondemand::field field : document.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (key == "images") {
        images_seen_ = true;
        each("images", field.value(), [&](ondemand::object object) { add_image(object); });
      } else if (key == "annotations") {
        annotations_seen_ = true;
        each("annotations", field.value(),
             [&](ondemand::object object) { add_annotation(object); });
      } else if (key == "categories") {
        categories_seen_ = true;
        each("categories", field.value(), [&](ondemand::object object) { add_category(object); });
      }
      place_.clear();
    }
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
      fail("found more after the end of the object");
    }
  }

  // Calls `add` for each object of a list.
  template <typename Add>
  void each(const char* list, ondemand::value value, const Add& add) {
    place_ = list;
    size_t index = 0;
    for (ondemand::value item : this->list(value)) {
      place_ = fmt::format("{}[{}]", list, index++);
      add(typed(item, "an object", [](ondemand::value& one) { return one.get_object(); }));
    }
  }

  // Calls `read` with the value of each field that it knows by `key`, and fails if one of the
  // `required` does not occur.
  template <typename Read>
  void fields(ondemand::object object, std::initializer_list<std::string_view> required,
              const Read& read) {
    const std::string item = place_;
    uint32_t seen = 0;
    for (ondemand::field field : object) {
      const std::string_view key = field.unescaped_key();
      uint32_t bit = 1;
      for (const std::string_view name : required) {
        if (key == name) seen |= bit;
        bit <<= 1;
      }
      place_ = item;
      place_ += '.';
      place_ += key;
      read(key, field.value());
    }
    place_ = item;
    uint32_t bit = 1;
    for (const std::string_view name : required) {
      if ((seen & bit) == 0) fail(fmt::format("expected \"{}\", found none", name));
      bit <<= 1;
    }
  }

  void add_image(ondemand::object object) {
    CocoImage image;
    fields(object, {"id", "file_name", "height", "width"},
           [&](std::string_view key, ondemand::value value) {
             if (key == "id") image.id = whole_number(value);
             if (key == "file_name") image.file_name = text(value);
             if (key == "height") image.height = side(value);
             if (key == "width") image.width = side(value);
           });
    if (!images_.emplace(image.id, result_.images.size()).second) {
      fail(fmt::format("expected each id once, found {} again", image.id));
    }
    result_.images.push_back(std::move(image));
  }

  int64_t side(ondemand::value value) const {
    const int64_t side = whole_number(value);
    if (side < 1) fail(fmt::format("expected at least 1, found {}", side));
    return side;
  }

  void add_annotation(ondemand::object object) {
    Annotation annotation;
    fields(object, {"image_id", "category_id", "bbox"},
           [&](std::string_view key, ondemand::value value) {
             if (key == "image_id") annotation.image = whole_number(value);
             if (key == "category_id") annotation.category = whole_number(value);
             if (key == "bbox") read_corners(value, annotation);
             if (key == "area") annotation.area = number(value);
             if (key == "iscrowd") annotation.crowd = whole_number(value) != 0;
           });
    annotations_.push_back(annotation);
  }

  void read_corners(ondemand::value value, Annotation& annotation) const {
    double* const numbers[] = {&annotation.x, &annotation.y, &annotation.width, &annotation.height};
    size_t count = 0;
    for (ondemand::value item : list(value)) {
      const double one = number(item);
      if (count < std::size(numbers)) *numbers[count] = one;
      ++count;
    }
    if (count != std::size(numbers)) {
      fail(fmt::format("expected 4 numbers (x, y, width, height), found {}", count));
    }
  }

  void add_category(ondemand::object object) {
    LabelMap::Entry category;
    fields(object, {"id", "name"}, [&](std::string_view key, ondemand::value value) {
      if (key == "name") category.name = text(value);
      if (key != "id") return;
      const int64_t id = whole_number(value);
      if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
        fail(fmt::format("expected 0 to {}, found {}", std::numeric_limits<int32_t>::max(), id));
      }
      category.id = static_cast<int32_t>(id);
    });
    categories_.push_back(std::move(category));
  }

  // Gives the annotations to their images: the lists may come in any order.
  CocoAnnotations joined() {
    result_.categories = LabelMap(std::move(categories_), name_ + ": categories");
    for (size_t i = 0; i < annotations_.size(); ++i) {
      const Annotation& annotation = annotations_[i];
      const auto image = images_.find(annotation.image);
      if (image == images_.end()) {
        ++result_.without_image;
        continue;
      }
      const auto label = static_cast<int32_t>(annotation.category);
      if (label != annotation.category || !result_.categories.index_of(label)) {
        place_ = fmt::format("annotations[{}].category_id", i);
        fail(fmt::format("expected the id of a category, found {}", annotation.category));
      }
      CocoImage& owner = result_.images[image->second];
      const auto height = static_cast<double>(owner.height);
      const auto width = static_cast<double>(owner.width);
      owner.boxes.push_back(
          {.ymin = static_cast<float>(annotation.y / height),
           .xmin = static_cast<float>(annotation.x / width),
           .ymax = static_cast<float>((annotation.y + annotation.height) / height),
           .xmax = static_cast<float>((annotation.x + annotation.width) / width),
           .label = label,
           .crowd = annotation.crowd,
           .area = static_cast<float>(annotation.area)});
    }
    for (CocoImage& image : result_.images) result_.problems += images::keep_usable(image.boxes);
    return std::move(result_);
  }

  const std::string& name_;
  std::string place_;  // where the parser is: "annotations[3].bbox"
  bool images_seen_ = false, annotations_seen_ = false, categories_seen_ = false;
  CocoAnnotations result_;
  std::unordered_map<int64_t, size_t> images_;  // index in result_.images, by id
  std::vector<Annotation> annotations_;
  std::vector<LabelMap::Entry> categories_;
};

}  // namespace

CocoAnnotations CocoAnnotations::parse(std::string_view json, const std::string& name) {
  return Parser(name).parse(simdjson::padded_string(json));
}

CocoAnnotations CocoAnnotations::read(const std::filesystem::path& path) {
  const InputFile file(path);
  if (file.size() > simdjson::SIMDJSON_MAXSIZE_BYTES) {
    throw Invalid(fmt::format("{}: expected at most {} bytes of JSON, found {}", path.string(),
                              simdjson::SIMDJSON_MAXSIZE_BYTES, file.size()));
  }
  simdjson::padded_string text(file.size());
  file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return Parser(path.string()).parse(text);
}

}  // namespace muster::records
