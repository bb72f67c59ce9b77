#include "trainer/data/sources/table_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <system_error>

#include "common/digest.h"
#include "common/error.h"
#include "common/threads/mutex.h"
#include "trainer/data/order/epoch_order.h"
#include "trainer/data/tables/preparing.h"
#include "trainer/data/tables/row_writer.h"

namespace muster::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMixingSeed = 0x7461626c65;  // the same for all tables, so that parts fit

const spec::TableSource& table_of(const spec::DataSource& source) {
  return *source.table();
}

std::string optional_text(const std::optional<double>& number) {
  return number ? fmt::format("{}", *number) : "-";
}

std::string feature_text(const spec::TableFeature& feature) {
  return fmt::format("{} {:?} {} {} {} {} {} {} {} {} {} {:?}\n",
                     feature.kind ? static_cast<int>(*feature.kind) : -1, feature.separator,
                     optional_text(feature.least), optional_text(feature.most),
                     static_cast<int>(feature.transform), feature.buckets,
                     static_cast<int>(feature.missing), feature.constant, feature.most_values,
                     feature.spare_values, feature.hash_buckets, fmt::join(feature.columns, " "));
}

// Returns a text that differs for sources of which something else is known, and changes when a file
// does.
std::string key_of(const spec::DataSource& source) {
  const spec::TableSource& table = table_of(source);
  std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {:?} {:?} {}\n", source.skip, source.take,
                  source.split_fraction.value_or(0), static_cast<int>(source.split_part),
                  table.format.name, int{table.format.separator}, table.format.decimal,
                  table.format.header, static_cast<int>(table.order), table.order_column,
                  table.weight_column, table.group_column, table.prepared.dump());
  for (const fs::path& file : table_files(table)) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    const auto time = fs::last_write_time(file, error).time_since_epoch().count();
    key += fmt::format("{} {} {}\n", file.string(), size, time);
  }
  for (const spec::TableFeature& feature : table.features) key += feature_text(feature);
  key += fmt::format("{:?} {} {}\n", fmt::join(table.target.columns, " "), table.target.is_class,
                     static_cast<int>(table.target.transform));
  // With what a model keeps, the training data need not be there.
  const bool has_decided = table.prepared.is_null() && table.trained_on != nullptr;
  if (has_decided) key += key_of(*table.trained_on);
  return key;
}

// Names the rows that a source selects: changes when their number does, or a file's name or size.
// Folders are left out, since replicas may have them at different places.
std::string name_of_files(const spec::DataSource& source) {
  std::string text =
      fmt::format("{} {} {} {}", source.skip, source.take, source.split_fraction.value_or(0),
                  static_cast<int>(source.split_part));
  for (const fs::path& file : table_files(table_of(source))) {
    std::error_code error;
    text += fmt::format(" {:?} {}", file.filename().string(), fs::file_size(file, error));
  }
  return sha256(text).substr(0, 16);
}

// The order in which the rows of a table are numbered.
class Numbering {
 public:
  Numbering(const spec::TableSource& table, uint64_t rows) : rows_(rows) {
    switch (table.order) {
      case spec::RowOrder::as_they_are:
        break;
      case spec::RowOrder::mixed: {
        EpochOrder order(rows, true, kMixingSeed);
        for (uint64_t i = 0; i < rows; ++i) order_.push_back(order.at(0, i));
        break;
      }
      case spec::RowOrder::by_value:
        sort_by_value(table);
        break;
      case spec::RowOrder::by_group:
        put_groups_together(table);
    }
  }

  uint64_t row(uint64_t position) const { return order_.empty() ? position : order_[position]; }

  // Returns the first position from `position` on at which a group begins.
  uint64_t group_from(uint64_t position) const {
    if (groups_.empty()) return position;
    const auto found = std::ranges::lower_bound(groups_, position);
    return found == groups_.end() ? rows_ : *found;
  }

