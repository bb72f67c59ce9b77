#include "trainer/data/tables/suggestion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "common/documents/document.h"
#include "common/error.h"
#include "trainer/data/tables/raw_table.h"
#include "trainer/data/tables/summary.h"

namespace muster::data {
namespace {

constexpr uint64_t kMostWholeClasses = 20;  // with more, whole numbers are a number to predict
constexpr uint64_t kFewestIdentified = 20;  // with fewer rows any column may have different cells
constexpr uint64_t kFewestRows = 10;
constexpr size_t kWidth = 100;  // of a line of YAML

bool is_class(const ColumnSummary& target) {
  if (target.is_text() || target.info.kind == tables::CellKind::boolean) return true;
  return target.is_whole && target.distinct <= kMostWholeClasses;
}

// Whether the target is 0 or 1, so that one output can be the probability of a 1.
bool is_decision(const ColumnSummary& target) {
  return target.info.kind == tables::CellKind::boolean ||
         (!target.is_text() && target.is_whole && target.least == 0 && target.most == 1);
}

// Whether the cells of two columns name each other: each value of one always comes with the same
// value of the other.
bool is_renamed(const RawColumn& a, const RawColumn& b) {
  std::unordered_map<int32_t, int32_t> there, back;
  for (size_t row = 0; row < a.cells.size(); ++row) {
    const int32_t x = a.cells[row], y = b.cells[row];
    if (there.try_emplace(x, y).first->second != y || back.try_emplace(y, x).first->second != x)
      return false;
  }
  return true;
}

// Whether the target is a factor times the column, and a constant.
bool is_scaled(const RawColumn& a, const RawColumn& b) {
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (size_t row = 0; row < a.numbers.size(); ++row) {
    const double p = a.numbers[row], q = b.numbers[row];
    if (std::isnan(p) || std::isnan(q)) continue;
    n += 1, x += p, y += q, xx += p * p, yy += q * q, xy += p * q;
  }
  const double spread = (n * xx - x * x) * (n * yy - y * y);
  return spread > 0 && std::abs(n * xy - x * y) / std::sqrt(spread) > 0.999999;
}

// Why a column cannot help; "" if it may.
std::string why_not(const ColumnSummary& column, uint64_t rows) {
  const std::string& name = column.info.name;
  if (name.empty() || name.starts_with("Unnamed:"))
    return "it has no name, as the index of a table";
  if (column.info.kind == tables::CellKind::other)
    return "its cells are neither numbers nor texts, but " + column.info.type;
  if (column.distinct == 0) return "all its cells are empty";
  if (column.distinct == 1 && column.missing == 0) return "all its cells are equal";
  const bool all_differ = column.missing == 0 && column.distinct == rows;
  const bool counts =
      column.is_whole && column.most - column.least == static_cast<double>(rows - 1);
  if (rows > kFewestIdentified && all_differ && (column.is_text() || counts))
    return "it has another value in each row, as an identifier";
  return "";
}

// A text in YAML.
std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string list_of(const std::vector<std::string>& names, const std::string& indent) {
  std::string text = "[", line;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = quoted(names[i]) + (i + 1 < names.size() ? ", " : "]");
    if (line.size() + name.size() > kWidth - indent.size()) {
      while (!line.empty() && line.back() == ' ') line.pop_back();
      text += line + "\n" + indent;
      line.clear();
    }
    line += name;
  }
  return text + line;
}

// Returns the file's name as the name of a job.
std::string job_name(const std::filesystem::path& file) {
  std::string name = file.stem().stem().string();
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    c = byte < 0x80 && std::isalnum(byte) ? static_cast<char>(std::tolower(byte)) : '-';
  }
  name = name.substr(0, 40);
  while (!name.empty() && name.back() == '-') name.pop_back();
  while (!name.empty() && !std::isalpha(static_cast<unsigned char>(name.front()))) name.erase(0, 1);
  return name.empty() ? "table" : name;
}

struct Chosen {
  std::vector<std::string> numbers, numbers_with_gaps, categories;
  bool empty() const { return numbers.empty() && numbers_with_gaps.empty() && categories.empty(); }
};

std::string features_text(const Chosen& chosen) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& names, const char* more) {
    if (names.empty()) return;
    text += "          - columns: " + list_of(names, "              ") + "\n" + more;
  };
  add(chosen.numbers, "            kind: number\n");
  add(chosen.numbers_with_gaps, "            kind: number\n            missing: flag\n");
  add(chosen.categories, "            kind: category\n");
  return text;
}

std::string files_text(const std::string& named, const spec::TableFormat& format) {
  std::string text = "          files: " + quoted(named) + "\n";
  if (!format.name.empty()) text += "          format: " + format.name + "\n";
  if (format.separator != 0)
    text += "          separator: " + quoted(std::string(1, format.separator)) + "\n";
  if (format.decimal != '.') text += "          decimal: \",\"\n";
  if (!format.header) text += "          header: false\n";
  return text + "          mixed: true          # the rows have a random order, always the same\n";
}

