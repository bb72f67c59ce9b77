#include "tests/unit/operator/kube/fake_api_server.h"

#include <gtest/gtest.h>

#include <cctype>

#include "common/documents/json.h"

namespace muster::kube {

namespace {

constexpr const char* kTime = "2026-01-02T03:04:05Z";
constexpr const char* kLater = "2026-01-02T03:05:05Z";  // deletion of what had ended before

std::string status_text(int code, const char* reason, const std::string& message) {
  return Json{{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}.dump();
}

Response reply(int code, const Json& body) {
  Response response;
  response.status = code;
  response.body = body.dump();
  return response;
}

Response refuse(int code, const char* reason, const std::string& message) {
  Response response;
  response.status = code;
  response.body = status_text(code, reason, message);
  return response;
}

std::string query_value(const Request& request, const std::string& key) {
  for (const auto& [name, value] : request.query) {
    if (name == key) return value;
  }
  return "";
}

bool is_over(const Json& pod) {
  const std::string phase = string_or(member(pod, "status"), "phase", "");
  return phase == "Succeeded" || phase == "Failed" ||
         string_or(member(pod, "spec"), "nodeName", "").empty();
}

bool is_in_view(const std::string& plural, const Json& object) {
  return plural == "trainingjobs" || plural == "tfjobs" || plural == "resourceflavors" ||
         member(object["metadata"], "labels").contains("muster.dev/job");
}

// What the CRD says of a status.
std::string trouble_in_status(const Json& status) {
  constexpr size_t kLongestMessage = 32'768;
  for (const Json& condition : member(status, "conditions")) {
    const size_t size = string_or(condition, "message", "").size();
    if (size > kLongestMessage) {
      return "status.conditions.message: may not be longer than " + std::to_string(kLongestMessage);
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> segments(const std::string& path) {
  std::vector<std::string> result;
  for (size_t at = 1; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    result.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

std::string plural_of(const Json& object) {
  std::string plural = string_or(object, "kind", "");
  for (char& letter : plural) letter = static_cast<char>(std::tolower(letter));
  if (plural.ends_with("ss")) return plural + "es";
  if (!plural.ends_with('y')) return plural + "s";
  plural.pop_back();
  return plural + "ies";
}

Response FakeApiServer::send(const Request& request) {
  std::vector<std::string> parts = segments(request.path);
  size_t at = parts[0] == "api" ? 2 : 3;
  if (parts.size() > at && parts[at] == "namespaces") at += 2;
  std::string call = std::string(name_of(request.method)) + " " + parts[at];
  if (parts.size() > at + 2) call += "/" + parts[at + 2];
  if (!query_value(request, "dryRun").empty()) call += " dry";
  {
    const std::lock_guard lock(one_);
    calls_.push_back(call);
  }
  if (intercept) {
    if (auto response = intercept(request)) return *response;
  }
  if (permits && !permits(request)) return refuse(403, "Forbidden", call + " is not permitted");
  const Response response = [&] {
    const std::lock_guard lock(one_);
    return answer(request);
  }();
  if (!loses_answer || !loses_answer(request)) return response;
  Response lost;
  lost.phase = Phase::answering;
  lost.error = "the connection was reset";
  return lost;
}

Response FakeApiServer::answer(const Request& request) {
  std::vector<std::string> parts = segments(request.path);
  size_t at = parts[0] == "api" ? 2 : 3;
  if (parts.size() > at && parts[at] == "namespaces") at += 2;
  parts.resize(std::max(parts.size(), at + 3));
  const Route route{parts[at], parts[at + 1], parts[at + 2]};
  const Json body = Json::parse(request.body, nullptr, false);
  switch (request.method) {
    case Method::get: {
      if (route.name.empty()) return list(route.plural, request);
      const Json* found = find(route.plural, route.name);
      return found ? reply(200, *found) : refuse(404, "NotFound", route.name + " not found");
    }
    case Method::post:
      return create(route, body, !query_value(request, "dryRun").empty());
    case Method::put:
      return update(route, body);
    case Method::patch:
      return patch(route, request);
    case Method::remove:
      return remove(route, body);
  }
  return {};
}

Json* FakeApiServer::find(const std::string& plural, const std::string& name) {
  auto& of_kind = objects_[plural];
  const auto found = of_kind.find(name);
  return found == of_kind.end() ? nullptr : &found->second;
}

void FakeApiServer::store(const std::string& plural, Json object, const char* event) {
  object["metadata"]["resourceVersion"] = next_version();
  log_[plural].push_back({version_, Json{{"type", event}, {"object", object}}.dump()});
  const std::string name = object["metadata"]["name"];
  if (std::string(event) == "DELETED") {
    objects_[plural].erase(name);
    collect(string_or(object["metadata"], "uid", ""));
  } else {
    objects_[plural][name] = std::move(object);
  }
}

void FakeApiServer::put(Json object) {
  const std::string plural = plural_of(object);
  const bool is_new = find(plural, object["metadata"]["name"]) == nullptr;
  Json& metadata = object["metadata"];
  if (!metadata.contains("uid")) metadata["uid"] = "uid-" + std::to_string(++uids_);
  if (!metadata.contains("creationTimestamp")) metadata["creationTimestamp"] = kTime;
  store(plural, object, is_new ? "ADDED" : "MODIFIED");
}

// In pages, by name; of pods and services those of jobs; of one namespace, if the path names it.
Response FakeApiServer::list(const std::string& plural, const Request& request) {
  const std::string limit = query_value(request, "limit"), after = query_value(request, "continue");
  const std::string prefix = "involvedObject.uid=",
                    selector = query_value(request, "fieldSelector");
  const std::string about = selector.starts_with(prefix) ? selector.substr(prefix.size()) : "";
  const size_t most = limit.empty() ? SIZE_MAX : std::stoul(limit);
  const std::string inside = "/namespaces/";
  const size_t named = request.path.find(inside);
  const auto is_elsewhere = [&](const Json& object) {
    return named != std::string::npos &&
           !request.path.substr(named + inside.size())
                .starts_with(string_or(object["metadata"], "namespace", "") + "/");
  };
  Json items = Json::array();
  Json metadata = {{"resourceVersion", std::to_string(version_)}};
  for (const auto& [name, object] : objects_[plural]) {
    const bool is_wanted = about.empty() ? is_in_view(plural, object)
                                         : member(member(object, "involvedObject"), "uid") == about;
    if (name <= after || !is_wanted || is_elsewhere(object)) continue;
    if (items.size() == most) {
      metadata["continue"] = items.back()["metadata"]["name"];
      break;
    }
    items.push_back(object);
  }
  return reply(200, {{"metadata", metadata}, {"items", std::move(items)}});
}

Response FakeApiServer::create(const Route& route, Json object, bool dry_run) {
  const std::string name = object["metadata"]["name"];
  if (find(route.plural, name)) return refuse(409, "AlreadyExists", name + " already exists");
  if (route.plural == "pods") object["status"] = {{"phase", "Pending"}};
  if (dry_run) return reply(201, object);
  put(object);
  return reply(201, *find(route.plural, name));
}

Response FakeApiServer::update(const Route& route, const Json& object) {
  Json* found = find(route.plural, route.name);
  if (!found) return refuse(404, "NotFound", route.name + " not found");
  const Json& metadata = (*found)["metadata"];
  const std::string uid = string_or(object["metadata"], "uid", "");
  if (object["metadata"]["resourceVersion"] != metadata["resourceVersion"] ||
      (!uid.empty() && metadata["uid"] != uid)) {
    return refuse(409, "Conflict", "the object has been modified");
  }
  const std::string trouble = trouble_in_status(member(object, "status"));
  if (!trouble.empty()) return refuse(422, "Invalid", trouble);
  const std::string content = route.plural == "configmaps" ? "data" : "spec";
  const std::string part = route.subresource.empty() ? content : route.subresource;
  Json updated = *found;
  updated[part] = object[part];
  if (part == "spec") {
    updated["metadata"]["annotations"] = member(object["metadata"], "annotations");
    if (updated["spec"] != (*found)["spec"])
      updated["metadata"]["generation"] = integer_or(updated["metadata"], "generation", 1) + 1;
  }
  store(route.plural, updated, "MODIFIED");
  return reply(200, *find(route.plural, route.name));
}

Response FakeApiServer::patch(const Route& route, const Request& request) {
  Json* found = find(route.plural, route.name);
  if (!found) return refuse(404, "NotFound", route.name + " not found");
  Json patched = *found;
  const Json body = Json::parse(request.body);
  if (request.content_type == "application/json-patch+json") {
    try {
      patched = found->patch(body);
    } catch (const Json::exception& error) {
      return refuse(422, "Invalid", error.what());
    }
  } else {
    const std::string uid = string_or(member(body, "metadata"), "uid", "");
    if (!uid.empty() && (*found)["metadata"]["uid"] != uid) {
      return refuse(409, "Conflict", "the UID in the precondition is another");
    }
    patched.merge_patch(body);
  }
  store(route.plural, patched, "MODIFIED");
  const Json result = *find(route.plural, route.name);
  settle(route.plural, route.name);
  return reply(200, result);
}

// Gone is what is to go, has ended, and nobody holds.
void FakeApiServer::settle(const std::string& plural, const std::string& name) {
  const Json* found = find(plural, name);
  if (!found || !(*found)["metadata"].contains("deletionTimestamp")) return;
  if (!member((*found)["metadata"], "finalizers").empty()) return;
  if (plural == "pods" && !is_over(*found)) return;
  store(plural, Json(*found), "DELETED");
}

Response FakeApiServer::remove(const Route& route, const Json& options) {
  const Json* found = find(route.plural, route.name);
  if (!found) return refuse(404, "NotFound", route.name + " not found");
  const Json& metadata = (*found)["metadata"];
  const Json& preconditions = member(options, "preconditions");
  for (const char* field : {"uid", "resourceVersion"}) {
    const std::string wanted = string_or(preconditions, field, "");
    if (wanted.empty() || metadata[field] == wanted) continue;
    return refuse(409, "Conflict", std::string("the precondition of ") + field + " does not hold");
  }
  remove(route.plural, route.name);
  return reply(200, Json{{"kind", "Status"}, {"status", "Success"}});
}

void FakeApiServer::remove(const std::string& plural, const std::string& name) {
  const Json* found = find(plural, name);
  if (!found) return ADD_FAILURE() << "no " << plural << " " << name, void();
  if (!(*found)["metadata"].contains("deletionTimestamp")) {
    Json leaving = *found;
    leaving["metadata"]["deletionTimestamp"] = is_over(leaving) ? kLater : kTime;
    store(plural, leaving, "MODIFIED");
  }
  settle(plural, name);
}

// The garbage collector.
void FakeApiServer::collect(const std::string& owner_uid) {
  std::vector<std::pair<std::string, std::string>> owned;
  for (const auto& [plural, of_kind] : objects_) {
    for (const auto& [name, object] : of_kind) {
      for (const Json& owner : member(object["metadata"], "ownerReferences")) {
        if (owner["uid"] == owner_uid) owned.emplace_back(plural, name);
      }
    }
  }
  for (const auto& [plural, name] : owned) remove(plural, name);
}

Json FakeApiServer::object(const std::string& plural, const std::string& name) const {
  const auto& of_kind = objects_.at(plural);
  const auto found = of_kind.find(name);
  if (found != of_kind.end()) return found->second;
  ADD_FAILURE() << "no " << plural << " " << name;
  return nullptr;
}

bool FakeApiServer::has(const std::string& plural, const std::string& name) const {
  const auto of_kind = objects_.find(plural);
  return of_kind != objects_.end() && of_kind->second.contains(name);
}

std::vector<Json> FakeApiServer::objects(const std::string& plural) const {
  std::vector<Json> result;
  const auto of_kind = objects_.find(plural);
  if (of_kind == objects_.end()) return result;
  for (const auto& [name, object] : of_kind->second) result.push_back(object);
  return result;
}

void FakeApiServer::set_status(const std::string& pod, const Json& status) {
  Json* found = find("pods", pod);
  if (!found) return ADD_FAILURE() << "no pod " << pod, void();
  Json updated = *found;
  updated["status"].merge_patch(status);
  if (!updated["spec"].contains("nodeName")) updated["spec"]["nodeName"] = "node-1";
  store("pods", updated, "MODIFIED");
  settle("pods", pod);
}

void FakeApiServer::run_pod(const std::string& pod) {
  const std::string container = object("pods", pod)["metadata"]["labels"]["muster.dev/container"];
  const Json status = {{"name", container},
                       {"ready", true},
                       {"restartCount", 0},
                       {"state", {{"running", {{"startedAt", kTime}}}}}};
  set_status(
      pod,
      {{"phase", "Running"}, {"podIP", "10.0.0.7"}, {"containerStatuses", Json::array({status})}});
}

void FakeApiServer::end_pod(const std::string& pod, int exit_code) {
  const std::string container = object("pods", pod)["metadata"]["labels"]["muster.dev/container"];
  const Json terminated = {{"exitCode", exit_code},
                           {"reason", exit_code == 0 ? "Completed" : "Error"},
                           {"startedAt", kTime},
                           {"finishedAt", kTime}};
  const Json status = {{"name", container},
                       {"ready", false},
                       {"restartCount", 0},
                       {"state", {{"terminated", terminated}}}};
  set_status(pod, {{"phase", exit_code == 0 ? "Succeeded" : "Failed"},
                   {"containerStatuses", Json::array({status})}});
}

void FakeApiServer::end_leaving_pods(int exit_code) {
  for (const Json& pod : objects("pods")) {
    const bool leaving = pod["metadata"].contains("deletionTimestamp");
    if (leaving && !is_over(pod)) end_pod(pod["metadata"]["name"], exit_code);
  }
}

void FakeApiServer::list(Mirror& mirror, const std::string& plural) {
  mirror.begin_list();
  mirror.add_page(list(plural, Request()).body);
  mirror.end_list();
  told_[&mirror] = log_[plural].size();
}

void FakeApiServer::tell(Mirror& mirror, const std::string& plural) {
  const std::vector<Line>& log = log_[plural];
  for (size_t& at = told_[&mirror]; at < log.size(); ++at) {
    const std::string& line = log[at].text;
    if (is_in_view(plural, Json::parse(line)["object"])) mirror.apply(line);
  }
}

std::vector<std::string> FakeApiServer::watch_lines(const std::string& plural,
                                                    uint64_t after) const {
  std::vector<std::string> lines;
  const auto log = log_.find(plural);
  if (log == log_.end()) return lines;
  for (const Line& line : log->second) {
    const bool newer = line.version > after;
    if (newer && is_in_view(plural, Json::parse(line.text)["object"])) lines.push_back(line.text);
  }
  return lines;
}

int FakeApiServer::count(const std::string& call) const {
  return static_cast<int>(std::count(calls_.begin(), calls_.end(), call));
}

}  // namespace muster::kube
