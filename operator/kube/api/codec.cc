#include "operator/kube/api/codec.h"

#include <simdjson.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "common/documents/json.h"
#include "common/error.h"
#include "operator/api/status.h"
#include "operator/kube/api/json_parts.h"

namespace muster::kube {

namespace {

using Element = simdjson::dom::element;

// A null, which Go writes for an empty value, is read like a field that is left out.

std::string text(Element value) {
  if (value.is_null()) return {};
  return std::string(std::string_view(value));
}

int64_t number(Element value) {
  return value.is_null() ? 0 : int64_t(value);
}

// Returns the nearest number that fits. A pod may ask for a grace period of more than 60 years, and
// its events must not be lost because of that.
int small_number(Element value) {
  using Limits = std::numeric_limits<int>;
  return static_cast<int>(std::clamp<int64_t>(number(value), Limits::min(), Limits::max()));
}

bool truth(Element value) {
  return !value.is_null() && bool(value);
}

std::optional<Time> time(Element value) {
  return api::parse_time(text(value));
}

template <class Take>
void each_field(Element value, const Take& take) {
  if (value.is_null()) return;
  for (const auto field : simdjson::dom::object(value)) take(field.key, field.value);
}

template <class Take>
void each_item(Element value, const Take& take) {
  if (value.is_null()) return;
  for (const Element item : simdjson::dom::array(value)) take(item);
}

std::map<std::string, std::string> texts_by_key(Element value) {
  std::map<std::string, std::string> result;
  each_field(value, [&](std::string_view key, Element one) {
    std::string name(key);
    result.insert_or_assign(std::move(name), text(one));
  });
  return result;
}

void read_owner(Element value, ObjectMeta& meta) {
  std::string uid;
  bool controls = false;
  each_field(value, [&](std::string_view key, Element one) {
    if (key == "uid") uid = text(one);
    if (key == "controller") controls = truth(one);
  });
  if (controls) meta.owner_uid = uid;
}

// Keys of objects are split at their first slash.
std::string name_of_namespace(Element value) {
  std::string name = text(value);
  if (name.find('/') != std::string::npos)
    throw Unavailable("metadata.namespace: expected the name of a namespace, found \"" + name +
                      "\"");
  return name;
}

// Reads the field if it says which object this is.
void read_identity(std::string_view key, Element one, ObjectMeta& meta) {
  if (key == "name") meta.name = text(one);
  if (key == "namespace") meta.name_space = name_of_namespace(one);
  if (key == "uid") meta.uid = text(one);
  if (key == "resourceVersion") meta.resource_version = text(one);
}

ObjectMeta read_meta(Element value) {
  ObjectMeta meta;
  each_field(value, [&](std::string_view key, Element one) {
    read_identity(key, one, meta);
    if (key == "generation") meta.generation = number(one);
    if (key == "creationTimestamp") meta.created = time(one);
    if (key == "deletionTimestamp") meta.deleted = time(one);
    if (key == "deletionGracePeriodSeconds") meta.grace = std::chrono::seconds(small_number(one));
    if (key == "labels") meta.labels = texts_by_key(one);
    if (key == "annotations") {
      each_field(one, [&](std::string_view name, Element value) {
        if (name == api::kCheckpointAnnotation) meta.checkpoint_request = text(value);
      });
    }
    if (key == "finalizers") {
      each_item(one, [&](Element item) { meta.finalizers.push_back(text(item)); });
    }
    if (key == "ownerReferences") {
      each_item(one, [&](Element item) { read_owner(item, meta); });
    }
  });
  return meta;
}

void read_state(Element value, ContainerStatus& status) {
  each_field(value, [&](std::string_view name, Element state) {
    if (name == "running") status.state = ContainerStatus::State::running;
    if (name == "terminated") status.state = ContainerStatus::State::terminated;
    each_field(state, [&](std::string_view key, Element one) {
      if (key == "reason") status.reason = text(one);
      if (key == "message") status.message = text(one);
      if (key == "startedAt") status.started = time(one);
      if (key == "finishedAt") status.finished = time(one);
      if (key == "exitCode") status.exit_code = small_number(one);
    });
  });
}

ContainerStatus read_container_status(Element value) {
  ContainerStatus status;
  ContainerStatus last;
  each_field(value, [&](std::string_view key, Element one) {
    if (key == "name") status.name = text(one);
    if (key == "ready") status.ready = truth(one);
    if (key == "restartCount") status.restarts = small_number(one);
    if (key == "state") read_state(one, status);
    if (key == "lastState") read_state(one, last);
  });
  status.last_exit_code = last.exit_code;
  status.last_message = std::move(last.message);
  return status;
}

PodCondition read_condition(Element value) {
  PodCondition condition;
  each_field(value, [&](std::string_view key, Element one) {
    if (key == "type") condition.type = text(one);
    if (key == "status") condition.status = text(one) == "True";
    if (key == "reason") condition.reason = text(one);
    if (key == "message") condition.message = text(one);
    if (key == "lastTransitionTime") condition.last_transition = time(one);
  });
  return condition;
}

void read_pod_spec(Element value, Pod& pod) {
  each_field(value, [&](std::string_view key, Element one) {
    if (key == "nodeName") pod.node = text(one);
    if (key == "restartPolicy") pod.restart_policy = text(one);
  });
}

void read_pod_status(Element value, Pod& pod) {
  const auto statuses = [](Element list, std::vector<ContainerStatus>& result) {
    each_item(list, [&](Element item) { result.push_back(read_container_status(item)); });
  };
  each_field(value, [&](std::string_view key, Element one) {
    if (key == "phase") pod.phase = text(one);
    if (key == "reason") pod.reason = text(one);
    if (key == "message") pod.message = text(one);
    if (key == "podIP") pod.ip = text(one);
    if (key == "containerStatuses") statuses(one, pod.container_statuses);
    if (key == "initContainerStatuses") statuses(one, pod.init_container_statuses);
    if (key == "conditions") {
      each_item(one, [&](Element item) { pod.conditions.push_back(read_condition(item)); });
    }
  });
}

void read(Element value, Pod& pod) {
  each_field(value, [&](std::string_view key, Element one) {
    if (key == "metadata") pod.meta = read_meta(one);
    if (key == "spec") read_pod_spec(one, pod);
    if (key == "status") read_pod_status(one, pod);
  });
}

void read(Element value, Service& service) {
  each_field(value, [&](std::string_view key, Element one) {
    if (key == "metadata") service.meta = read_meta(one);
  });
}

// Returns `fields` as JSON, without the field called `without`.
std::string text_of(simdjson::dom::object fields, std::string_view without,
                    const std::function<std::string(std::string_view, Element)>& text_of_field) {
  std::string text = "{";
  for (const auto field : fields) {
    if (field.key == without) continue;
    if (text.size() > 1) text += ',';
    text += Json(field.key).dump() + ':' + text_of_field(field.key, field.value);
  }
  return text + '}';
}

// Json searches members one by one, so an object of a hundred thousand members would keep a thread
// of the operator busy for seconds at each look.
constexpr size_t kMostMembers = 1000;

void require_few_members(Element value) {
  if (value.is_array()) each_item(value, require_few_members);
  if (!value.is_object()) return;
  const simdjson::dom::object object(value);
  if (object.size() > kMostMembers)
    throw Unavailable("expected at most " + std::to_string(kMostMembers) +
                      " members in each object, found " + std::to_string(object.size()));
  for (const auto field : object) require_few_members(field.value);
}

void read(Element value, WholeObject& object) {
  require_few_members(value);
  const auto as_it_is = [](std::string_view, Element one) { return simdjson::minify(one); };
  object.content = PackedText(text_of(value, "", [&](std::string_view key, Element one) {
    if (key != "metadata") return simdjson::minify(one);
    object.meta = read_meta(one);
    // managedFields are as long as the rest of the object.
    return one.is_object() ? text_of(one, "managedFields", as_it_is) : simdjson::minify(one);
  }));
}

ApiStatus read_status(std::string_view json) {
  Response response;
  response.body = json;
  const Json status = parse_or_null(json);
  response.status = static_cast<int>(integer_or(status, "code", 500));
  return status_of(response);
}

// Reads the event type from its JSON text, which includes the quotes.
EventType event_type(std::string_view text) {
  if (text == R"("ADDED")") return EventType::added;
  if (text == R"("MODIFIED")") return EventType::modified;
  if (text == R"("DELETED")") return EventType::deleted;
  if (text == R"("BOOKMARK")") return EventType::bookmark;
  if (text == R"("ERROR")") return EventType::error;
  throw Unavailable(
      "expected a watch event of type ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, found " +
      (text.empty() ? "none" : std::string(text.substr(0, 40))));
}

std::vector<JsonPart> parts(std::string_view json, const std::string& expected) {
  try {
    return parts_of(json);
  } catch (const Unavailable& error) {
    throw Unavailable("expected " + expected + ", found no JSON: " + error.what());
  }
}

// Reads JSON texts with one parser, one after the other.
class Decoder {
 public:
  // Returns the result of `use` on the value in `json`; throws Unavailable if it cannot be read.
  template <class Use>
  auto decode(std::string_view json, const char* expected, const Use& use) {
    try {
      return use(parse(json));
    } catch (const simdjson::simdjson_error& error) {
      throw Unavailable(std::string("expected ") + expected + ", found " +
                        std::to_string(json.size()) + " bytes of something else: " + error.what());
    }
  }

