#include "trainer/spec/changes.h"

#include <algorithm>

#include "common/documents/json.h"
#include "common/documents/schema.h"
#include "trainer/spec/schema.h"

namespace muster::spec {

namespace {

constexpr size_t kLongestValue = 60;

// docs/guides/resume.md has the same facts in a table.
struct FieldBearing {
  std::string_view path;
  Bearing bearing;
};
constexpr FieldBearing kBearings[] = {{"checkpoint", Bearing::none},
                                      {"summary", Bearing::none},
                                      {"export", Bearing::none},
                                      {"threads", Bearing::none},
                                      {"device", Bearing::none},
                                      {"psDevice", Bearing::none},
                                      {"synchronization.nccl", Bearing::none},
                                      {"determinism", Bearing::none},
                                      {"data.train.cache", Bearing::none},
                                      {"data.train.prefetch", Bearing::none},
                                      {"data.train.imageFolder.maxCorrupt", Bearing::none},
                                      {"data.train.imageCsv.maxCorrupt", Bearing::none},
                                      {"data.train.tfRecord.maxCorrupt", Bearing::none},
                                      {"data.test", Bearing::none},
                                      {"steps", Bearing::end},
                                      {"epochs", Bearing::end},
                                      {"evaluation", Bearing::end},
                                      {"earlyStopping", Bearing::end},
                                      {"stopWhen", Bearing::end},
                                      {"precision", Bearing::end}};

std::string short_text(const Json& value) {
  if (value.is_null()) return "not there";
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kLongestValue) text = text.substr(0, kLongestValue) + "...";
  return text;
}

void compare(const std::string& path, const Json& before, const Json& after,
             std::vector<Change>& found);

void compare_objects(const std::string& path, const Json& before, const Json& after,
                     std::vector<Change>& found) {
  for (const auto& [key, value] : after.items()) {
    compare(child_path(path, key), member(before, key), value, found);
  }
  for (const auto& [key, value] : before.items()) {
    if (!after.contains(key)) compare(child_path(path, key), value, nullptr, found);
  }
}

void compare_lists(const std::string& path, const Json& before, const Json& after,
                   std::vector<Change>& found) {
  for (size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
    compare(child_path(path, i), i < before.size() ? before[i] : Json(),
            i < after.size() ? after[i] : Json(), found);
  }
}

void compare(const std::string& path, const Json& before, const Json& after,
             std::vector<Change>& found) {
  if (before.is_object() && after.is_object()) {
    compare_objects(path, before, after, found);
  } else if (before.is_array() && after.is_array()) {
    compare_lists(path, before, after, found);
  } else if (before != after) {
    found.push_back({path, before, after});
  }
}

}  // namespace

std::string Change::text() const {
  return "was " + short_text(before) + ", is " + short_text(after);
}

std::vector<Change> changes(const Json& before, const Json& after) {
  std::vector<Change> found;
  compare("", before, after, found);
  return found;
}

bool is_below(std::string_view path, std::string_view parent) {
  return path.starts_with(parent) &&
         (path.size() == parent.size() || path[parent.size()] == '.' || path[parent.size()] == '[');
}

Bearing bearing_of(const std::string& path) {
  for (const auto& [parent, bearing] : kBearings)
    if (is_below(path, parent)) return bearing;
  return Bearing::course;
}

std::optional<Json> with_defaults(const Json& training) {
  Document document;
  document.value() = training;
  if (!apply_schema(training_schema(), document).empty()) return std::nullopt;
  return document.value();
}

std::vector<Change> changes_of_weights(const Json& before, const Json& after) {
  std::vector<Change> found = changes(with_defaults(before).value_or(before), after);
  // Results of evaluations influence the weights only through earlyStopping and stopWhen.
  const auto is_given = [&](const char* field) {
    return !member(before, field).is_null() || !member(after, field).is_null();
  };
  const bool evaluations_decide = is_given("earlyStopping") || is_given("stopWhen");
  std::erase_if(found, [&](const Change& change) {
    const bool evaluates =
        is_below(change.path, "evaluation") || is_below(change.path, "data.validation");
    return bearing_of(change.path) == Bearing::none || (evaluates && !evaluations_decide);
  });
  return found;
}

std::string list_changes(const std::vector<Change>& changes, size_t most) {
  const size_t named = std::min(most, changes.size());
  std::string text;
  for (size_t i = 0; i < named; ++i) {
    text += (i == 0 ? "" : ", ") + changes[i].path + " (" + changes[i].text() + ")";
  }
  const size_t rest = changes.size() - named;
  return rest == 0 ? text : text + " and " + std::to_string(rest) + " more";
}

}  // namespace muster::spec
