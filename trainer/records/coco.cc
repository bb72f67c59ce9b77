#include "trainer/records/coco.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

#include "common/error.h"
#include "common/system/input_file.h"
#include "common/text/byte_order_mark.h"
#include "common/text/shorten.h"
#include "common/text/utf8.h"
#include "common/text/windows_path.h"

namespace muster::records {
namespace {

namespace ondemand = simdjson::ondemand;

struct Annotation {
  int64_t image = 0;
  int64_t category = 0;
  const char* place = nullptr;                 // place of the category in the text
  const char* begin = nullptr;                 // place of the whole annotation
  double x = 0, y = 0, width = 0, height = 0;  // in pixels
  double area = 0;
  bool crowd = false;
};

struct Category {
  LabelMap::Entry entry;
  std::string parent;  // the supercategory's name
};

std::string_view trimmed(std::string_view text) {
  constexpr const char* kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

template <typename Number>
std::optional<Number> parsed(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Reads one file. simdjson goes through the text once, from front to back, and throws
// simdjson_error; the parser adds the place to the error.
class Parser {
 public:
  explicit Parser(const std::string& name) : name_(name) {}

  CocoAnnotations parse(const simdjson::padded_string& padded) {
    text_ = without_byte_order_mark(std::string_view(padded));
    ondemand::parser parser;
    ondemand::document document;
    try {
      document = parser.iterate(
          simdjson::padded_string_view(text_, text_.size() + simdjson::SIMDJSON_PADDING));
      at_ = text_.data();
      read_file(document);
    } catch (const simdjson::simdjson_error& error) {
      fail_json(error.error(), document);
    }
    place_.clear();
    at_ = nullptr;
    for (const auto& [seen, key] :
         {std::pair(images_seen_, "images"), std::pair(annotations_seen_, "annotations"),
          std::pair(categories_seen_, "categories")}) {
      if (!seen) fail(fmt::format("expected a list \"{}\", found none", key));
    }
    return joined();
  }

 private:
  // Says what is no JSON, and where. Where the text is cut off, simdjson's place is the beginning
  // of what is not closed, or none.
  [[noreturn]] void fail_json(simdjson::error_code error, ondemand::document& document) {
    require_utf8(text_, name_);
    if (trimmed(text_).empty()) fail("expected an object, found an empty text");
    const bool is_cut =
        error == simdjson::INCOMPLETE_ARRAY_OR_OBJECT || error == simdjson::UNCLOSED_STRING;
    const bool is_begun = at_ != nullptr;
    if (!is_begun && !is_cut) fail(simdjson::error_message(error));
    at_ = text_.data() + text_.size();
    if (!is_cut && document.current_location().error() == simdjson::SUCCESS)
      at_ = document.current_location().value_unsafe();
    const auto offset = std::min(static_cast<size_t>(at_ - text_.data()), text_.size());
    const std::string_view rest = trimmed(text_.substr(offset));
    if (rest.empty()) {
      place_.clear();
      fail(fmt::format(
          "expected {}, found the end of the text, which may be cut off",
          error == simdjson::UNCLOSED_STRING ? "a closing quotation mark" : "a closing bracket"));
    }
    fail(fmt::format("expected JSON, found {} ({})",
                     shorten(std::string(rest.substr(0, rest.find('\n'))), 40),
                     simdjson::error_message(error)));
  }

  [[noreturn]] void fail(std::string_view problem) const {
    throw Invalid(fmt::format("{}: {}expected COCO annotations: {}{}", name_,
                              place_.empty() ? "" : place_ + ": ", problem, line_and_column()));
  }

  // Returns line and column of at_ in words; "" if at_ is not in the text.
  std::string line_and_column() const {
    if (at_ == nullptr || std::less<>()(at_, text_.data()) ||
        std::less<>()(text_.data() + text_.size(), at_))
      return "";
    const std::string_view before = text_.substr(0, static_cast<size_t>(at_ - text_.data()));
    const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
    return fmt::format(" (line {}, column {})", std::ranges::count(before, '\n') + 1,
                       before.size() - line_begin + 1);
  }

  [[noreturn]] void fail_type(std::string_view expected, std::string_view token) const {
    fail(fmt::format("expected {}, found {}", expected, shorten(std::string(trimmed(token)), 40)));
  }

  // Returns the result of `get`. Fails, naming `expected`, if the value has another type than `get`
  // reads.
  template <typename Get>
  auto typed(ondemand::value value, std::string_view expected, const Get& get) const {
    const std::string_view found = value.raw_json_token();
    auto result = get(value);
    if (result.error() != simdjson::INCORRECT_TYPE) return result.value();
    fail_type(expected, found);
  }

  // Returns a number, or a text or boolean that stands for one, as its digits.
  std::string_view digits(ondemand::value value, std::string_view expected) const {
    const std::string_view token = value.raw_json_token();
    ondemand::json_type type{};
    if (value.type().get(type) != simdjson::SUCCESS) fail_type(expected, token);  // such as NaN
    switch (type) {
      case ondemand::json_type::number:
        return trimmed(token);
      case ondemand::json_type::string:
        return trimmed(value.get_string());
      case ondemand::json_type::boolean:
        return value.get_bool() ? "1" : "0";
      default:
        fail_type(expected, token);
    }
  }

  // Returns nothing for a text that is not a whole number. 7.0 is a whole number.
  static std::optional<int64_t> whole(std::string_view digits) {
    if (const auto number = parsed<int64_t>(digits)) return number;
    // Up to this number doubles contain every whole number.
    constexpr double kMost = 9007199254740992.0;
    const auto number = parsed<double>(digits);
    if (!number || !(std::abs(*number) <= kMost) || *number != std::trunc(*number))
      return std::nullopt;
    return static_cast<int64_t>(*number);
  }

  int64_t whole_number(ondemand::value value) const {
    constexpr const char* kExpected = "a whole number";
    const std::string_view token = value.raw_json_token();
    const auto number = whole(digits(value, kExpected));
    if (!number) fail_type(kExpected, token);
    return *number;
  }

  double number(ondemand::value value) const {
    constexpr const char* kExpected = "a number";
    const std::string_view token = value.raw_json_token();
    const auto number = parsed<double>(digits(value, kExpected));
    if (!number) fail_type(kExpected, token);
    return *number;
  }

  // Returns the id of an image. One that is no number gets a number that no other has. Of texts,
  // only that of a number as a program writes it stands for the number: "7" does, "007" does not.
  int64_t image_id(ondemand::value value) {
    const bool is_text = value.type() == ondemand::json_type::string;
    const std::string_view text =
        is_text ? std::string_view(value.get_string()) : digits(value, "a number or a text");
    if (const auto number = whole(text); number && (!is_text || std::to_string(*number) == text))
      return *number;
    const auto count = static_cast<int64_t>(text_ids_.size());
    return text_ids_.emplace(std::string(text), std::numeric_limits<int64_t>::min() + count)
        .first->second;
  }

  std::string text(ondemand::value value) const {
    return std::string(
        typed(value, "a text", [](ondemand::value& one) { return one.get_string(); }));
  }

  ondemand::array list(ondemand::value value) const {
    return typed(value, "a list", [](ondemand::value& one) { return one.get_array(); });
  }

  void read_file(ondemand::document& document) {
    const ondemand::json_type type = document.type();
    if (type != ondemand::json_type::object)
      fail_type("an object with images, annotations and categories",
                type == ondemand::json_type::array ? "a list" : text_);
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
      at_ = item.raw_json_token().data();
      add(typed(item, "an object", [](ondemand::value& one) { return one.get_object(); }));
    }
  }

  // Calls `read` with the value of each field that it knows by `key`, and fails if one of the
  // `required` does not occur. A field that is null counts as missing.
  template <typename Read>
  void fields(ondemand::object object, std::initializer_list<std::string_view> required,
              const Read& read) {
    const std::string item = place_;
    const char* const begin = at_;
    uint32_t seen = 0;
    for (ondemand::field field : object) {
      const std::string_view key = field.unescaped_key();
      ondemand::value value = field.value();
      place_ = item;
      place_ += '.';
      place_ += key;
      at_ = value.raw_json_token().data();
      if (value.is_null()) continue;
      uint32_t bit = 1;
      for (const std::string_view name : required) {
        if (key == name) seen |= bit;
        bit <<= 1;
      }
      read(key, value);
    }
    place_ = item;
    at_ = begin;
    uint32_t bit = 1;
    for (const std::string_view name : required) {
      if ((seen & bit) == 0) fail(fmt::format("expected \"{}\", found none", name));
      bit <<= 1;
    }
  }

  void add_image(ondemand::object object) {
    CocoImage image;
    std::optional<int64_t> id;
    fields(object, {"id", "file_name"}, [&](std::string_view key, ondemand::value value) {
      if (key == "id") id = image_id(value);
      if (key == "file_name") image.file_name = path(value);
      if (key == "height") image.height = side(value);
      if (key == "width") image.width = side(value);
    });
    if (image.height == 0 || image.width == 0) image.height = image.width = 0;
    if (!images_.emplace(*id, result_.images.size()).second)
      fail(fmt::format("expected each id once, found the one of {} again", image.file_name));
    result_.images.push_back(std::move(image));
  }

  std::string path(ondemand::value value) const {
    std::string path = text(value);
    if (is_windows_path(path))
      fail(fmt::format("expected a path on this system, found {}, a path on Windows", path));
    return path;
  }

  int64_t side(ondemand::value value) const {
    const int64_t side = whole_number(value);
    if (side < 1) fail(fmt::format("expected at least 1, found {}", side));
    return side;
  }

  void add_annotation(ondemand::object object) {
    Annotation annotation;
    annotation.begin = at_;
    fields(object, {"image_id", "category_id", "bbox"},
           [&](std::string_view key, ondemand::value value) {
             if (key == "image_id") annotation.image = image_id(value);
             if (key == "category_id") {
               annotation.category = whole_number(value);
               annotation.place = at_;
             }
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
    Category category;
    fields(object, {"id", "name"}, [&](std::string_view key, ondemand::value value) {
      if (key == "name") category.entry.name = text(value);
      if (key == "supercategory" && value.type() == ondemand::json_type::string)
        category.parent = text(value);
      if (key != "id") return;
      const int64_t id = whole_number(value);
      if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
        fail(fmt::format("expected 0 to {}, found {}", std::numeric_limits<int32_t>::max(), id));
      }
      category.entry.id = static_cast<int32_t>(id);
    });
    categories_.push_back(std::move(category));
  }

  // Decides by the list of categories alone which ones are no classes, so that files with the same
  // list number the classes alike, whatever boxes they have.
  void leave_out_categories() {
    std::set<std::string> names, parents;
    std::set<int32_t> ids;
    for (const auto& [entry, parent] : categories_) {
      ids.insert(entry.id);
      names.insert(entry.name);
      if (parent != entry.name) parents.insert(parent);
    }
    if (ids.size() < categories_.size()) return;  // the label map refuses an id that is there twice
    join_categories_of_one_name();
    std::erase_if(categories_, [&](const Category& category) {
      const LabelMap::Entry& entry = category.entry;
      if (entry.id != 0 || !parents.contains(entry.name) || names.contains(category.parent))
        return false;
      group_ = entry.name;
      result_.categories_left_out.push_back(entry.name);
      return true;
    });
  }

  // The smallest id above 0 stands for all categories of its name. Where annotations have several
  // of them, all stay, and the label map refuses them.
  void join_categories_of_one_name() {
    std::set<int64_t> used;
    for (const Annotation& annotation : annotations_) used.insert(annotation.category);
    std::map<std::string, std::set<int32_t>> ids;
    for (const Category& category : categories_) ids[category.entry.name].insert(category.entry.id);
    std::erase_if(categories_, [&](const Category& category) {
      const auto& [id, name, display_name] = category.entry;
      const std::set<int32_t>& same = ids[name];
      const int32_t kept =
          *same.begin() > 0 || same.size() == 1 ? *same.begin() : *same.upper_bound(0);
      const auto is_used = [&](int32_t one) { return used.contains(one); };
      if (id == kept || std::ranges::count_if(same, is_used) > 1) return false;
      same_as_.emplace(id, kept);
      result_.categories_left_out.push_back(name);
      return true;
    });
  }

  // Adds the annotations to their images, because the lists may come in any order.
  CocoAnnotations joined() {
    leave_out_categories();
    std::vector<LabelMap::Entry> entries;
    for (Category& category : categories_) entries.push_back(std::move(category.entry));
    result_.categories = LabelMap(std::move(entries), name_ + ": categories");
    for (size_t i = 0; i < annotations_.size(); ++i) {
      const Annotation& annotation = annotations_[i];
      const auto image = images_.find(annotation.image);
      if (image == images_.end()) {
        if (result_.without_image++ == 0) result_.first_without_image = place_of(i);
        continue;
      }
      const auto same = same_as_.find(annotation.category);
      const int64_t category = same == same_as_.end() ? annotation.category : same->second;
      const auto label = static_cast<int32_t>(category);
      if (label != category || !result_.categories.index_of(label)) {
        place_ = fmt::format("annotations[{}].category_id", i);
        at_ = annotation.place;
        fail_category(category);
      }
      CocoImage& of = result_.images[image->second];
      add_box(annotation, label, of);
      if (is_by_corners(annotation, of) && result_.by_corners++ == 0)
        result_.first_by_corners = place_of(i);
    }
    for (CocoImage& image : result_.images)
      if (image.height > 0) result_.problems += images::keep_usable(image.boxes);
    return std::move(result_);
  }

  [[noreturn]] void fail_category(int64_t category) const {
    if (category == 0 && !group_.empty())
      fail(
          fmt::format("expected the id of a class, found 0 for \"{}\", which is the supercategory "
                      "of others and no class itself; with an id above 0 it is one",
                      group_));
    fail(fmt::format("expected the id of a category, found {}", category));
  }

  // Returns the place of an annotation in words.
  std::string place_of(size_t index) {
    at_ = annotations_[index].begin;
    return fmt::format("annotations[{}]{}", index, line_and_column());
  }

  // Whether the numbers of a box fit its picture only as the corners x1, y1, x2, y2.
  static bool is_by_corners(const Annotation& box, const CocoImage& image) {
    const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
    const bool is_outside = box.x + box.width > width + 1 || box.y + box.height > height + 1;
    return is_outside && std::min(box.x, box.y) >= 0 && box.width > box.x && box.height > box.y &&
           box.width <= width && box.height <= height;
  }

  void add_box(const Annotation& annotation, int32_t label, CocoImage& image) {
    const double right = annotation.x + annotation.width, low = annotation.y + annotation.height;
    if (std::min(annotation.x, annotation.y) >= 0 && std::max(right, low) <= 1 &&
        std::min(annotation.width, annotation.height) > 0) {
      ++result_.problems.in_first_pixel;
      return;
    }
    const double height = static_cast<double>(std::max<int64_t>(image.height, 1));
    const double width = static_cast<double>(std::max<int64_t>(image.width, 1));
    image.boxes.push_back({.ymin = static_cast<float>(annotation.y / height),
                           .xmin = static_cast<float>(annotation.x / width),
                           .ymax = static_cast<float>(low / height),
                           .xmax = static_cast<float>(right / width),
                           .label = label,
                           .crowd = annotation.crowd,
                           .area = static_cast<float>(annotation.area)});
  }

  const std::string& name_;
  std::string_view text_;
  std::string place_;         // the parser's place, for example "annotations[3].bbox"
  const char* at_ = nullptr;  // place_ in the text; null: nowhere
  bool images_seen_ = false, annotations_seen_ = false, categories_seen_ = false;
  CocoAnnotations result_;
  std::unordered_map<int64_t, size_t> images_;  // index in result_.images, by id
  std::unordered_map<std::string, int64_t> text_ids_;
  std::vector<Annotation> annotations_;
  std::vector<Category> categories_;
  std::map<int64_t, int32_t> same_as_;  // the id that stands for a category, by the left out one's
  std::string group_;                   // the left out supercategory of id 0
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