  template <class T>
  T object(std::string_view json) {
    return decode(json, "an object", [](Element value) {
      T object;
      read(value, object);
      return object;
    });
  }

  // Returns name, namespace, UID and resourceVersion of an object that cannot be read as a whole.
  ObjectMeta identity_of_object(std::string_view json) {
    ObjectMeta meta;
    for (const JsonPart& part : parts(json, "an object")) {
      if (part.key != "metadata") continue;
      decode(part.text, "an object's metadata", [&](Element value) {
        each_field(value,
                   [&](std::string_view key, Element one) { read_identity(key, one, meta); });
      });
    }
    return meta;
  }

 private:
  Element parse(std::string_view json) {
    if (json.empty()) throw simdjson::simdjson_error(simdjson::EMPTY);  // simdjson would copy null
    Element value;
    const auto error = parser_.parse(json.data(), json.size()).get(value);
    if (!error) return value;
    const std::string plain = with_large_integers_as_doubles(json);
    if (plain.size() == json.size()) throw simdjson::simdjson_error(error);
    return parser_.parse(plain);
  }

  simdjson::dom::parser parser_;
};

template <class T>
void read_item(Decoder& decoder, std::string_view json, ListPage<T>& page) {
  try {
    page.items.push_back(decoder.object<T>(json));
    return;
  } catch (const Unavailable& error) {
    page.unread.push_back({"", error.what()});
  }
  try {
    const ObjectMeta meta = decoder.identity_of_object(json);
    if (!meta.name.empty()) page.unread.back().key = meta.key();
  } catch (const Unavailable&) {
    // The object's name cannot be read either.
  }
}

}  // namespace

template <class T>
ListPage<T> decode_list(std::string_view json) {
  Decoder decoder;
  ListPage<T> page;
  bool listed = false;
  for (const JsonPart& part : parts(json, "a list of objects")) {
    if (part.key == "metadata") {
      decoder.decode(part.text, "a list's metadata", [&](Element value) {
        each_field(value, [&](std::string_view field, Element one) {
          if (field == "resourceVersion") page.resource_version = text(one);
          if (field == "continue") page.next = text(one);
        });
      });
    }
    if (part.key != "items") continue;
    listed = part.text == "null" || part.text.starts_with('[');
    if (!part.text.starts_with('[')) continue;
    for (const JsonPart& item : parts(part.text, "items")) read_item(decoder, item.text, page);
  }
  if (!listed || page.resource_version.empty()) {
    throw Unavailable("expected a list of objects with items and a resourceVersion");
  }
  return page;
}

template <class T>
WatchEvent<T> decode_event(std::string_view line) {
  std::string_view type, object;
  for (const JsonPart& part : parts(line, "a watch event")) {
    if (part.key == "type") type = part.text;
    if (part.key == "object") object = part.text;
  }
  WatchEvent<T> event;
  event.type = event_type(type);
  if (event.type == EventType::error) {
    event.status = read_status(object);
    return event;
  }
  Decoder decoder;
  try {
    event.object = decoder.object<T>(object);
  } catch (const Unavailable& error) {
    event.unread = error.what();
    event.object.meta = decoder.identity_of_object(object);
  }
  const ObjectMeta& meta = event.object.meta;
  if (meta.resource_version.empty() || (event.type != EventType::bookmark && meta.name.empty())) {
    throw Unavailable("expected a watch event of an object with name and resourceVersion");
  }
  return event;
}

template <class T>
T decode_object(std::string_view json) {
  return Decoder().object<T>(json);
}

template ListPage<Pod> decode_list<Pod>(std::string_view);
template ListPage<Service> decode_list<Service>(std::string_view);
template ListPage<WholeObject> decode_list<WholeObject>(std::string_view);
template WatchEvent<Pod> decode_event<Pod>(std::string_view);
template WatchEvent<Service> decode_event<Service>(std::string_view);
template WatchEvent<WholeObject> decode_event<WholeObject>(std::string_view);
template Pod decode_object<Pod>(std::string_view);
template Service decode_object<Service>(std::string_view);
template WholeObject decode_object<WholeObject>(std::string_view);

}  // namespace muster::kube
