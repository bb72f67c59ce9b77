#include <algorithm>

#include "common/document.h"
#include "common/error.h"

namespace muster {

namespace {

[[noreturn]] void fail(std::string_view path, size_t at, const char* expected) {
  throw Invalid("path '" + std::string(path) + "', character " + std::to_string(at + 1) +
                ": expected " + expected);
}

// Reads `["key"]` or `[12]` at `at`, which it moves past; returns the step.
std::string bracket_step(std::string_view path, size_t& at) {
  const size_t start = at;
  if (path.substr(at + 1, 1) == "\"") {
    std::string key;
    for (at += 2; at < path.size() && path[at] != '"'; ++at) {
      if (path[at] == '\\' && at + 1 < path.size()) ++at;
      key += path[at];
    }
    if (path.substr(std::min(at, path.size()), 2) != "\"]") fail(path, start, "a closing \"]");
    at += 2;
    return key;
  }
  const size_t end = path.find(']', at);
  const std::string_view digits = path.substr(at + 1, end == path.npos ? 0 : end - at - 1);
  const bool number =
      !digits.empty() && digits.size() <= 9 &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number) fail(path, start, "an index such as [0]");
  at = end + 1;
  return std::string(path.substr(start, end + 1 - start));
}

}  // namespace

std::string child_path(const std::string& path, const std::string& key) {
  if (key.empty() || key.find_first_of(".[]\"=") != std::string::npos) {
    std::string step = path + "[\"";
    for (const char c : key) {
      if (c == '"' || c == '\\') step += '\\';
      step += c;
    }
    return step + "\"]";
  }
  return path.empty() ? key : path + "." + key;
}

std::string child_path(const std::string& path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> steps;
  size_t at = 0;
  while (at < path.size()) {
    if (path[at] == '[') {
      steps.push_back(bracket_step(path, at));
      continue;
    }
    if (!steps.empty()) {
      if (path[at] != '.') fail(path, at, "'.' or '['");
      ++at;
    }
    const size_t end = std::min(path.find_first_of(".[", at), path.size());
    if (end == at) fail(path, at, "a field's name");
    steps.emplace_back(path.substr(at, end - at));
    at = end;
  }
  return steps;
}

}  // namespace muster
