#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/documents/document.h"
#include "trainer/data/tables/raw_table.h"
#include "trainer/tables/table.h"

namespace muster::data {

// What is known of a column after all its cells were seen.
struct ColumnSummary {
  tables::ColumnInfo info;
  uint64_t missing = 0;
  uint64_t distinct = 0;  // different values, without missing cells
  // Of numbers and times.
  double least = 0, most = 0, mean = 0, deviation = 0;
  bool is_whole = false;  // whether all numbers are integers
  // Of numbers: how many are in each of kBins equal parts of the range from `least` to `most`.
  static constexpr size_t kBins = 12;
  std::array<uint64_t, kBins> bins{};
  // Of texts: the most frequent values, with their numbers of cells.
  std::vector<std::pair<std::string, uint64_t>> frequent;

  bool is_text() const { return info.kind == tables::CellKind::text; }
  // Whether the cells can be features: numbers or texts, of which one is not missing.
  bool is_usable() const { return info.kind < tables::CellKind::empty; }
};

struct TableSummary {
  std::filesystem::path file;
  uint64_t rows = 0;
  std::vector<ColumnSummary> columns;
};

// Looks at all cells of a file. Throws Invalid.
TableSummary summarize(const std::filesystem::path& file, const spec::TableFormat& format);

// `muster data describe`: a line for each column, with a small picture of how its numbers, or its
// most frequent texts, are distributed.
std::string summary_text(const TableSummary& summary);
Json to_json(const TableSummary& summary);

}  // namespace muster::data
