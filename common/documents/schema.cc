#include "common/documents/schema.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/text/nearest.h"

namespace muster {

namespace {

std::string kind_of(const Json& schema) {
  return schema.value("type", "");
}

bool flag(const Json& schema, const char* name) {
  return schema.value(name, false);
}

std::string number_text(const Json& value) {
  return value.dump();
}

std::string number_bounds(const Json& schema) {
  const bool has_low = schema.contains("minimum"), has_high = schema.contains("maximum");
  const bool above = flag(schema, "exclusiveMinimum"), below = flag(schema, "exclusiveMaximum");
  if (has_low && has_high && !above && !below) {
    return " from " + number_text(schema["minimum"]) + " to " + number_text(schema["maximum"]);
  }
  std::string text;
  if (has_low) text += (above ? " above " : " of at least ") + number_text(schema["minimum"]);
  if (has_high) {
    text += text.empty() ? "" : " and";
    text += (below ? " below " : " of at most ") + number_text(schema["maximum"]);
  }
  return text;
}

// Returns " of 1 to 5 entries", " with exactly 1 field", or "" if the schema sets no bounds.
std::string size_bounds(const Json& schema, const char* low_name, const char* high_name,
                        const std::string& link, const std::string& one, const std::string& many) {
  const size_t low = schema.value(low_name, size_t{0});
  if (!schema.contains(high_name)) {
    if (low == 0) return "";
    return link + "at least " + std::to_string(low) + " " + (low == 1 ? one : many);
  }
  const size_t high = schema[high_name].get<size_t>();
  const std::string end = std::to_string(high) + " " + (high == 1 ? one : many);
  if (low == 0) return link + "at most " + end;
  return low == high ? link + "exactly " + end : link + std::to_string(low) + " to " + end;
}

std::vector<std::string> words_of(const Json& values) {
  std::vector<std::string> words;
  for (const Json& value : values) {
    words.push_back(value.is_string() ? value.get<std::string>() : value.dump());
  }
  return words;
}

std::string pattern_text(const Json& schema) {
  return schema.contains("pattern") ? " matching " + schema["pattern"].get<std::string>() : "";
}

// Names the string that is allowed instead of an integer: a pattern like ^auto$ allows one word.
std::string string_of(const Json& schema) {
  const std::string pattern = schema.value("pattern", "");
  std::string word;
  return RE2::FullMatch(pattern, R"(\^(\w+)\$)", &word) ? word : "a string" + pattern_text(schema);
}

// Describes in words what `schema` asks for.
std::string expectation(const Json& schema) {
  if (schema.contains("enum")) {
    std::vector<std::string> words = words_of(schema["enum"]);
    std::erase(words, "");  // the same as leaving the field out
    return "one of " + join(words);
  }
  if (flag(schema, "x-kubernetes-int-or-string")) {
    return "an integer" + number_bounds(schema) + " or " + string_of(schema);
  }
  const std::string kind = kind_of(schema);
  if (schema.contains("minimum") && schema["minimum"] == schema.value("maximum", Json())) {
    return number_text(schema["minimum"]);
  }
  if (kind == "integer") return "an integer" + number_bounds(schema);
  if (kind == "number") return "a number" + number_bounds(schema);
  if (kind == "boolean") return "true or false";
  if (kind == "array") {
    return "a list" + size_bounds(schema, "minItems", "maxItems", " of ", "entry", "entries");
  }
  if (kind == "object") {
    return "an object" +
           size_bounds(schema, "minProperties", "maxProperties", " with ", "field", "fields");
  }
  return "a string" +
         size_bounds(schema, "minLength", "maxLength", " of ", "character", "characters") +
         pattern_text(schema);
}

size_t code_points(const std::string& text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

bool is_integral(const Json& value) {
  if (value.is_number_integer()) return true;
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  return std::abs(number) <= 9007199254740992.0 && number == std::floor(number);
}

bool has_kind(const Json& value, const std::string& kind) {
  if (kind == "object") return value.is_object();
  if (kind == "array") return value.is_array();
  if (kind == "string") return value.is_string();
  if (kind == "boolean") return value.is_boolean();
  if (kind == "number") return value.is_number();
  if (kind == "integer") return is_integral(value);
  return true;
}

bool within(const Json& schema, const char* low, const char* high, size_t size) {
  return (!schema.contains(low) || size >= schema[low].get<size_t>()) &&
         (!schema.contains(high) || size <= schema[high].get<size_t>());
}

// Returns the number as the program will store it: `format: float` is a float32.
Json kept(const Json& schema, const Json& value) {
  if (schema.value("format", "") != "float") return value;
  const auto number = value.get<double>();
  const bool fits = std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max());
  return fits ? static_cast<double>(static_cast<float>(number)) : HUGE_VAL;
}

// Json compares integers of different signedness and floats by value.
bool within_bounds(const Json& schema, const Json& value) {
  if (schema.contains("minimum")) {
    const Json& low = schema["minimum"];
    if (flag(schema, "exclusiveMinimum") ? !(value > low) : value < low) return false;
  }
  if (schema.contains("maximum")) {
    const Json& high = schema["maximum"];
    if (flag(schema, "exclusiveMaximum") ? !(value < high) : value > high) return false;
  }
  return true;
}

bool number_fits(const Json& schema, const Json& value) {
  const Json number = kept(schema, value);
  if (!within_bounds(schema, number)) return false;
  if (number.is_number_float() && !std::isfinite(number.get<double>())) return false;
  // An integer without a `maximum` must fit into int64.
  return !value.is_number_unsigned() || kind_of(schema) == "number" || schema.contains("maximum") ||
         value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

// Describes in words the value that was found, which does not match `schema`.
std::string found_in_place(const Json& schema, const Json& value) {
  if (value.is_object() && !value.empty() && kind_of(schema) == "object") {
    std::vector<std::string> names;
    for (const auto& [name, unused] : value.items()) names.push_back(name);
    return std::to_string(names.size()) + " (" + join(names) + ")";
  }
  if (value.is_number() && kind_of(schema) == "number" && within_bounds(schema, value)) {
    const auto number = kept(schema, value).get<double>();
    return describe(value) + (std::isfinite(number)
                                  ? ", which a float32 rounds to " + Json(number).dump()
                                  : ", which is more than a float32 holds");
  }
  return describe(value);
}

bool string_fits(const Json& schema, const std::string& text) {
  if (!within(schema, "minLength", "maxLength", code_points(text))) return false;
  if (!schema.contains("pattern")) return true;
  const RE2 pattern(schema["pattern"].get<std::string>(), RE2::Quiet);
  return RE2::PartialMatch(text, pattern);
}

class Walker {
 public:
  explicit Walker(const Document& document) : document_(document) {}

  void walk(const Json& schema, Json& value, const std::string& path) {
    if (full()) return;
    if (value.is_null() && flag(schema, "nullable")) return;
    if (!fits(schema, value)) {
      std::string hint;
      if (schema.contains("enum") && value.is_string()) {
        hint = did_you_mean(value.get_ref<const std::string&>(), words_of(schema["enum"]));
      }
      report(path, expectation(schema), found_in_place(schema, value), hint);
      if (value.is_object() || !has_kind(value, kind_of(schema))) return;
    }
    const bool asks_for_integer =
        kind_of(schema) == "integer" || flag(schema, "x-kubernetes-int-or-string");
    if (asks_for_integer && value.is_number_float() && is_integral(value))
      value = value.get<int64_t>();
    if (value.is_object()) walk_object(schema, value, path);
    if (value.is_array() && schema.contains("items")) {
      for (size_t i = 0; i < value.size(); ++i)
        walk(schema["items"], value[i], child_path(path, i));
    }
  }

  std::vector<Problem> take() { return std::move(problems_); }

 private:
  bool full() const { return problems_.size() >= kMaxProblems; }

  void report(const std::string& path, std::string expected, std::string found, std::string hint) {
    if (full()) return;
    problems_.push_back(
        make_problem(document_, path, std::move(expected), std::move(found), std::move(hint)));
  }

  static bool fits(const Json& schema, const Json& value) {
    if (value.is_null()) return kind_of(schema).empty() && !schema.contains("enum");
    if (flag(schema, "x-kubernetes-int-or-string")) {
      if (!value.is_string() && !is_integral(value)) return false;
    } else if (!has_kind(value, kind_of(schema))) {
      return false;
    }
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      return false;
    }
    if (value.is_number()) return number_fits(schema, value);
    if (value.is_string()) return string_fits(schema, value.get_ref<const std::string&>());
    if (value.is_array()) return within(schema, "minItems", "maxItems", value.size());
    if (value.is_object()) return within(schema, "minProperties", "maxProperties", value.size());
    return true;
  }

  static const Json& properties_of(const Json& schema) {
    static const Json kNone = Json::object();
    return schema.contains("properties") ? schema["properties"] : kNone;
  }

  void walk_object(const Json& schema, Json& value, const std::string& path) {
    const Json& properties = properties_of(schema);
    fill_defaults(properties, value);
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) require(schema, value, path, name);
    }
    for (auto& [key, member] : value.get_ref<Json::object_t&>()) {
      if (full()) return;
      if (const auto known = properties.find(key); known != properties.end()) {
        walk(*known, member, child_path(path, key));
      } else {
        walk_unknown(schema, properties, key, member, path);
      }
    }
  }