std::string manifest_text(const ColumnSummary& target, const Chosen& chosen,
                          const std::string& name, const std::string& files, uint64_t rows) {
  const bool decides = is_decision(target), classes = is_class(target) && !decides;
  const uint64_t train = rows * 7 / 10, validation = rows * 15 / 100;
  const uint64_t batch = rows < 20'000 ? 32 : 256;
  const uint64_t epochs =
      std::clamp<uint64_t>(3'000 * batch / std::max<uint64_t>(train, 1), 5, 300);
  return fmt::format(
      R"(# {}: made by `muster data suggest`. Change what you know better.
apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata:
  name: {}
spec:
  training:
    model:
      layers:
        - dense: {{units: {}, activation: relu}}
        - dense: {{units: {}}}
      loss: {}
    data:
      train:
        table:
{}          target:
            column: {}
            kind: {}
{}          features:
{}        take: {}
      validation:
        table:
{}        skip: {}
        take: {}
      test:
        table:
{}        skip: {}
    batchSize: {}
    epochs: {}
    optimizer: {{name: adamw, learningRate: 0.003, weightDecay: 0.01}}
    evaluation: {{everyEpochs: 1}}
    earlyStopping: {{metric: validationLoss, patience: 20, restoreBest: true}}
  replicaSpecs:
    chief: {{replicas: 1}}
)",
      decides   ? "predicts the probability of a 1"
      : classes ? "predicts a class"
                : "predicts a number",
      name, rows < 2'000 ? 32 : 64, classes ? target.distinct : 1,
      decides   ? "binaryCrossEntropy"
      : classes ? "softmaxCrossEntropy"
                : "meanSquaredError",
      files, quoted(target.info.name), classes ? "class" : "number",
      classes || decides ? "" : "            transform: standardize\n", features_text(chosen),
      train, files, train, validation, files, train + validation, batch, epochs);
}

// Leaves out the columns that give the target away.
void leave_out_copies(const spec::TableSource& source, const ColumnSummary& target,
                      std::vector<const ColumnSummary*>& columns, std::vector<std::string>& notes) {
  const bool classes = is_class(target);
  Wanted wanted;
  for (const ColumnSummary* column : columns)
    wanted.columns.push_back({column->info.name, classes || column->is_text()
                                                     ? FeatureKind::category
                                                     : FeatureKind::number});
  wanted.columns.push_back(
      {target.info.name, classes ? FeatureKind::category : FeatureKind::number});
  const RawRows table = read_all(source, wanted);
  const RawColumn& last = table.columns.back();
  std::vector<const ColumnSummary*> kept;
  for (size_t i = 0; i < columns.size(); ++i) {
    const RawColumn& column = table.columns[i];
    const bool gives_away = classes            ? is_renamed(column, last)
                            : column.is_text() ? false
                                               : is_scaled(column, last);
    if (gives_away)
      notes.push_back(
          fmt::format("column {} is left out: it gives the target away", quoted(column.name)));
    else
      kept.push_back(columns[i]);
  }
  columns = std::move(kept);
}

}  // namespace

Suggestion suggest(const std::filesystem::path& file, const std::string& named,
                   const spec::TableFormat& format, const std::string& target) {
  Suggestion suggestion;
  spec::TableSource source;
  source.files = {file};
  source.format = format;
  // The constructor refuses a column that is missing, and names those that are there.
  const RawReader names_missing(source,
                                {.all = false, .columns = {{target, FeatureKind::category}}});
  const TableSummary summary = summarize(file, format);
  const ColumnSummary& last =
      *std::ranges::find(summary.columns, target, [](const auto& c) { return c.info.name; });
  if (summary.rows < kFewestRows)
    throw Invalid(fmt::format("{}: expected at least {} rows, found {}", file.string(), kFewestRows,
                              summary.rows));
  if (last.missing > 0)
    throw Invalid(
        fmt::format("{}: expected a value of the target \"{}\" in every row, found none in "
                    "{} of {}",
                    file.string(), target, last.missing, summary.rows));
  if (last.distinct < 2)
    throw Invalid(fmt::format("{}: expected different values of the target \"{}\", found one",
                              file.string(), target));
  std::vector<const ColumnSummary*> columns;
  for (const ColumnSummary& column : summary.columns) {
    if (&column == &last) continue;
    const std::string why = why_not(column, summary.rows);
    if (why.empty())
      columns.push_back(&column);
    else
      suggestion.notes.push_back(
          fmt::format("column {} is left out: {}", quoted(column.info.name), why));
  }
  leave_out_copies(source, last, columns, suggestion.notes);
  Chosen chosen;
  for (const ColumnSummary* column : columns) {
    auto& list = column->is_text()     ? chosen.categories
                 : column->missing > 0 ? chosen.numbers_with_gaps
                                       : chosen.numbers;
    list.push_back(column->info.name);
  }
  if (chosen.empty())
    throw Invalid(fmt::format("{}: expected a column that helps to predict \"{}\", found none",
                              file.string(), target));
  suggestion.manifest =
      manifest_text(last, chosen, job_name(file), files_text(named, format), summary.rows);
  return suggestion;
}

}  // namespace muster::data
