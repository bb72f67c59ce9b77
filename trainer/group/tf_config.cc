#include "trainer/group/tf_config.h"

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/exit_code.h"
#include "trainer/group/address.h"

namespace muster::group {

using nlohmann::json;

namespace {

constexpr size_t kMaximumText = 4 << 20;
constexpr int kMaximumDepth = 16;

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text + " (" + value.type_name() + ")";
}

[[noreturn]] void fail(const std::string& field, const std::string& expected,
                       const std::string& found) {
  throw Invalid(field + ": expected " + expected + ", found " + found, kBadConfig);
}

json parse_object(std::string_view text, const std::string& name) {
  if (text.size() > kMaximumText)
    fail(name, "at most 4 MiB", std::to_string(text.size()) + " bytes");
  bool deep = false;
  json value;
  try {
    value = json::parse(text, [&](int depth, json::parse_event_t, json&) {
      if (depth > kMaximumDepth) deep = true;
      return !deep;
    });
  } catch (const json::parse_error& error) {
    const size_t end = std::min<size_t>(text.size(), 60);
    throw Invalid(name + ": not JSON, at byte " + std::to_string(error.byte) +
                      " of: " + std::string(text.substr(0, end)),
                  kBadConfig);
  } catch (const json::out_of_range&) {
    fail(name, "numbers of at most 1.8e308", "a larger one");
  }
  if (deep) fail(name, "at most 16 levels", "more");
  if (!value.is_object()) fail(name, "a JSON object", shown(value));
  return value;
}

std::vector<std::string> addresses(const json& list, const std::string& field) {
  if (!list.is_array()) fail(field, "a list of \"host:port\"", shown(list));
  std::vector<std::string> result;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string element = field + "[" + std::to_string(i) + "]";
    if (!list[i].is_string()) fail(element, "\"host:port\"", shown(list[i]));
    const auto& text = list[i].get_ref<const std::string&>();
    if (!is_address(text)) fail(element, "\"host:port\"", shown(list[i]));
    result.push_back(text);
  }
  return result;
}

int64_t integer(const json& object, const char* key, const std::string& field, int64_t maximum) {
  if (!object.contains(key)) fail(field, "an integer of at least 0", "nothing");
  const json& value = object[key];
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(maximum)) ||
      value.get<int64_t>() < 0)
    fail(field, "an integer of at least 0", shown(value));
  return value.get<int64_t>();
}

Cluster parse_cluster(const json& object) {
  Cluster cluster;
  bool chief = false;
  for (const auto& [role, list] : object.items()) {
    const std::string field = "TF_CONFIG: cluster." + role;
    if (role == "ps") {
      cluster.ps = addresses(list, field);
    } else if (role == "worker") {
      cluster.workers = addresses(list, field);
    } else if (role == "chief" || role == "master") {
      if (chief) fail("TF_CONFIG: cluster", "chief or master", "both");
      chief = true;
      cluster.chief = addresses(list, field);
      if (cluster.chief.size() > 1)
        fail(field, "one address", std::to_string(cluster.chief.size()));
    } else {
      fail("TF_CONFIG: cluster", "the roles ps, chief (or master) and worker", shown(json(role)));
    }
  }
  return cluster;
}

void parse_task(const json& task, const json& cluster, Membership& membership) {
  if (!task.is_object()) fail("TF_CONFIG: task", "an object", shown(task));
  if (!task.contains("type") || !task["type"].is_string())
    fail("TF_CONFIG: task.type", "one of ps, chief, master, worker, evaluator",
         task.contains("type") ? shown(task["type"]) : "nothing");
  membership.role_name = task["type"].get<std::string>();
  membership.index = static_cast<int>(integer(task, "index", "TF_CONFIG: task.index", 1 << 20));
  size_t count = 0;
  if (membership.role_name == "ps") {
    membership.role = Role::ps;
    count = membership.cluster.ps.size();
  } else if (membership.role_name == "worker") {
    membership.role = Role::worker;
    count = membership.cluster.workers.size();
  } else if (membership.role_name == "chief" || membership.role_name == "master") {
    membership.role = Role::chief;
    count = cluster.contains(membership.role_name) ? membership.cluster.chief.size() : 0;
  } else if (membership.role_name == "evaluator") {
    membership.role = Role::evaluator;
    return;
  } else {
    fail("TF_CONFIG: task.type", "one of ps, chief, master, worker, evaluator",
         shown(task["type"]));
  }
  if (static_cast<size_t>(membership.index) >= count)
    fail("TF_CONFIG: task.index",
         "below the " + std::to_string(count) + " addresses of cluster." + membership.role_name,
         std::to_string(membership.index));
}

}  // namespace

void parse_tf_config(std::string_view text, Membership& membership) {
  const json value = parse_object(text, "TF_CONFIG");
  const json cluster = value.contains("cluster") ? value["cluster"] : json::object();
  if (!cluster.is_object()) fail("TF_CONFIG: cluster", "an object", shown(cluster));
  membership.cluster = parse_cluster(cluster);
  if (!value.contains("task")) fail("TF_CONFIG: task", "an object", "nothing");
  parse_task(value["task"], cluster, membership);
}

void parse_elastic(std::string_view text, Membership& membership) {
  constexpr int kMost = 1000;
  const json value = parse_object(text, "MUSTER_ELASTIC");
  Elastic elastic;
  elastic.least =
      static_cast<int>(integer(value, "minReplicas", "MUSTER_ELASTIC: minReplicas", kMost));
  elastic.most =
      static_cast<int>(integer(value, "maxReplicas", "MUSTER_ELASTIC: maxReplicas", kMost));
  if (elastic.least > elastic.most)
    fail("MUSTER_ELASTIC: maxReplicas", "at least minReplicas, " + std::to_string(elastic.least),
         std::to_string(elastic.most));
  const json batch = value.value("batch", json("global"));
  if (batch != "global" && batch != "perReplica")
    fail("MUSTER_ELASTIC: batch", "global or perReplica", shown(batch));
  elastic.global_batch = batch == "global";
  membership.elastic = elastic;
}

void parse_replicas(std::string_view text, Membership& membership) {
  const json value = parse_object(text, "MUSTER_REPLICAS");
  for (const auto& [role, count] : value.items()) {
    (void)count;
    membership.replicas[role] =
        static_cast<int>(integer(value, role.c_str(), "MUSTER_REPLICAS: " + role, 1 << 20));
  }
}

}  // namespace muster::group
