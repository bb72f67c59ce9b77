#include "trainer/records/label_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/error.h"
#include "common/system/input_file.h"
#include "common/text/utf8.h"
#include "proto/muster/label_map.pb.h"
#include "trainer/records/text_message.h"

namespace muster::records {
namespace {

constexpr uint64_t kMostBytes = uint64_t{16} << 20;
constexpr const char* kBackground = "background";

}  // namespace

LabelMap::LabelMap(std::vector<Entry> entries, const std::string& name)
    : entries_(std::move(entries)) {
  std::ranges::stable_sort(entries_, {}, &Entry::id);
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (entry.id < 0) {
      throw Invalid(fmt::format("{}: expected the id of \"{}\" to be at least 0, found {}", name,
                                entry.name, entry.id));
    }
    if (i > 0 && entries_[i - 1].id == entry.id) {
      throw Invalid(fmt::format("{}: expected each id once, found {} for \"{}\" and \"{}\"", name,
                                entry.id, entries_[i - 1].name, entry.name));
    }
    if (!ids_.emplace(entry.name, entry.id).second) {
      throw Invalid(fmt::format("{}: expected each name once, found \"{}\" for ids {} and {}", name,
                                entry.name, ids_.at(entry.name), entry.id));
    }
    if (entry.display_name.empty()) entry.display_name = entry.name;
  }
  for (const Entry& entry : entries_) ids_.emplace(entry.display_name, entry.id);
}

LabelMap LabelMap::parse(std::string_view text, const std::string& name) {
  require_utf8(text, name);
  labels::LabelMap parsed;
  google::protobuf::TextFormat::ParseInfoTree places;
  if (const std::string error = parse_text(text, parsed, UnknownFields::refused, &places);
      !error.empty())
    throw Invalid(fmt::format("{}: expected a label map, found an error in {}", name, error));
  const auto* const items = labels::LabelMap::descriptor()->FindFieldByName("item");
  const auto* const id = labels::Item::descriptor()->FindFieldByName("id");
  std::vector<Entry> entries;
  for (int i = 0; i < parsed.item_size(); ++i) {
    const labels::Item& item = parsed.item(i);
    if (!item.has_id() || item.name().empty()) {
      throw Invalid(fmt::format(
          "{}: expected a name and an id in each item, found {} in item {}, "
          "which begins in line {}",
          name, item.has_id() ? "no name" : "no id", i + 1, places.GetLocation(items, i).line + 1));
    }
    if (item.id() != 0) {
      entries.push_back({item.id(), item.name(), item.display_name()});
      continue;
    }
    if (item.name() == kBackground || item.display_name() == kBackground) continue;
    const auto place = places.GetTreeForNested(items, i)->GetLocation(id, -1);
    throw Invalid(
        fmt::format("{}: line {}, column {}: expected an id of at least 1 for \"{}\", "
                    "found 0, which stands for the background",
                    name, place.line + 1, place.column + 1, item.name()));
  }
  if (entries.empty()) {
    throw Invalid(
        fmt::format("{}: expected a label map with at least one item of id 1 or above", name));
  }
  return {std::move(entries), name};
}

LabelMap LabelMap::read(const std::filesystem::path& path) {
  return parse(InputFile(path).text(kMostBytes), path.string());
}

std::optional<int32_t> LabelMap::id_of(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<size_t> LabelMap::index_of(int32_t id) const {
  const auto found = std::ranges::lower_bound(entries_, id, {}, &Entry::id);
  if (found == entries_.end() || found->id != id) return std::nullopt;
  return static_cast<size_t>(found - entries_.begin());
}

bool LabelMap::counts_by_id(int64_t classes) const {
  return !entries_.empty() && entries_.front().id >= 1 && entries_.back().id <= classes;
}

int32_t LabelMap::class_of(int32_t id, int64_t classes) const {
  return counts_by_id(classes) ? id - 1 : static_cast<int32_t>(index_of(id).value());
}

std::vector<std::string> LabelMap::names_by_class(int64_t classes) const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    const auto place = static_cast<size_t>(class_of(entry.id, classes));
    while (names.size() < place) names.push_back(std::to_string(names.size() + 1));
    names.push_back(entry.display_name);
  }
  return names;
}

}  // namespace muster::records
