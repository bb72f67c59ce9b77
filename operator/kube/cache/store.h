#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/threads/mutex.h"
#include "operator/kube/api/codec.h"
#include "operator/kube/api/objects.h"

namespace muster::kube {

// The target of a Reflector: the Reflector passes texts on, and the Mirror reads their content.
class Mirror {
 public:
  virtual ~Mirror() = default;

  struct Page {
    std::string resource_version;
    std::string next;
    // Objects that cannot be read, and why; the mirror keeps their old state.
    std::vector<std::string> unread;
  };
  // These functions begin a list, add one page after the other, and at the end remove the objects
  // that were in no page.
  virtual void begin_list() = 0;
  virtual Page add_page(std::string_view text) = 0;
  virtual void end_list() = 0;

  struct Seen {
    EventType type;
    std::string resource_version;
    // Why the object cannot be read, as in Page; empty: it was read.
    ApiStatus status;    // status of an event of type error
    std::string unread;  // why the object cannot be read, as in Page; empty: it was read
  };
  virtual Seen apply(std::string_view line) = 0;
};

// The objects of one kind in view, by "<namespace>/<name>" and by one label (the job's). T is Pod,
// Service or WholeObject. Returns copies. Thread-safe.
template <class T>
class Store final : public Mirror {
 public:
  // Called after a change, on the thread that made it, without a lock: `before` is null for a new
  // object, `after` for one that is gone. Must not throw or block. Not called for an object that a
  // list shows unchanged (by resourceVersion), or for an event whose version refresh() has already
  // stored.
  using OnChange = std::function<void(const T* before, const T* after)>;

  // `index_label` is the label by which find() looks; if empty, objects are found by key only.
  explicit Store(std::string index_label = {}, OnChange on_change = {})
      : on_change_(std::move(on_change)), labelled_(ByLabel{std::move(index_label)}) {}

  std::optional<T> get(const std::string& key) const;
  // Returns the objects of a namespace that have this label value, sorted by name.
  std::vector<T> find(const std::string& name_space, const std::string& label_value) const;
  std::vector<std::string> keys() const;
  // Returns "<namespace>/<value>" for each label value that objects have.
  std::vector<std::string> labelled() const;
  size_t size() const;

  // Returns a mirror of the objects of one namespace, for a separate Reflector. The lists of this
  // mirror do not touch the other namespaces. The store must outlive the mirror. The store itself
  // is the mirror of all namespaces.
  std::unique_ptr<Mirror> part(const std::string& name_space);

  // Stores the object from the answer to our own write, without calling on_change, unless the
  // object in view is newer, has another UID or has gone.
  void refresh(T object);

  void begin_list() override { all_ = {}; }
  Page add_page(std::string_view text) override { return add_page(text, all_); }
  void end_list() override { end_list(all_); }
  Seen apply(std::string_view line) override;

 private:
  // Objects are ordered by the names that they contain. With a separate key, a Service would take
  // half as much memory again.
  using Place = std::pair<std::string_view, std::string_view>;  // namespace, name or label value
  static Place place_of(const T& object) { return {object.meta.name_space, object.meta.name}; }
  static Place place_of(std::string_view key);  // "<namespace>/<name>"
  struct ByName {
    using is_transparent = void;
    bool operator()(const T& a, const T& b) const { return place_of(a) < place_of(b); }
    bool operator()(const T& a, Place b) const { return place_of(a) < b; }
    bool operator()(Place a, const T& b) const { return a < place_of(b); }
  };
  struct ByLabel {
    using is_transparent = void;
    std::string label;
    Place place_of(const T& object) const;
    bool operator()(const T* a, const T* b) const;
    bool operator()(const T* a, Place b) const { return place_of(*a) < b; }
    bool operator()(Place a, const T* b) const { return a < place_of(*b); }
  };
  using Objects = std::set<T, ByName>;
  // A list under way; used only by its Reflector's thread.
  struct Listing {
    std::string name_space;        // empty: all
    std::set<std::string> listed;  // keys, also of objects that cannot be read
  };
  class Part;
  Page add_page(std::string_view text, Listing& listing);
  void end_list(Listing& listing);
  void insert(T object) MUSTER_REQUIRES(mutex_);
  T extract(typename Objects::const_iterator object) MUSTER_REQUIRES(mutex_);
  void put(T object);
  void drop(const std::string& key);
  void tell(const T* before, const T* after) const;

  const OnChange on_change_;
  mutable Mutex mutex_;
  Objects objects_ MUSTER_GUARDED_BY(mutex_);
  std::set<const T*, ByLabel> labelled_ MUSTER_GUARDED_BY(mutex_);  // objects with the label
  Listing all_;
};

// Whether `a` is the older of two resourceVersions (decimal numbers of any length). Other texts
// count as equal.
bool is_older(std::string_view a, std::string_view b);

}  // namespace muster::kube
