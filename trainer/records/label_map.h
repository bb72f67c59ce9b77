#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::records {

// The classes of a data set: ids, which need not follow each other, and their names.
class LabelMap {
 public:
  struct Entry {
    int32_t id = 0;
    std::string name;
    std::string display_name;  // the name if the data have no other

    bool operator==(const Entry&) const = default;
  };

  // The text format of the Object Detection API: `item { id: 1 name: 'n02' display_name: 'cat' }`.
  // An item of id 0 is passed over if it is called background, for which 0 stands. Throws Invalid
  // naming `name` and the line for a text that is no label map, a field that the format does not
  // have, an item without name or id, and an id 0 of anything else; and naming `name` if there is
  // no item, or an id or a name twice.
  static LabelMap parse(std::string_view text, const std::string& name);
  static LabelMap read(const std::filesystem::path& path);

  LabelMap() = default;
  // Throws Invalid, which begins with `name`, for an id below 0, or an id or a name twice.
  LabelMap(std::vector<Entry> entries, const std::string& name);

  // Sorted by id.
  const std::vector<Entry>& entries() const { return entries_; }
  // Returns the id of the class with this name, or with this display name if none has the name.
  std::optional<int32_t> id_of(std::string_view text) const;
  // Returns the class's place in entries(); none if there is no such id.
  std::optional<size_t> index_of(int32_t id) const;

  // The classes of a detector that has `classes` of them, counted from 0. An id is the class id -
  // 1, as in the Object Detection API, if all ids are from 1 to `classes`: then its published
  // weights fit COCO's 80 ids up to 90. Otherwise an id's class is its place in entries(). Returns
  // the class of an id that is there.
  int32_t class_of(int32_t id, int64_t classes) const;
  // Returns the display names by class. One without an id has its id as its name.
  std::vector<std::string> names_by_class(int64_t classes) const;

 private:
  bool counts_by_id(int64_t classes) const;

  std::vector<Entry> entries_;
  std::map<std::string, int32_t, std::less<>> ids_;
};

}  // namespace muster::records
