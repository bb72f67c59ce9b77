#include <algorithm>
#include <charconv>

#include "common/document.h"
#include "common/error.h"

namespace muster {

namespace {

// Returns "[12]" as 12. Precondition: split_path made it.
size_t index_of(const std::string& step) {
  size_t index = 0;
  std::from_chars(step.data() + 1, step.data() + step.size() - 1, index);
  return index;
}

bool is_index(const std::string& step) {
  return step.size() > 2 && step.front() == '[' && step.back() == ']';
}

[[noreturn]] void cannot_set(std::string_view path, const std::string& reason) {
  throw Invalid("cannot set " + std::string(path) + ": " + reason);
}

// Returns the member or entry `step` of `value`, and makes it if need be.
Json& descend(Json& value, const std::string& step, std::string_view path) {
  if (is_index(step) && !value.is_object()) {
    const size_t index = index_of(step);
    if (!value.is_array()) cannot_set(path, "expected a list before " + step);
    if (index > value.size()) {
      cannot_set(
          path, "expected an index of at most " + std::to_string(value.size()) + ", found " + step);
    }
    if (index == value.size()) value.push_back(nullptr);
    return value[index];
  }
  if (value.is_null()) value = Json::object();
  if (!value.is_object()) {
    cannot_set(path,
               "expected an object before '" + step + "', found " + std::string(value.type_name()));
  }
  return value[step];
}

}  // namespace

const Json* Document::find(std::string_view path) const {
  const Json* value = &value_;
  for (const std::string& step : split_path(path)) {
    if (value->is_object()) {
      const auto member = value->find(step);
      if (member == value->end()) return nullptr;
      value = &*member;
    } else if (value->is_array() && is_index(step) && index_of(step) < value->size()) {
      value = &(*value)[index_of(step)];
    } else {
      return nullptr;
    }
  }
  return value;
}

Json* Document::find(std::string_view path) {
  return const_cast<Json*>(static_cast<const Document*>(this)->find(path));
}

void Document::set(std::string_view path, std::string_view text) {
  const std::vector<std::string> steps = split_path(path);
  if (steps.empty()) cannot_set(path, "expected a path such as spec.training.epochs");
  if (steps.size() > 64) cannot_set(path, "expected at most 64 levels of nesting");
  Json replacement = parse(text, "--set " + std::string(path)).value();
  Json copy = value_;  // a path that fails half-way leaves nothing behind
  Json* target = &copy;
  for (const std::string& step : steps) target = &descend(*target, step, path);
  *target = std::move(replacement);
  value_ = std::move(copy);
  Lines* lines = &lines_;
  for (const std::string& step : steps) {
    auto child = std::find_if(lines->children.begin(), lines->children.end(),
                              [&](const Lines& candidate) { return candidate.key == step; });
    if (child == lines->children.end()) {
      lines->children.push_back({step, 0, {}});
      child = std::prev(lines->children.end());
    }
    lines = &*child;
  }
  *lines = {lines->key, 0, {}};
}

}  // namespace muster
