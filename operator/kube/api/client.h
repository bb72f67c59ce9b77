#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "operator/kube/api/api_error.h"
#include "operator/kube/api/resource.h"
#include "operator/kube/http/transport.h"

namespace muster::kube {

struct ObjectName {
  std::string name_space;
  std::string name;
  std::string key() const { return name_space + "/" + name; }
};

// Conditions on the object at the time of the write; an empty field is not checked.
struct Preconditions {
  std::string uid;
  std::string resource_version;
};

enum class PatchKind { merge, json, apply };

struct WriteOptions {
  bool dry_run = false;     // the server checks the object and stores nothing
  std::string subresource;  // "status", ...
  bool strict = false;      // unknown fields are refused (fieldValidation=Strict), else dropped
  bool force = false;       // apply only: take fields from other managers
  std::string field_manager = "muster-operator";
};

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
  int limit = 500;  // objects in a page; 0: all at once
};

// An object as the server sent it. The object stays text, because callers that write read little or
// nothing of the answer.
struct Answer {
  std::string call;   // for messages: "POST /api/v1/..."
  std::string text;   // for decode_object()
  Json json() const;  // throws ApiUnavailable if the text is damaged
};

// The verbs of the API over a Transport, on whole objects as JSON. Calls block, and each ends by
// its deadline. Before the deadline, a call with the answer 429 or 503 and Retry-After is tried
// again after that time. Throws ApiInvalid or ApiUnavailable (api_error.h). Thread-safe.
class Client {
 public:
  struct Settings {
    std::chrono::milliseconds deadline{30'000};  // deadline of a call, including retries
  };
  // `transport` must outlive the client; when the transport is shut down, waits between retries end
  // too.
  explicit Client(Transport& transport, Settings settings)
      : transport_(transport), settings_(settings) {}
  explicit Client(Transport& transport) : Client(transport, Settings{}) {}

  // Returns nothing if there is no such object; throws ApiUnavailable for a kind that the server
  // does not know. Always asks the server, never a cache.
  std::optional<Json> get(const Resource& resource, const ObjectName& object) const;

  // A kind of object as the server lists it.
  struct Kind {
    Resource resource;
    bool namespaced = false;
  };
  // Returns the kind of objects with this apiVersion ("v1", "apps/v1") and kind; nothing if the
  // server has none.
  std::optional<Kind> find_kind(const std::string& api_version, const std::string& kind) const;

  // Passes every item on, one page at a time; an empty namespace means all namespaces. For objects
  // kept in view use a Reflector instead.
  using OnPage = std::function<void(std::vector<Json> items)>;
  void list_pages(const Resource& resource, const std::string& name_space,
                  const ListOptions& options, const OnPage& on_page) const;
  // Returns all items of list_pages() together.
  std::vector<Json> list(const Resource& resource, const std::string& name_space,
                         const ListOptions& options) const;

  // Creates the object. All writes return the object as the server stores it (in a dry run: as it
  // would store it). metadata.namespace is read from the body. If the name is taken, throws
  // ApiUnavailable with already_exists(). Our own earlier create may have taken the name if its
  // answer was lost, so the caller must check the owner.
  Answer create(const Resource& resource, const Json& object,
                const WriteOptions& options = {}) const;
  // Replaces the object (PUT): metadata.resourceVersion, if the body has it, must be the newest
  // (else conflict()).
  Answer update(const Resource& resource, const Json& object,
                const WriteOptions& options = {}) const;
  // Patches the object. A precondition that does not hold is a conflict(), whatever the kind of the
  // patch. Merge and apply patches get preconditions as metadata.{uid, resourceVersion}, JSON
  // patches as `test` operations before the others.
  Answer patch(const Resource& resource, const ObjectName& object, PatchKind kind, Json patch,
               const Preconditions& preconditions = {}, const WriteOptions& options = {}) const;

  struct RemoveOptions {
    Preconditions preconditions;
    std::optional<int64_t> grace_seconds;  // nothing: the object's own
    std::string propagation = "Background";
    bool dry_run = false;
  };
  // Deletes the object. Returns false if there was none. Another uid or version is a conflict().
  bool remove(const Resource& resource, const ObjectName& object,
              const RemoveOptions& options) const;

 private:
  Response call(Request request) const;
  Answer answer(const Request& request) const;

  Transport& transport_;
  const Settings settings_;
};

}  // namespace muster::kube
