#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "operator/kube/api/codec.h"
#include "operator/kube/api/objects.h"

namespace muster::kube {

// The target of a Reflector: the Reflector moves texts, and the Mirror reads their content.
class Mirror {
 public:
  virtual ~Mirror() = default;

  struct Page {
    std::string resource_version;
    std::string next;
    std::vector<std::string> unread;  // objects that cannot be read, and why: they stay as they are
  };
  // These begin a list, add one page after the other, and at the end remove what no page had.
  virtual void begin_list() = 0;
  virtual Page add_page(std::string_view text) = 0;
  virtual void end_list() = 0;

  struct Seen {
    EventType type;
    std::string resource_version;
    ApiStatus status;    // of an error
    std::string unread;  // as of a page; empty: it was read
  };
  virtual Seen apply(std::string_view line) = 0;
};

// The objects of one kind in view, by "<namespace>/<name>" and by one label (the job's). T is Pod,
// Service or WholeObject. Returns copies. Thread-safe.
template <class T>
class Store final : public Mirror {
 public:
  // Called after a change, on the thread that made it, without a lock: `before` is null for a new
  // object, `after` for one that is gone. Must not throw or block. An object that a list shows
  // unchanged (by resourceVersion) is no change; neither is an event of a version that refresh()
  // has brought.
  using OnChange = std::function<void(const T* before, const T* after)>;

  // `index_label` is the label by which find() looks; if empty, objects are found by key only.
  explicit Store(std::string index_label = {}, OnChange on_change = {})
      : index_label_(std::move(index_label)), on_change_(std::move(on_change)) {}

  std::optional<T> get(const std::string& key) const;
  // Returns the objects of a namespace that have this label value, sorted by name.
  std::vector<T> find(const std::string& name_space, const std::string& label_value) const;
  std::vector<std::string> keys() const;
  // Returns "<namespace>/<value>" for each label value that objects have.
  std::vector<std::string> labelled() const;
  size_t size() const;

  // Returns a mirror of the objects of one namespace, for a Reflector of its own: its lists say
  // nothing of the other namespaces. The store must outlive it. The store itself is the mirror of
  // all namespaces.
  std::unique_ptr<Mirror> part(const std::string& name_space);

  // Takes over the answer to a write of ours, without on_change, unless the object in view is
  // newer, is another one (uid) or has gone.
  void refresh(T object);

  void begin_list() override { all_ = {}; }
  Page add_page(std::string_view text) override { return add_page(text, all_); }
  void end_list() override { end_list(all_); }
  Seen apply(std::string_view line) override;

 private:
  // A list that has not ended; used by its Reflector's thread only.
  struct Listing {
    std::string name_space;       // empty: all
    std::set<std::string> listed;  // keys, also of objects that cannot be read
  };
  class Part;
  Page add_page(std::string_view text, Listing& listing);
  void end_list(Listing& listing);
  std::string index_of(const T& object) const;
  void insert(T object) MUSTER_REQUIRES(mutex_);
  std::optional<T> extract(const std::string& key) MUSTER_REQUIRES(mutex_);
  void put(T object);
  void drop(const std::string& key);
  void tell(const T* before, const T* after) const;

  const std::string index_label_;
  const OnChange on_change_;
  mutable Mutex mutex_;
  std::map<std::string, T> objects_ MUSTER_GUARDED_BY(mutex_);
  // "<namespace>/<label value>" -> keys
  std::map<std::string, std::set<std::string>> index_ MUSTER_GUARDED_BY(mutex_);
  Listing all_;
};

// Whether `a` is the older of two resourceVersions (decimal numbers of any length). Other texts
// count as equal.
bool is_older(std::string_view a, std::string_view b);

}  // namespace muster::kube
