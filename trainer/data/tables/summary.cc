#include "trainer/data/tables/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <unordered_map>

#include "common/text/shorten.h"
#include "trainer/data/tables/table_file.h"

namespace muster::data {
namespace {

constexpr size_t kMostFrequent = 3;
constexpr size_t kLongestCell = 32;

// Calls `each` with the number of each block, and its rows.
template <typename Each>
void for_blocks(const TableFile& table, Each each) {
  for (size_t block = 0; block < table.rows_of_blocks().size(); ++block)
    each(block, table.rows_of_blocks()[block]);
}

void summarize_numbers(const TableFile& table, size_t place, ColumnSummary& column) {
  std::vector<double> cells(table.rows());
  size_t first = 0;
  for_blocks(table, [&](size_t block, uint64_t rows) {
    table.read_numbers(block, place, std::span(cells).subspan(first, rows));
    first += rows;
  });
  std::erase_if(cells, [](double cell) { return std::isnan(cell); });
  column.missing = table.rows() - cells.size();
  if (cells.empty()) return;
  std::ranges::sort(cells);
  column.least = cells.front();
  column.most = cells.back();
  const double width = (column.most - column.least) / ColumnSummary::kBins;
  for (const double cell : cells) {
    const double bin = width > 0 ? (cell - column.least) / width : 0;
    ++column.bins[std::min(static_cast<size_t>(bin), ColumnSummary::kBins - 1)];
  }
  column.is_whole =
      std::ranges::all_of(cells, [](double cell) { return std::floor(cell) == cell; });
  for (const double cell : cells) column.mean += cell;
  const auto count = static_cast<double>(cells.size());
  column.mean /= count;
  for (const double cell : cells) column.deviation += (cell - column.mean) * (cell - column.mean);
  column.deviation = std::sqrt(column.deviation / count);
  column.distinct =
      static_cast<uint64_t>(std::distance(cells.begin(), std::unique(cells.begin(), cells.end())));
}

// Counts the texts that `read` returns for each block.
template <typename Read>
void summarize_texts(const TableFile& table, ColumnSummary& column, Read read) {
  std::unordered_map<std::string, uint64_t> counts;
  for_blocks(table, [&](size_t block, uint64_t) {
    const tables::Texts texts = read(block);
    for (const int32_t cell : texts.cells)
      ++(cell < 0 ? column.missing : counts[texts.values[static_cast<size_t>(cell)]]);
  });
  column.distinct = counts.size();
  column.frequent.assign(counts.begin(), counts.end());
  std::ranges::sort(column.frequent, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (column.frequent.size() > kMostFrequent) column.frequent.resize(kMostFrequent);
}

// Control characters of a cell would change what a terminal shows.
std::string shown(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return shorten(text, kLongestCell);
}

// Returns a bar for each count, whose height is its share of the largest one.
std::string picture(std::span<const uint64_t> counts) {
  static constexpr const char* kBars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const uint64_t most = std::max<uint64_t>(1, std::ranges::max(counts));
  std::string bars;
  for (const uint64_t count : counts) bars += kBars[(count * 8 + most - 1) / most];
  return bars;
}

std::string values_text(const ColumnSummary& column) {
  if (column.is_text()) {
    std::vector<std::string> values;
    for (const auto& [value, count] : column.frequent)
      values.push_back(fmt::format("{} ({})", shown(value), count));
    return fmt::format("{}{}", fmt::join(values, ", "),
                       column.distinct > values.size() ? ", ..." : "");
  }
  if (!column.is_usable() || column.distinct == 0) return "";
  return fmt::format("{:.6g} to {:.6g}, mean {:.6g}  {}", column.least, column.most, column.mean,
                     picture(column.bins));
}

}  // namespace

TableSummary summarize(const std::filesystem::path& file, const spec::TableFormat& format) {
  const TableFile table(file, format);
  TableSummary summary{file, table.rows(), {}};
  for (size_t place = 0; place < table.columns().size(); ++place) {
    ColumnSummary column;
    column.info = table.columns()[place];
    if (column.info.kind == tables::CellKind::empty)
      column.missing = table.rows();
    else if (column.is_text())
      summarize_texts(table, column, [&](size_t block) { return table.read_texts(block, place); });
    else if (column.is_usable())
      summarize_numbers(table, place, column);
    summary.columns.push_back(std::move(column));
  }
  return summary;
}

std::string summary_text(const TableSummary& summary) {
  size_t name = 6, type = 4;
  for (const ColumnSummary& column : summary.columns) {
    name = std::max(name, shown(column.info.name).size());
    type = std::max(type, shown(column.info.type).size());
  }
  std::string text = fmt::format("{}: {} rows, {} columns\n", summary.file.string(), summary.rows,
                                 summary.columns.size());
  text += fmt::format("{:<{}}  {:<{}}  {:>8}  {:>8}  {}\n", "column", name, "type", type, "missing",
                      "distinct", "values");
  for (const ColumnSummary& column : summary.columns)
    text += fmt::format("{:<{}}  {:<{}}  {:>8}  {:>8}  {}\n", shown(column.info.name), name,
                        shown(column.info.type), type, column.missing, column.distinct,
                        values_text(column));
  return text;
}

Json to_json(const TableSummary& summary) {
  Json columns = Json::array();
  for (const ColumnSummary& column : summary.columns) {
    Json json = {{"column", column.info.name},
                 {"type", column.info.type},
                 {"missing", column.missing},
                 {"distinct", column.distinct}};
    if (column.is_text()) {
      json["frequent"] = Json::array();
      for (const auto& [value, count] : column.frequent)
        json["frequent"].push_back({{"value", value}, {"cells", count}});
    } else if (column.is_usable() && column.distinct > 0) {
      json.update(Json{{"least", column.least},
                       {"most", column.most},
                       {"mean", column.mean},
                       {"deviation", column.deviation},
                       {"bins", column.bins}});
    }
    columns.push_back(std::move(json));
  }
  return {{"file", summary.file.string()}, {"rows", summary.rows}, {"columns", std::move(columns)}};
}

}  // namespace muster::data
