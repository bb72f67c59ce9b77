#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/kube/api/api_error.h"
#include "operator/kube/api/objects.h"

namespace muster::kube {

// Reads the API server's answers in one pass (simdjson) into the structs of objects.h. T is Pod,
// Service or WholeObject. A text that is not JSON, or does not have the API's form, throws
// Unavailable: it was cut off or damaged on its way, and may be whole the next time. In a list, an
// object that cannot be read (nested too deep, or without its kind's form) is left out and named;
// otherwise it would block the others for ever.

struct Unread {
  std::string key;  // "<namespace>/<name>"; empty: the name cannot be read either
  std::string why;
};

template <class T>
struct ListPage {
  std::vector<T> items;
  std::vector<Unread> unread;  // objects that are not in `items`
  std::string resource_version;
  std::string next;  // `continue`: empty on the last page
};
template <class T>
ListPage<T> decode_list(std::string_view text);

enum class EventType { added, modified, deleted, bookmark, error };

template <class T>
struct WatchEvent {
  EventType type = EventType::bookmark;
  T object;            // for added, modified, deleted; for a bookmark only its resource_version
  std::string unread;  // why only `meta` of the object is known; empty: the whole object is known
  ApiStatus status;    // for an error
};
template <class T>
WatchEvent<T> decode_event(std::string_view line);

// Reads one object, as a write returns it.
template <class T>
T decode_object(std::string_view text);

}  // namespace muster::kube
