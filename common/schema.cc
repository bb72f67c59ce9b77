#include "common/schema.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

std::string bounds(const Json& schema, const char* low, const char* high, const std::string& unit) {
  const bool has_low = schema.contains(low), has_high = schema.contains(high);
  if (has_low && has_high) {
    return " from " + number_text(schema[low]) + " to " + number_text(schema[high]) + unit;
  }
  if (has_low) return " of at least " + number_text(schema[low]) + unit;
  if (has_high) return " of at most " + number_text(schema[high]) + unit;
  return "";
}

std::string number_bounds(const Json& schema) {
  const bool above = flag(schema, "exclusiveMinimum"), below = flag(schema, "exclusiveMaximum");
  if (!above && !below) return bounds(schema, "minimum", "maximum", "");
  std::string text;
  if (schema.contains("minimum")) {
    text += (above ? " above " : " of at least ") + number_text(schema["minimum"]);
  }
  if (schema.contains("maximum")) {
    text += text.empty() ? "" : " and";
    text += (below ? " below " : " of at most ") + number_text(schema["maximum"]);
  }
  return text;
}

std::vector<std::string> words_of(const Json& values) {
  std::vector<std::string> words;
  for (const Json& value : values) {
    words.push_back(value.is_string() ? value.get<std::string>() : value.dump());
  }
  return words;
}

// What `schema` asks for, in words.
std::string expectation(const Json& schema) {
  if (schema.contains("enum")) return "one of " + join(words_of(schema["enum"]));
  if (flag(schema, "x-kubernetes-int-or-string")) return "an integer or a string";
  const std::string kind = kind_of(schema);
  if (kind == "integer") return "an integer" + number_bounds(schema);
  if (kind == "number") return "a number" + number_bounds(schema);
  if (kind == "boolean") return "true or false";
  if (kind == "array") return "a list" + bounds(schema, "minItems", "maxItems", " entries");
  if (kind == "object")
    return "an object" + bounds(schema, "minProperties", "maxProperties", " fields");
  std::string text = "a string" + bounds(schema, "minLength", "maxLength", " characters");
  if (schema.contains("pattern")) text += " matching " + schema["pattern"].get<std::string>();
  return text;
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

bool number_fits(const Json& schema, const Json& value) {
  // Json compares integers of different signs and floats by value.
  if (schema.contains("minimum")) {
    const Json& low = schema["minimum"];
    if (flag(schema, "exclusiveMinimum") ? !(value > low) : value < low) return false;
  }
  if (schema.contains("maximum")) {
    const Json& high = schema["maximum"];
    if (flag(schema, "exclusiveMaximum") ? !(value < high) : value > high) return false;
  }
  // What does not say int64 by its bounds must still fit there.
  return !value.is_number_unsigned() || kind_of(schema) == "number" || schema.contains("maximum") ||
         value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
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
      report(path, expectation(schema), describe(value), hint);
      if (!has_kind(value, kind_of(schema))) return;
    }
    if (kind_of(schema) == "integer" && value.is_number_float()) value = value.get<int64_t>();
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
    if (flag(schema, "x-kubernetes-int-or-string")) return value.is_string() || is_integral(value);
    if (!has_kind(value, kind_of(schema))) return false;
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

  void walk_object(const Json& schema, Json& value, const std::string& path) {
    static const Json kNone = Json::object();
    const Json& properties = schema.contains("properties") ? schema["properties"] : kNone;
    fill_defaults(properties, value);
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) require(properties, path, name);
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

  void require(const Json& properties, const std::string& path, const Json& name) {
    const std::string key = name.get<std::string>();
    const auto property = properties.find(key);
    report(child_path(path, key), property == properties.end() ? "a value" : expectation(*property),
           "nothing", "");
  }

  void walk_unknown(const Json& schema, const Json& properties, const std::string& key,
                    Json& member, const std::string& path) {
    const auto additional = schema.find("additionalProperties");
    if (additional != schema.end() && additional->is_object()) {
      return walk(*additional, member, child_path(path, key));
    }
    if (additional != schema.end() && additional->get<bool>()) return;
    if (flag(schema, "x-kubernetes-preserve-unknown-fields")) return;
    std::vector<std::string> names;
    for (const auto& [name, unused] : properties.items()) names.push_back(name);
    report(child_path(path, key),
           names.empty() ? "no field here" : "one of the fields " + join(names),
           "the unknown field " + describe(key).substr(0, describe(key).rfind(" (")),
           did_you_mean(key, names));
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
