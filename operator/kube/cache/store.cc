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

}  // namespace

template <class T>
typename Store<T>::Place Store<T>::place_of(std::string_view key) {
  const size_t slash = std::min(key.find('/'), key.size());
  return {key.substr(0, slash), key.substr(std::min(slash + 1, key.size()))};
}

template <class T>
typename Store<T>::Place Store<T>::ByLabel::place_of(const T& object) const {
  const auto found = object.meta.labels.find(label);
  const bool has = found != object.meta.labels.end();
  return {object.meta.name_space, has ? std::string_view(found->second) : ""};
}

template <class T>
bool Store<T>::ByLabel::operator()(const T* a, const T* b) const {
  const Place of_a = place_of(*a), of_b = place_of(*b);
  return of_a != of_b ? of_a < of_b : a->meta.name < b->meta.name;
}

template <class T>
std::optional<T> Store<T>::get(const std::string& key) const {
  const MutexLock lock(mutex_);
  const auto found = objects_.find(place_of(key));
  return found == objects_.end() ? std::nullopt : std::optional<T>(*found);
}

template <class T>
std::vector<T> Store<T>::find(const std::string& name_space, const std::string& label_value) const {
  const MutexLock lock(mutex_);
  std::vector<T> result;
  const auto [begin, end] = labelled_.equal_range(Place(name_space, label_value));
  for (auto object = begin; object != end; ++object) result.push_back(**object);
  return result;
}

template <class T>
std::vector<std::string> Store<T>::keys() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> keys;
  for (const T& object : objects_) keys.push_back(object.meta.key());
  return keys;
}

template <class T>
std::vector<std::string> Store<T>::labelled() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> values;
  std::optional<Place> last;
  for (const T* object : labelled_) {
    const Place place = labelled_.key_comp().place_of(*object);
    if (place != last) values.push_back(std::string(place.first) + "/" + std::string(place.second));
    last = place;
  }
  return values;
}

template <class T>
size_t Store<T>::size() const {
  const MutexLock lock(mutex_);
  return objects_.size();
}

template <class T>
void Store<T>::insert(T object) {
  const auto [inserted, is_new] = objects_.insert(std::move(object));
  const auto& by_label = labelled_.key_comp();
  if (is_new && !by_label.place_of(*inserted).second.empty()) labelled_.insert(&*inserted);
}

template <class T>
T Store<T>::extract(typename Objects::const_iterator object) {
  labelled_.erase(&*object);
  return std::move(objects_.extract(object).value());
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
    const auto there = objects_.find(object);
    if (there != objects_.end()) {
      const ObjectMeta& meta = there->meta;
      if (meta.resource_version == object.meta.resource_version ||
          is_older(object.meta.resource_version, meta.resource_version)) {
        return;
      }
      before = extract(there);
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
    const auto there = objects_.find(place_of(key));
    if (there != objects_.end()) before = extract(there);
  }
  if (before) tell(&*before, nullptr);
}

template <class T>
void Store<T>::refresh(T object) {
  const MutexLock lock(mutex_);
  const auto there = objects_.find(object);
  if (there == objects_.end() || there->meta.uid != object.meta.uid ||
      !is_older(there->meta.resource_version, object.meta.resource_version)) {
    return;
  }
  extract(there);
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
