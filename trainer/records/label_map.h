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
  // An item with id 0 is skipped if its name is background, which 0 stands for. Throws Invalid
  // naming `name` and the line for a text that is not UTF-8 or no label map, an unknown field, an
  // item without name or id, and an id 0 with another name. Throws Invalid naming `name` if there
  // is no item, or an id or a name occurs twice.
  static LabelMap parse(std::string_view text, const std::string& name);
  static LabelMap read(const std::filesystem::path& path);

  LabelMap() = default;
  // Throws Invalid, beginning with `name`, for an id below 0, and if an id or a name occurs twice.
  LabelMap(std::vector<Entry> entries, const std::string& name);

  // Sorted by id.
  const std::vector<Entry>& entries() const { return entries_; }
  // Returns the id of the class with this name or, if there is none, with this display name.
  std::optional<int32_t> id_of(std::string_view text) const;
  // Returns the index of the id's entry in entries(); nothing if there is no such id.
  std::optional<size_t> index_of(int32_t id) const;

  // Returns the class, from 0, of an existing id for a detector with `classes` classes. If all ids
  // are from 1 to `classes`, the class is id - 1, as in the Object Detection API, whose published
  // weights for COCO's 80 ids (up to 90) then fit. Otherwise the class is the id's index in
  // entries().
  int32_t class_of(int32_t id, int64_t classes) const;
  // Returns the display names by class. A class without an entry has its id as its name.
  std::vector<std::string> names_by_class(int64_t classes) const;

 private:
  bool counts_by_id(int64_t classes) const;

  std::vector<Entry> entries_;
  std::map<std::string, int32_t, std::less<>> ids_;
};

}  // namespace muster::records
