#include "operator/kube/api/client.h"

#include <algorithm>
#include <iterator>

#include "common/documents/json.h"
#include "common/threads/pause.h"

namespace muster::kube {

namespace {

using Clock = std::chrono::steady_clock;

// Whether the server has not processed the request and says when to send it again.
bool is_put_off(const Response& response) {
  return (response.status == 429 || response.status == 503) && response.retry_after;
}

// A log line in a message may not be valid UTF-8.
std::string text_of(const Json& body) {
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string path_of(const Resource& resource, const Json& object, bool named,
                    const std::string& subresource) {
  const Json& metadata = member(object, "metadata");
  return resource.path(string_or(metadata, "namespace", ""),
                       named ? string_or(metadata, "name", "") : "", subresource);
}

Request write(Method method, const std::string& path, const Json& body,
              const WriteOptions& options) {
  Request request;
  request.method = method;
  request.path = path;
  request.content_type = "application/json";
  request.body = text_of(body);
  request.query.emplace_back("fieldManager", options.field_manager);
  if (options.dry_run) request.query.emplace_back("dryRun", "All");
  // By default the server also searches for unknown fields to warn about them, which costs it time.
  request.query.emplace_back("fieldValidation", options.strict ? "Strict" : "Ignore");
  return request;
}

const char* content_type_of(PatchKind kind) {
  switch (kind) {
    case PatchKind::merge:
      return "application/merge-patch+json";
    case PatchKind::json:
      return "application/json-patch+json";
    case PatchKind::apply:
      return "application/apply-patch+yaml";
  }
  return "";
}

// Merge and apply patches are parts of the object; a JSON patch is a list of operations.
void add_preconditions(PatchKind kind, const Preconditions& preconditions, Json& patch) {
  const auto add = [&](const char* field, const std::string& value, size_t place) {
    if (value.empty()) return place;
    if (kind == PatchKind::json) {
      patch.insert(
          patch.begin() + static_cast<std::ptrdiff_t>(place),
          Json{{"op", "test"}, {"path", std::string("/metadata/") + field}, {"value", value}});
    } else {
      patch["metadata"][field] = value;
    }
    return place + 1;
  };
  add("resourceVersion", preconditions.resource_version, add("uid", preconditions.uid, 0));
}

// The API server reports a failed precondition in three ways: 409; 422 because of a uid that cannot
// be changed; and, for the tests in a JSON patch, 422 without a field to blame.
bool is_failed_precondition(const ApiStatus& status, PatchKind kind) {
  if (status.code != 422) return false;
  const Json& causes = member(status.details, "causes");
  if (!causes.is_array() || causes.empty()) return kind == PatchKind::json;
  return std::any_of(causes.begin(), causes.end(), [](const Json& cause) {
    return string_or(cause, "field", "") == "metadata.uid";
  });
}

}  // namespace

Response Client::call(Request request) const {
  const Clock::time_point until = Clock::now() + settings_.deadline;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    request.deadline = std::max(left, std::chrono::milliseconds(1));
    Response response = transport_.send(request);
    if (!is_put_off(response)) return response;
    const std::chrono::milliseconds pause =
        std::max<std::chrono::milliseconds>(*response.retry_after, std::chrono::milliseconds(100));
    if (Clock::now() + pause >= until || !pause_for(pause, transport_.down())) return response;
  }
}

Json Answer::json() const {
  Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_object()) return object;
  ApiStatus status;
  status.code = 200;
  status.message = "expected a JSON object, found: " + quoted(text);
  throw ApiUnavailable(call + ": " + status.message, status);
}

// Throws unless the answer is an object: a proxy, for example, may answer in the server's place.
Answer Client::answer(const Request& request) const {
  Response response = call(request);
  if (response.status < 200 || response.status > 299) {
    throw_api_error(request, status_of(response));
  }
  if (response.body.starts_with('{')) {
    return {std::string(name_of(request.method)) + " " + request.path, std::move(response.body)};
  }
  ApiStatus status = status_of(response);
  status.message = "expected a JSON object, found: " + status.message;
  throw_api_error(request, status);
}

std::optional<Json> Client::get(const Resource& resource, const ObjectName& object) const {
  Request request;
  request.path = resource.path(object.name_space, object.name);
  try {
    return answer(request).json();
  } catch (const ApiUnavailable& error) {
    if (error.status().not_found()) return std::nullopt;
    throw;
  }
}