  static void fill_defaults(const Json& properties, Json& value) {
    for (const auto& [key, property] : properties.items()) {
      if (!property.contains("default")) continue;
      const auto member = value.find(key);
      if (member == value.end()) {
        value[key] = property["default"];
      } else if (member->is_null() && !flag(property, "nullable")) {
        *member = property["default"];
      }
    }
  }

  void require(const Json& schema, const Json& value, const std::string& path, const Json& name) {
    const Json& properties = properties_of(schema);
    const std::string key = name.get<std::string>();
    for (const auto& [found, unused] : value.items()) {
      const bool is_reported = !properties.contains(found) && !takes_unknown(schema);
      if (is_reported && nearest(found, names_of(properties)) == key) return;
    }
    const auto property = properties.find(key);
    report(child_path(path, key), property == properties.end() ? "a value" : expectation(*property),
           "nothing", "");
  }

  static std::vector<std::string> names_of(const Json& properties) {
    std::vector<std::string> names;
    for (const auto& [name, unused] : properties.items()) names.push_back(name);
    return names;
  }

  static bool takes_unknown(const Json& schema) {
    const auto additional = schema.find("additionalProperties");
    return (additional != schema.end() && (additional->is_object() || additional->get<bool>())) ||
           flag(schema, "x-kubernetes-preserve-unknown-fields");
  }

  void walk_unknown(const Json& schema, const Json& properties, const std::string& key,
                    Json& member, const std::string& path) {
    const auto additional = schema.find("additionalProperties");
    if (additional != schema.end() && additional->is_object()) {
      return walk(*additional, member, child_path(path, key));
    }
    if (takes_unknown(schema)) return;
    const std::vector<std::string> names = names_of(properties);
    report(child_path(path, key),
           names.empty() ? "no field here" : "one of the fields " + join(names),
           "the unknown field " + describe(key).substr(0, describe(key).rfind(" (")),
           did_you_mean(key, names));
    Problem& problem = problems_.back();
    problem.unknown_field = true;
    if (const std::string meant = nearest(key, names); !meant.empty())
      problem.meant = child_path(path, meant);
  }

  const Document& document_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> apply_schema(const Json& schema, Document& document, const std::string& path) {
  Json* value = document.find(path);
  if (value == nullptr) return {};
  Walker walker(document);
  walker.walk(schema, *value, path);
  return walker.take();
}

}  // namespace muster
