#include "operator/local/yaml_text.h"

#include <algorithm>
#include <string_view>

namespace muster::local {

namespace {

// Whether a text can be a plain scalar: no reader of YAML 1.1 or 1.2 could read it as another type.
bool is_plain(std::string_view text) {
  static constexpr std::string_view kWords[] = {"null", "true", "false", "yes", "no", "on",
                                                "off",  "y",    "n",     "nan", "inf"};
  if (text.empty() || !std::isalpha(static_cast<unsigned char>(text.front()))) return false;
  const bool tame = std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ||
           c == '/';
  });
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return tame && std::ranges::find(kWords, lower) == std::end(kWords);
}

// A double-quoted string of JSON is also one of YAML.
std::string scalar(const Json& value) {
  if (value.is_string() && is_plain(value.get_ref<const std::string&>())) {
    return value.get<std::string>();
  }
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_block(const Json& value) {
  return value.is_structured() && !value.empty();
}

void write(const Json& value, size_t indent, std::string& out);

void write_child(const Json& value, size_t indent, std::string& out) {
  if (is_block(value)) {
    out += '\n';
    write(value, indent, out);
  } else {
    out += ' ' + scalar(value) + '\n';
  }
}

void write(const Json& value, size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) {
      out += margin + scalar(Json(key)) + ':';
      write_child(child, indent + 2, out);
    }
    return;
  }
  for (const Json& child : value) {
    if (!is_block(child)) {
      out += margin + "- " + scalar(child) + '\n';
      continue;
    }
    std::string block;
    write(child, indent + 2, block);
    out += margin + "- " + block.substr(indent + 2);
  }
}

}  // namespace

std::string to_yaml(const Json& value) {
  std::string out;
  if (is_block(value)) {
    write(value, 0, out);
  } else {
    out = scalar(value) + '\n';
  }
  return out;
}

}  // namespace muster::local
