#include "operator/kube/cache/store.h"

#include <algorithm>
#include <utility>

namespace muster::kube {

bool is_older(std::string_view a, std::string_view b) {
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!is_number(a) || !is_number(b)) return false;
  if (a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

namespace {

std::string describe(const std::string& key, const std::string& why) {
  return (key.empty() ? "an object without a name" : key) + " is passed over: " + why;
}

template <class Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

}  // namespace

template <class T>
std::string Store<T>::index_of(const T& object) const {
  if (index_label_.empty()) return {};
  const std::string value = object.meta.label(index_label_);
  return value.empty() ? "" : object.meta.name_space + "/" + value;
}

template <class T>
std::optional<T> Store<T>::get(const std::string& key) const {
  const MutexLock lock(mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? std::nullopt : std::optional<T>(found->second);
}

template <class T>
std::vector<T> Store<T>::find(const std::string& name_space, const std::string& label_value) const {
  const MutexLock lock(mutex_);
  std::vector<T> result;
  const auto keys = index_.find(name_space + "/" + label_value);
  if (keys == index_.end()) return result;
  for (const std::string& key : keys->second) result.push_back(objects_.at(key));
  return result;
}

template <class T>
std::vector<std::string> Store<T>::keys() const {
  const MutexLock lock(mutex_);
  return keys_of(objects_);
}

template <class T>
std::vector<std::string> Store<T>::labelled() const {
  const MutexLock lock(mutex_);
  return keys_of(index_);
}

template <class T>
size_t Store<T>::size() const {
  const MutexLock lock(mutex_);
  return objects_.size();
}

template <class T>
void Store<T>::insert(T object) {
  const std::string key = object.meta.key();
  if (const std::string index = index_of(object); !index.empty()) index_[index].insert(key);
  objects_.insert_or_assign(key, std::move(object));
}

template <class T>
std::optional<T> Store<T>::extract(const std::string& key) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  std::optional<T> object(std::move(found->second));
  objects_.erase(found);
  if (const auto index = index_.find(index_of(*object)); index != index_.end()) {
    index->second.erase(key);
    if (index->second.empty()) index_.erase(index);
  }
  return object;
}

template <class T>
void Store<T>::tell(const T* before, const T* after) const {
  if (on_change_) on_change_(before, after);
}

// Does nothing if the object in the store has the same version or a newer one.
template <class T>
void Store<T>::put(T object) {
  std::optional<T> before;
  {
    const MutexLock lock(mutex_);
    const std::string key = object.meta.key();
    const auto there = objects_.find(key);
    if (there != objects_.end()) {
      const ObjectMeta& meta = there->second.meta;
      if (meta.resource_version == object.meta.resource_version ||
          is_older(object.meta.resource_version, meta.resource_version)) {
        return;
      }
      before = extract(key);
    }
    insert(object);
  }
  tell(before ? &*before : nullptr, &object);
}

template <class T>
void Store<T>::drop(const std::string& key) {
  std::optional<T> before;
  {
    const MutexLock lock(mutex_);
    before = extract(key);
  }
  if (before) tell(&*before, nullptr);
}

template <class T>
void Store<T>::refresh(T object) {
  const MutexLock lock(mutex_);
  const std::string key = object.meta.key();
  const auto there = objects_.find(key);
  if (there == objects_.end() || there->second.meta.uid != object.meta.uid ||
      !is_older(there->second.meta.resource_version, object.meta.resource_version)) {
    return;
  }
  extract(key);
  insert(std::move(object));
}

template <class T>
class Store<T>::Part final : public Mirror {
 public:
  Part(Store& store, const std::string& name_space) : store_(store) {
    listing_.name_space = name_space;
  }
  void begin_list() override { listing_.listed.clear(); }
  Page add_page(std::string_view text) override { return store_.add_page(text, listing_); }
  void end_list() override { store_.end_list(listing_); }
  Seen apply(std::string_view line) override { return store_.apply(line); }

 private:
  Store& store_;
  Listing listing_;
};

template <class T>
std::unique_ptr<Mirror> Store<T>::part(const std::string& name_space) {
  return std::make_unique<Part>(*this, name_space);
}

template <class T>
Mirror::Page Store<T>::add_page(std::string_view text, Listing& listing) {
  ListPage<T> page = decode_list<T>(text);
  for (T& object : page.items) {
    listing.listed.insert(object.meta.key());
    put(std::move(object));
  }
  Page seen{std::move(page.resource_version), std::move(page.next), {}};
  for (const Unread& unread : page.unread) {
    listing.listed.insert(unread.key);
    seen.unread.push_back(describe(unread.key, unread.why));
  }
  return seen;
}

template <class T>
void Store<T>::end_list(Listing& listing) {
  const std::string prefix = listing.name_space.empty() ? "" : listing.name_space + "/";
  for (const std::string& key : keys())
    if (key.starts_with(prefix) && !listing.listed.contains(key)) drop(key);
  listing.listed.clear();
}

template <class T>
Mirror::Seen Store<T>::apply(std::string_view line) {
  WatchEvent<T> event = decode_event<T>(line);
  Seen seen{event.type, event.object.meta.resource_version, std::move(event.status), {}};
  if (event.type == EventType::deleted) {
    drop(event.object.meta.key());
  } else if (event.type == EventType::added || event.type == EventType::modified) {
    if (event.unread.empty()) {
      put(std::move(event.object));
    } else {
      seen.unread = describe(event.object.meta.key(), event.unread);
    }
  }
  return seen;
}

template class Store<Pod>;
template class Store<Service>;
template class Store<WholeObject>;

}  // namespace muster::kube
