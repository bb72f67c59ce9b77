#include "trainer/records/file_pattern.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "common/error.h"

namespace muster::records {
namespace {

namespace fs = std::filesystem;

struct Shard {
  std::string set;  // the path without index and count
  uint64_t index = 0;
  uint64_t count = 0;
  fs::path path;
};

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

std::optional<uint64_t> number(std::string_view digits) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Returns the shard that the last "<index>-of-<count>" in a path's file name gives.
std::optional<Shard> shard_of(const fs::path& path) {
  constexpr std::string_view kOf = "-of-";
  const std::string name = path.filename().string();
  for (size_t of = name.rfind(kOf); of != std::string::npos && of > 0;
       of = name.rfind(kOf, of - 1)) {
    size_t begin = of, end = of + kOf.size();
    while (begin > 0 && is_digit(name[begin - 1])) --begin;
    while (end < name.size() && is_digit(name[end])) ++end;
    const std::string_view text = name;
    const auto index = number(text.substr(begin, of - begin));
    const auto count = number(text.substr(of + kOf.size(), end - of - kOf.size()));
    if (!index || !count) continue;
    const fs::path rest =
        path.parent_path() / (name.substr(0, begin) + kOf.data() + name.substr(end));
    return Shard{rest.string(), *index, *count, path};
  }
  return std::nullopt;
}

std::vector<fs::path> matches(const std::string& pattern) {
  struct Found : glob_t {
    Found() : glob_t{} {}
    ~Found() { ::globfree(this); }
  } found;
  // A missing folder has no files.
  const auto cannot_read = [](const char*, int error) {
    return error == ENOENT || error == ENOTDIR ? 0 : 1;
  };
  const int status = ::glob(pattern.c_str(), 0, cannot_read, &found);
  if (status == GLOB_ABORTED || status == GLOB_NOSPACE) {
    throw Unavailable(fmt::format("{}: cannot read a folder of this pattern", pattern));
  }
  std::vector<fs::path> paths;
  for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  if (paths.empty()) {
    throw Invalid(
        fmt::format("{}: expected at least one file with this name, found none", pattern));
  }
  std::ranges::sort(paths);
  return paths;
}

// Checks that a set, sorted by index, has each of its shards once.
void check(const std::vector<Shard>& set, const std::string& pattern) {
  const uint64_t count = set.front().count;
  uint64_t expected = 0;
  for (const Shard& shard : set) {
    if (shard.count != count) {
      throw Invalid(fmt::format("{}: expected shards of one set, found {} and {}", pattern,
                                set.front().path.string(), shard.path.string()));
    }
    if (shard.index >= count) {
      throw Invalid(fmt::format("{}: expected an index below {}, found {}", pattern, count,
                                shard.path.string()));
    }
    if (shard.index < expected) {
      throw Invalid(fmt::format("{}: expected shard {} of {} once, found it again as {}", pattern,
                                shard.index, count, shard.path.string()));
    }
    if (shard.index > expected) break;
    ++expected;
  }
  if (expected < count) {
    throw Invalid(fmt::format("{}: expected {} shards, found {}: shard {} is missing", pattern,
                              count, set.size(), expected));
  }
}

}  // namespace

std::vector<fs::path> expand(const std::string& pattern) {
  std::vector<fs::path> paths = matches(pattern);
  if (pattern.find_first_of("*?[") == std::string::npos) return paths;
  std::map<std::string, std::vector<Shard>> sets;
  std::optional<fs::path> other;
  for (const fs::path& path : paths) {
    if (auto shard = shard_of(path)) {
      sets[shard->set].push_back(std::move(*shard));
    } else {
      other = path;
    }
  }
  if (sets.empty()) return paths;
  if (other) {
    throw Invalid(fmt::format("{}: expected only shards such as {}, found {}", pattern,
                              sets.begin()->second.front().path.string(), other->string()));
  }
  paths.clear();
  for (auto& [name, set] : sets) {
    std::ranges::stable_sort(set, {}, &Shard::index);
    check(set, pattern);
    for (const Shard& shard : set) paths.push_back(shard.path);
  }
  return paths;
}

}  // namespace muster::records
