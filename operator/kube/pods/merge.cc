#include "operator/kube/pods/merge.h"

#include <algorithm>
#include <string_view>

#include "common/documents/json.h"

namespace muster::kube {

namespace {

// A list of entries with a key. If both sides have an entry with the same key, the two entries are
// merged, or the user's entry replaces the default.
struct KeyedList {
  std::string_view field;
  const char* key;
  bool merged;
};
constexpr KeyedList kKeyedLists[] = {
    {"containers", "name", true},
    {"initContainers", "name", true},
    {"volumes", "name", false},
    {"env", "name", false},
    {"imagePullSecrets", "name", false},
    {"volumeMounts", "mountPath", false},
    {"volumeDevices", "devicePath", false},
    {"ports", "containerPort", false},
};

// These objects hold one of several members that exclude each other, so the user's object replaces
// the default as a whole.
constexpr std::string_view kWhole[] = {"readinessProbe", "livenessProbe", "startupProbe",
                                       "lifecycle", "affinity"};

const KeyedList* keyed_list(std::string_view field) {
  const auto* found = std::ranges::find(kKeyedLists, field, &KeyedList::field);
  return found == std::end(kKeyedLists) ? nullptr : found;
}

Json merge_keyed(Json defaults, const Json& users, const KeyedList& list) {
  for (const Json& entry : users) {
    const Json& name = member(entry, list.key);
    const auto same = std::ranges::find_if(
        defaults, [&](const Json& other) { return member(other, list.key) == name; });
    if (name.is_null() || same == defaults.end()) {
      defaults.push_back(entry);
    } else if (list.merged) {
      *same = merge_template(*same, entry);
    } else {
      *same = entry;
    }
  }
  return defaults;
}

// Whether `toleration` covers the taint of `other`. A toleration without a key covers every taint;
// without an effect, every effect.
bool is_about(const Json& toleration, const Json& other) {
  const std::string key = string_or(toleration, "key", "");
  const std::string effect = string_or(toleration, "effect", "");
  return (key.empty() || key == string_or(other, "key", "")) &&
         (effect.empty() || effect == string_or(other, "effect", ""));
}

Json join_tolerations(const Json& defaults, const Json& users) {
  Json joined = users;
  for (const Json& toleration : defaults) {
    const bool said = std::ranges::any_of(
        users, [&](const Json& of_user) { return is_about(of_user, toleration); });
    if (!said) joined.push_back(toleration);
  }
  return joined;
}

Json merge_field(const std::string& field, Json defaults, const Json& users) {
  if (std::ranges::find(kWhole, field) != std::end(kWhole)) return users;
  if (defaults.is_object() && users.is_object()) return merge_template(defaults, users);
  if (!defaults.is_array() || !users.is_array()) return users;
  if (field == "tolerations") return join_tolerations(defaults, users);
  const KeyedList* list = keyed_list(field);
  return list != nullptr ? merge_keyed(std::move(defaults), users, *list) : users;
}

}  // namespace

Json merge_template(Json defaults, const Json& users) {
  if (!defaults.is_object() || !users.is_object()) return users;
  for (const auto& [field, value] : users.items()) {
    if (value.is_null()) {
      defaults.erase(field);
    } else if (defaults.contains(field)) {
      defaults[field] = merge_field(field, std::move(defaults[field]), value);
    } else {
      defaults[field] = value;
    }
  }
  return defaults;
}

}  // namespace muster::kube
