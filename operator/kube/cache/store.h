#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/api/codec.h"
#include "operator/kube/api/objects.h"

namespace muster::kube {

// What a Reflector fills: it moves the texts, this knows what is in them.
class Mirror {
 public:
  virtual ~Mirror() = default;

  struct Page {
    std::string resource_version;
    std::string next;
    std::vector<std::string> unread;  // objects that cannot be read, and why: they stay as they are
  };
  // A list begins, goes on page by page, and takes the place of what was there at its end.
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

// Objects of one kind in view, by "<namespace>/<name>" and by one label (the job's). T is Pod,
// Service or WholeObject. What it gives are copies. Thread-safe.
template <class T>
class Store final : public Mirror {
 public:
  // Called after a change, on the thread that made it, without a lock: before is null for what is
  // new, after for what is gone. Must not throw or block. An object that a list shows unchanged (by
  // resourceVersion) is no change; so is an event of a version that refresh() has brought.
  using OnChange = std::function<void(const T* before, const T* after)>;

  // `index_label`: objects are found by its value; empty: by key only.
  explicit Store(std::string index_label = {}, OnChange on_change = {})
      : index_label_(std::move(index_label)), on_change_(std::move(on_change)) {}

  std::optional<T> get(const std::string& key) const;
  // Those of a namespace whose label has this value, by name.
  std::vector<T> find(const std::string& name_space, const std::string& label_value) const;
  std::vector<std::string> keys() const;
  // "<namespace>/<value>" of the labels that objects have.
  std::vector<std::string> labelled() const;
  size_t size() const;

  // What a write of ours has answered: taken over, without on_change, unless what is in view is
  // newer or another object (uid) or has gone.
  void refresh(T object);

  void begin_list() override;
  Page add_page(std::string_view text) override;
  void end_list() override;
  Seen apply(std::string_view line) override;

 private:
  std::string index_of(const T& object) const;
  void insert(T object);                             // with mutex_
  std::optional<T> extract(const std::string& key);  // with mutex_
  void put(T object);
  void drop(const std::string& key);
  void tell(const T* before, const T* after) const;

  const std::string index_label_;
  const OnChange on_change_;
  mutable std::mutex mutex_;
  std::map<std::string, T> objects_;
  std::map<std::string, std::set<std::string>> index_;  // "<namespace>/<label value>" -> keys
  // Of a list that has not ended; the Reflector's thread only.
  std::map<std::string, T> listed_;
  std::set<std::string> unread_;  // keys of what is there and cannot be read
};

// Of two resourceVersions (decimal numbers of any length), is `a` the older one? Others count as
// equal.
bool is_older(std::string_view a, std::string_view b);

}  // namespace muster::kube