std::optional<Client::Kind> Client::find_kind(const std::string& api_version,
                                              const std::string& kind) const {
  const size_t slash = api_version.find('/');
  Resource resource;
  if (slash != std::string::npos) resource.group = api_version.substr(0, slash);
  resource.version = slash == std::string::npos ? api_version : api_version.substr(slash + 1);
  resource.kind = kind;
  Request request;
  request.path = resource.version_path();
  Json listed;
  try {
    listed = answer(request).json();
  } catch (const ApiUnavailable& error) {
    if (error.status().not_found()) return std::nullopt;
    throw;
  }
  for (const Json& entry : member(listed, "resources")) {
    resource.plural = string_or(entry, "name", "");
    const bool is_subresource = resource.plural.find('/') != std::string::npos;
    if (string_or(entry, "kind", "") == kind && !is_subresource)
      return Kind{resource, bool_or(entry, "namespaced", false)};
  }
  return std::nullopt;
}

void Client::list_pages(const Resource& resource, const std::string& name_space,
                        const ListOptions& options, const OnPage& on_page) const {
  std::string next;
  do {
    Request request;
    request.path = resource.path(name_space);
    const auto add = [&](const char* key, const std::string& value) {
      if (!value.empty()) request.query.emplace_back(key, value);
    };
    add("labelSelector", options.label_selector);
    add("fieldSelector", options.field_selector);
    if (options.limit > 0) add("limit", std::to_string(options.limit));
    add("continue", next);
    Json page = answer(request).json();
    next = string_or(member(page, "metadata"), "continue", "");
    std::vector<Json> items;
    if (page.contains("items") && page["items"].is_array()) {
      for (Json& item : page["items"]) items.push_back(std::move(item));
    }
    on_page(std::move(items));
  } while (!next.empty());
}

std::vector<Json> Client::list(const Resource& resource, const std::string& name_space,
                               const ListOptions& options) const {
  std::vector<Json> all;
  list_pages(resource, name_space, options,
             [&](std::vector<Json> items) { std::ranges::move(items, std::back_inserter(all)); });
  return all;
}

Answer Client::create(const Resource& resource, const Json& object,
                      const WriteOptions& options) const {
  return answer(write(Method::post, path_of(resource, object, /*named=*/false, options.subresource),
                      object, options));
}

Answer Client::update(const Resource& resource, const Json& object,
                      const WriteOptions& options) const {
  return answer(write(Method::put, path_of(resource, object, /*named=*/true, options.subresource),
                      object, options));
}

Answer Client::patch(const Resource& resource, const ObjectName& object, PatchKind kind, Json patch,
                     const Preconditions& preconditions, const WriteOptions& options) const {
  add_preconditions(kind, preconditions, patch);
  Request request =
      write(Method::patch, resource.path(object.name_space, object.name, options.subresource),
            patch, options);
  request.content_type = content_type_of(kind);
  if (kind == PatchKind::apply && options.force) request.query.emplace_back("force", "true");
  const bool asks = !preconditions.uid.empty() || !preconditions.resource_version.empty();
  try {
    return answer(request);
  } catch (const ApiInvalid& error) {
    ApiStatus status = error.status();
    if (!asks || !is_failed_precondition(status, kind)) throw;
    status.code = 409;
    status.reason = "Conflict";
    throw_api_error(request, status);
  }
}

bool Client::remove(const Resource& resource, const ObjectName& object,
                    const RemoveOptions& options) const {
  Json body = {
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", options.propagation}};
  if (options.grace_seconds) body["gracePeriodSeconds"] = *options.grace_seconds;
  const Preconditions& preconditions = options.preconditions;
  if (!preconditions.uid.empty()) body["preconditions"]["uid"] = preconditions.uid;
  if (!preconditions.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = preconditions.resource_version;
  }
  if (options.dry_run) body["dryRun"] = Json::array({"All"});
  Request request;
  request.method = Method::remove;
  request.path = resource.path(object.name_space, object.name);
  request.content_type = "application/json";
  request.body = text_of(body);
  try {
    answer(request);
    return true;
  } catch (const ApiUnavailable& error) {
    if (error.status().not_found()) return false;
    throw;
  }
}

}  // namespace muster::kube