 private:
  // Reads the column that decides the order; refuses missing cells.
  static RawRows keys(const spec::TableSource& table, std::optional<FeatureKind> kind) {
    RawRows keys = read_all(table, {.all = false, .columns = {{table.order_column, kind}}});
    const RawColumn& column = keys.columns.front();
    for (uint64_t row = 0; row < keys.count; ++row)
      if (column.is_text() ? column.cells[row] < 0 : std::isnan(column.numbers[row]))
        throw Invalid(
            fmt::format("{}, row {}, column {}: expected a value, which decides the "
                        "order of the rows, found an empty cell",
                        table.name(), row + 1, column.name));
    return keys;
  }

  void sort_by_value(const spec::TableSource& table) {
    const RawRows rows = keys(table, std::nullopt);
    const RawColumn& column = rows.columns.front();
    order_.resize(rows_);
    std::iota(order_.begin(), order_.end(), uint64_t{0});
    const auto text = [&](uint64_t row) -> const std::string& {
      return column.values[static_cast<size_t>(column.cells[row])];
    };
    std::ranges::stable_sort(order_, [&](uint64_t a, uint64_t b) {
      return column.is_text() ? text(a) < text(b) : column.numbers[a] < column.numbers[b];
    });
  }

  void put_groups_together(const spec::TableSource& table) {
    const RawRows rows = keys(table, FeatureKind::category);
    const RawColumn& column = rows.columns.front();
    EpochOrder mixed(column.values.size(), true, kMixingSeed);
    std::vector<uint64_t> place(column.values.size());  // of each group
    for (uint64_t i = 0; i < place.size(); ++i) place[mixed.at(0, i)] = i;
    const auto group = [&](uint64_t row) { return place[static_cast<size_t>(column.cells[row])]; };
    order_.resize(rows_);
    std::iota(order_.begin(), order_.end(), uint64_t{0});
    std::ranges::stable_sort(order_, [&](uint64_t a, uint64_t b) { return group(a) < group(b); });
    for (uint64_t i = 0; i < rows_; ++i)
      if (i == 0 || group(order_[i]) != group(order_[i - 1])) groups_.push_back(i);
  }

  const uint64_t rows_;
  std::vector<uint64_t> order_;   // empty: as they are
  std::vector<uint64_t> groups_;  // positions at which groups begin; empty: no groups
};

// The rows of all files that are selected, and the samples that they become.
class ChosenRows {
 public:
  // Those that skip, take and split select.
  ChosenRows(const spec::DataSource& source, uint64_t rows) : samples_(rows, kNone) {
    const spec::TableSource& table = table_of(source);
    const Selected selected = select(Selection::of(source), rows, table.name());
    const Numbering numbering(table, rows);
    const uint64_t begin = numbering.group_from(selected.first);
    const uint64_t end = numbering.group_from(selected.first + selected.count);
    if (begin == end)
      throw Invalid(fmt::format("{}: expected a group of {} in each part, found none in this one",
                                table.name(), table.order_column));
    for (uint64_t position = begin; position < end; ++position)
      samples_[numbering.row(position)] = static_cast<uint32_t>(count_++);
  }
  // The rows of these parts, one after the other.
  ChosenRows(const std::vector<FilePart>& parts, const std::vector<uint64_t>& rows_of_files)
      : samples_(std::accumulate(rows_of_files.begin(), rows_of_files.end(), uint64_t{0}), kNone) {
    for (const FilePart& part : parts) {
      const auto file = rows_of_files.begin() + static_cast<std::ptrdiff_t>(part.file);
      const uint64_t first = std::accumulate(rows_of_files.begin(), file, part.first);
      for (uint64_t i = 0; i < part.count; ++i)
        samples_[first + i] = static_cast<uint32_t>(count_++);
    }
  }

