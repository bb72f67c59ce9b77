#include "trainer/data/tables/example_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/text/utf8.h"
#include "proto/muster/example.pb.h"
#include "trainer/records/record_file.h"

namespace muster::data {
namespace {

using tables::CellKind;
using tfexample::Feature;

constexpr uint64_t kBlock = 4096;  // records that are kept in memory
constexpr int64_t kMostExactInteger = int64_t{1} << 53;
constexpr double kMissingValue = std::numeric_limits<double>::quiet_NaN();

bool is_exact(int64_t number) {
  return number >= -kMostExactInteger && number <= kMostExactInteger;
}

int values_in(const Feature& feature) {
  switch (feature.kind_case()) {
    case Feature::kBytesList:
      return feature.bytes_list().value_size();
    case Feature::kFloatList:
      return feature.float_list().value_size();
    case Feature::kInt64List:
      return feature.int64_list().value_size();
    case Feature::KIND_NOT_SET:
      break;
  }
  return 0;
}

double number_of(const Feature& feature, int value) {
  return feature.kind_case() == Feature::kInt64List
             ? static_cast<double>(feature.int64_list().value(value))
             : static_cast<double>(feature.float_list().value(value));
}

std::string text_of(const Feature& feature, int value) {
  switch (feature.kind_case()) {
    case Feature::kBytesList:
      return feature.bytes_list().value(value);
    case Feature::kInt64List:
      return fmt::format("{}", feature.int64_list().value(value));
    default:
      return fmt::format("{}", feature.float_list().value(value));
  }
}

// Numbers texts in the order of their first use.
class TextNumbers {
 public:
  void add(tables::Texts& texts, std::string text) {
    const auto next = static_cast<int32_t>(texts.values.size());
    const auto [at, is_new] = known_.try_emplace(text, next);
    if (is_new) texts.values.push_back(std::move(text));
    texts.cells.push_back(at->second);
  }

 private:
  std::unordered_map<std::string, int32_t> known_;
};

class ExampleTable : public tables::Table {
 public:
  explicit ExampleTable(const std::filesystem::path& file) : file_(file), places_(file_.index()) {
    std::map<std::string, Found> found;
    for (uint64_t block = 0; block * kBlock < places_.size(); ++block) {
      for (const tfexample::Example& example : read(block)) look(example, found);
      rows_of_blocks_.push_back(examples_.size());
    }
    for (const auto& [name, column] : found)
      columns_.push_back({name, column.cell_kind(), column.type()});
  }

  const std::vector<tables::ColumnInfo>& columns() const override { return columns_; }
  const std::vector<uint64_t>& rows_of_blocks() const override { return rows_of_blocks_; }

  int64_t read_numbers(size_t block, size_t column, std::span<double> cells) const override {
    int64_t inexact = -1;
    size_t row = 0;
    for_features(block, column, [&](const Feature& feature) {
      const bool is_there = values_in(feature) > 0;
      if (is_there && feature.kind_case() == Feature::kInt64List && inexact < 0 &&
          !is_exact(feature.int64_list().value(0)))
        inexact = static_cast<int64_t>(row);
      cells[row++] = is_there ? number_of(feature, 0) : kMissingValue;
    });
    return inexact;
  }

  tables::Texts read_texts(size_t block, size_t column) const override {
    tables::Texts texts;
    TextNumbers numbers;
    for_features(block, column, [&](const Feature& feature) {
      if (values_in(feature) > 0)
        numbers.add(texts, text_of(feature, 0));
      else
        texts.cells.push_back(-1);
    });
    return texts;
  }

  tables::Lists read_lists(size_t block, size_t column) const override {
    tables::Lists lists;
    TextNumbers numbers;
    uint64_t end = 0;
    for_features(block, column, [&](const Feature& feature) {
      const int count = values_in(feature);
      for (int i = 0; i < count; ++i) {
        if (feature.kind_case() == Feature::kBytesList)
          numbers.add(lists.texts, text_of(feature, i));
        else
          lists.numbers.push_back(number_of(feature, i));
      }
      lists.ends.push_back(end += static_cast<uint64_t>(count));
    });
    return lists;
  }

 private:
  // What was seen of a feature.
  struct Found {
    Feature::KindCase kind = Feature::KIND_NOT_SET;
    bool has_lists = false, has_bytes = false;  // bytes that are no text

    CellKind cell_kind() const {
      if (kind == Feature::KIND_NOT_SET) return CellKind::empty;
      if (has_bytes) return CellKind::other;
      if (kind == Feature::kBytesList) return has_lists ? CellKind::texts : CellKind::text;
      if (has_lists) return CellKind::numbers;
      return kind == Feature::kInt64List ? CellKind::integer : CellKind::number;
    }
    std::string type() const {
      const std::string one = kind == Feature::kBytesList   ? "bytes"
                              : kind == Feature::kFloatList ? "float"
                                                            : "int64";
      return kind == Feature::KIND_NOT_SET ? "nothing" : has_lists ? "list of " + one : one;
    }
  };

  void look(const tfexample::Example& example, std::map<std::string, Found>& found) const {
    for (const auto& [name, feature] : example.features().feature()) {
      Found& column = found[name];
      const int values = values_in(feature);
      if (values == 0) continue;
      if (column.kind != Feature::KIND_NOT_SET && column.kind != feature.kind_case())
        throw Invalid(
            fmt::format("{}: feature {}: expected values of one type in all records, "
                        "found others from record {} on",
                        file_.path().string(), name, first_ + 1));
      column.kind = feature.kind_case();
      column.has_lists = column.has_lists || values > 1;
      for (const std::string& bytes : feature.bytes_list().value())
        column.has_bytes = column.has_bytes || find_bad_utf8(bytes) != std::string::npos;
    }
  }

  // Reads a block, unless it is the one that was read last.
  const std::vector<tfexample::Example>& read(uint64_t block) const {
    if (!examples_.empty() && first_ == block * kBlock) return examples_;
    first_ = block * kBlock;
    examples_.clear();
    std::string bytes;
    for (uint64_t i = first_; i < std::min<uint64_t>(first_ + kBlock, places_.size()); ++i) {
      file_.read(places_[i], i, bytes);
      if (!examples_.emplace_back().ParseFromString(bytes))
        throw Invalid(
            fmt::format("{}: expected a tf.train.Example, found {} bytes of something "
                        "else",
                        records::name_of(file_.path(), i, places_[i].offset), bytes.size()));
    }
    return examples_;
  }

  // Calls `each` with the feature of each record of a block; one that is not there has no kind.
  template <typename Each>
  void for_features(size_t block, size_t column, Each each) const {
    for (const tfexample::Example& example : read(block)) {
      const auto& features = example.features().feature();
      const auto found = features.find(columns_[column].name);
      each(found == features.end() ? Feature::default_instance() : found->second);
    }
  }

  const records::RecordFile file_;
  const std::vector<records::Place> places_;
  std::vector<tables::ColumnInfo> columns_;
  std::vector<uint64_t> rows_of_blocks_;
  mutable std::vector<tfexample::Example> examples_;  // of the block that was read last
  mutable uint64_t first_ = 0;                        // its first record
};

}  // namespace

std::unique_ptr<const tables::Table> open_examples(const std::filesystem::path& file) {
  return std::make_unique<ExampleTable>(file);
}

}  // namespace muster::data