  uint64_t count() const { return count_; }
  std::vector<PlacedRow> of(const RawRows& rows) const {
    std::vector<PlacedRow> placed;
    placed.reserve(rows.count);
    for (uint64_t row = 0; row < rows.count; ++row)
      if (const uint32_t sample = samples_[rows.first + row]; sample != kNone)
        placed.push_back({row, sample});
    return placed;
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  std::vector<uint32_t> samples_;  // of each row
  uint64_t count_ = 0;
};

std::vector<uint64_t> rows_in(const std::vector<PlacedRow>& placed) {
  std::vector<uint64_t> rows;
  for (const PlacedRow& each : placed) rows.push_back(each.row);
  return rows;
}

// Adds the column that a source has besides features and target, as the last one: training data
// may have weights, and data for evaluation may have groups.
Wanted besides(Wanted wanted, const spec::TableSource& table) {
  if (!table.weight_column.empty())
    wanted.columns.push_back({table.weight_column, FeatureKind::number});
  if (!table.group_column.empty())
    wanted.columns.push_back({table.group_column, FeatureKind::category});
  return wanted;
}

void write_besides(const RawRows& rows, std::span<const PlacedRow> placed, Samples& samples) {
  const RawColumn& column = rows.columns.back();
  for (const auto& [row, sample] : placed) {
    if (!samples.weights.empty()) samples.weights[sample] = weight_of(rows, column, row);
    if (samples.groups.empty()) continue;
    samples.groups[sample] = column.cells[row];
    if (column.cells[row] < 0)
      rows.refuse(row, column.name, "the group in which the row is ranked", "an empty cell");
  }
}

// Looks at the targets of data that do not decide the preparation.
void check_targets(RowWriter& writer, const Preparation& preparation, const RawRows& rows,
                   std::vector<PlacedRow> placed) {
  for (PlacedRow& each : placed) each.sample = 0;
  std::vector<float> targets(preparation.targets.size());
  int32_t of_class = 0;
  if (preparation.target_is_class)
    writer.write_classes(rows, placed, &of_class);
  else
    writer.write_targets(rows, placed, targets.data());
}

// Fills in what the number of classes or targets tells.
void add_target_facts(const spec::TableSource& table, TableIndex& index) {
  spec::DataFacts& facts = index.facts;
  const Preparation& preparation = index.preparation;
  if (!preparation.target_is_class) {
    facts.label_count = static_cast<int64_t>(preparation.targets.size());
    return;
  }
  const std::string& target = preparation.targets.front();
  facts.classes = preparation.classes;
  facts.label_count = static_cast<int64_t>(facts.classes.size());
  facts.largest_label = fmt::format("{} classes in the column {}", facts.classes.size(), target);
  if (facts.classes.size() == 1)
    facts.notes.push_back(
        fmt::format("{}: \"{}\" is the only class in the column {}, so that there "
                    "is nothing to learn",
                    table.name(), facts.classes[0], target));
}

TableIndex make_index(const spec::DataSource& source) {
  const spec::TableSource& table = table_of(source);
  TableIndex index;
  const bool decides = table.prepared.is_null() && table.trained_on == nullptr;
  if (!table.prepared.is_null())
    index.preparation = parse_preparation(table.prepared, "samples: table");
  else if (!decides)
    index.preparation = read_table_index(*table.trained_on).preparation;
  RawReader reader(table,
                   besides(decides ? wanted_of(table) : index.preparation.wanted(true), table));
  index.rows_of_files = reader.rows_of_files();
  index.facts.samples =
      std::accumulate(index.rows_of_files.begin(), index.rows_of_files.end(), uint64_t{0});
  if (index.facts.samples == 0) throw Invalid(table.name() + ": expected rows, found none");
  const ChosenRows chosen(source, index.facts.samples);
  Preparing preparing(table);
  RowWriter writer(index.preparation);
  reader.read([&](const RawRows& rows) {
    const std::vector<PlacedRow> placed = chosen.of(rows);
    if (decides)
      preparing.add(rows, rows_in(placed));
    else
      check_targets(writer, index.preparation, rows, placed);
  });
  if (decides) {
    index.preparation = preparing.finish();
    index.preparation.files = name_of_files(source);
  }
  index.facts.sample_shape = {index.preparation.inputs()};
  index.facts.files = reader.files().size();
  add_target_facts(table, index);
  return index;
}

// Reads the chosen rows.
Samples read_samples(const spec::DataSource& source, const ChosenRows& chosen,
                     StorageKind storage) {
  const TableIndex& index = read_table_index(source);
  const Preparation& preparation = index.preparation;
  const spec::TableSource& table = table_of(source);
  RawReader reader(table, besides(preparation.wanted(true), table));
  if (reader.rows_of_files() != index.rows_of_files)
    throw Invalid(table.name() +
                  ": expected the rows that were there a moment ago, found others: a file has "
                  "changed");
  Samples samples;
  samples.count = chosen.count();
  samples.shape = {preparation.inputs()};
  samples.classes = preparation.classes;
  samples.table = to_json(preparation);
  samples.label_count = index.facts.label_count;
  const auto inputs = static_cast<size_t>(preparation.inputs());
  samples.features = Storage(samples.count * inputs * sizeof(float), storage);
  if (preparation.target_is_class)
    samples.labels.resize(samples.count);
  else
    samples.targets.resize(samples.count * preparation.targets.size());
  samples.weights.resize(table.weight_column.empty() ? 0 : samples.count);
  samples.groups.resize(table.group_column.empty() ? 0 : samples.count);
  samples.rank_at = table.group_column.empty() ? 0 : table.rank_at;
  RowWriter writer(preparation);
  reader.read([&](const RawRows& rows) {
    const std::vector<PlacedRow> placed = chosen.of(rows);
    writer.write_inputs(rows, placed, samples.features.floats().data());
    if (preparation.target_is_class)
      writer.write_classes(rows, placed, samples.labels.data());
    else
      writer.write_targets(rows, placed, samples.targets.data());
    write_besides(rows, placed, samples);
  });
  return samples;
}

}  // namespace

const TableIndex& read_table_index(const spec::DataSource& source) {
  static Mutex mutex;
  static std::map<std::string, TableIndex> known;
  const std::string key = key_of(source);
  {
    const MutexLock lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  TableIndex index = make_index(source);
  const MutexLock lock(mutex);
  return known.try_emplace(key, std::move(index)).first->second;
}

Json continue_preparation(const spec::DataSource& train, const Json& kept) {
  Preparation preparation = parse_preparation(kept, "samples: table");
  std::vector<std::string> frozen;
  for (const spec::TableFeature& feature : table_of(train).features)
    if (feature.freeze) frozen.insert(frozen.end(), feature.columns.begin(), feature.columns.end());
  Extending extending(preparation, frozen);
  const std::string files = name_of_files(train);
  if (extending.columns() == 0 || preparation.files == files) return kept;
  RawReader reader(table_of(train), preparation.wanted(true));
  const std::vector<uint64_t> rows = reader.rows_of_files();
  const ChosenRows chosen(train, std::accumulate(rows.begin(), rows.end(), uint64_t{0}));
  reader.read([&](const RawRows& block) { extending.add(block, rows_in(chosen.of(block))); });
  extending.finish();
  preparation.files = files;
  return to_json(preparation);
}

Samples read_table(const spec::DataSource& source, StorageKind storage) {
  const spec::TableSource& table = table_of(source);
  const TableIndex& index = read_table_index(source);
  if (table.order == spec::RowOrder::as_they_are)
    return read_table_parts(
        source, selected_parts(index.rows_of_files, Selection::of(source), table.name()), storage);
  Samples samples = read_samples(source, ChosenRows(source, index.facts.samples), storage);
  close_tables();
  samples.origins = {{0, table.name() + ", in another order", 0}};
  return samples;
}

Samples read_table_parts(const spec::DataSource& source, const std::vector<FilePart>& parts,
                         StorageKind storage) {
  const TableIndex& index = read_table_index(source);
  Samples samples = read_samples(source, ChosenRows(parts, index.rows_of_files), storage);
  close_tables();
  const std::vector<fs::path> files = table_files(table_of(source));
  uint64_t begin = 0;
  for (const FilePart& part : parts) {
    samples.origins.push_back({begin, files[part.file].string(), part.first});
    begin += part.count;
  }
  return samples;
}

}  // namespace muster::data
