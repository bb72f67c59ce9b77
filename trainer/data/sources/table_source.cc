#include "trainer/data/sources/table_source.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <system_error>

#include "common/error.h"
#include "common/threads/mutex.h"
#include "trainer/data/order/epoch_order.h"

namespace muster::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMixingSeed = 0x7461626c65;  // the same for all tables, so that parts fit

const spec::TableSource& table_of(const spec::DataSource& source) {
  return *source.table();
}

// Returns a text that differs for sources of which something else is known, and changes when a file
// does.
std::string key_of(const spec::DataSource& source) {
  const spec::TableSource& table = table_of(source);
  std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {} {}\n", source.skip, source.take,
                  source.split_fraction.value_or(0), static_cast<int>(source.split_part),
                  table.format.name, int{table.format.separator}, table.format.decimal,
                  table.format.header, table.mixed, table.prepared.dump());
  for (const fs::path& file : table_files(table)) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    const auto time = fs::last_write_time(file, error).time_since_epoch().count();
    key += fmt::format("{} {} {}\n", file.string(), size, time);
  }
  for (const spec::TableFeature& feature : table.features) {
    key += fmt::format("{} {} {} {} {}", feature.is_category ? int{*feature.is_category} : 2,
                       static_cast<int>(feature.transform), static_cast<int>(feature.missing),
                       feature.constant, feature.most_values);
    for (const std::string& name : feature.columns) key += " " + name;
    key += "\n";
  }
  key += fmt::format("{} {} {}\n", table.target.column, table.target.is_class,
                     static_cast<int>(table.target.transform));
  // With what a model keeps, the training data need not be there.
  const bool has_decided = table.prepared.is_null() && table.trained_on != nullptr;
  if (has_decided) key += key_of(*table.trained_on);
  return key;
}

std::vector<uint64_t> selected_rows(const spec::DataSource& source, const RawTable& raw) {
  const spec::TableSource& table = table_of(source);
  const Selected selected = select(Selection::of(source), raw.rows(), table.name());
  std::vector<uint64_t> rows(selected.count);
  std::iota(rows.begin(), rows.end(), selected.first);
  if (!table.mixed) return rows;
  EpochOrder order(raw.rows(), true, kMixingSeed);
  for (uint64_t& row : rows) row = order.at(0, row);
  return rows;
}

TableIndex make_index(const spec::DataSource& source) {
  const spec::TableSource& table = table_of(source);
  TableIndex index;
  const bool decides = table.prepared.is_null() && table.trained_on == nullptr;
  if (!table.prepared.is_null())
    index.preparation = parse_preparation(table.prepared, "samples: table");
  else if (!decides)
    index.preparation = read_table_index(*table.trained_on).preparation;
  const RawTable raw =
      read_raw_table(table, decides ? wanted_of(table) : index.preparation.wanted(true));
  if (raw.rows() == 0) throw Invalid(table.name() + ": expected rows, found none");
  const std::vector<uint64_t> rows = selected_rows(source, raw);
  if (decides) index.preparation = prepare(table, raw, rows);
  index.rows_of_files = raw.rows_of_files;
  spec::DataFacts& facts = index.facts;
  facts.samples = raw.rows();
  facts.sample_shape = {index.preparation.inputs()};
  facts.files = raw.files.size();
  facts.classes = index.preparation.classes;
  if (!index.preparation.target_is_class) {
    number_targets(index.preparation, raw, rows);
    facts.label_count = 1;
    return index;
  }
  class_targets(index.preparation, raw, rows);
  facts.label_count = static_cast<int64_t>(facts.classes.size());
  facts.largest_label =
      fmt::format("{} classes in the column {}", facts.classes.size(), index.preparation.target);
  if (facts.classes.size() == 1)
    facts.notes.push_back(
        fmt::format("{}: \"{}\" is the only class in the column {}, so that there "
                    "is nothing to learn",
                    table.name(), facts.classes[0], index.preparation.target));
  return index;
}

// Makes the samples of these rows.
Samples samples_of(const Preparation& preparation, const RawTable& raw,
                   const std::vector<uint64_t>& rows, StorageKind storage) {
  Samples samples;
  samples.count = rows.size();
  samples.shape = {preparation.inputs()};
  samples.classes = preparation.classes;
  samples.table = to_json(preparation);
  const auto inputs = static_cast<size_t>(preparation.inputs());
  samples.features = Storage(rows.size() * inputs * sizeof(float), storage);
  write_inputs(preparation, raw, rows, samples.features.floats());
  if (preparation.target_is_class) {
    samples.labels = class_targets(preparation, raw, rows);
    samples.label_count = static_cast<int64_t>(preparation.classes.size());
  } else {
    samples.targets = number_targets(preparation, raw, rows);
    samples.label_count = 1;
  }
  return samples;
}

// The origins of consecutive rows, by file.
std::vector<Origin> origins_of(const RawTable& raw, const std::vector<FilePart>& parts) {
  std::vector<Origin> origins;
  uint64_t begin = 0;
  for (const FilePart& part : parts) {
    origins.push_back({begin, raw.files[part.file].string(), part.first});
    begin += part.count;
  }
  return origins;
}

std::vector<uint64_t> rows_of(const RawTable& raw, const std::vector<FilePart>& parts) {
  std::vector<uint64_t> rows;
  for (const FilePart& part : parts) {
    const auto before = raw.rows_of_files.begin() + static_cast<std::ptrdiff_t>(part.file);
    const uint64_t first = std::accumulate(raw.rows_of_files.begin(), before, part.first);
    for (uint64_t i = 0; i < part.count; ++i) rows.push_back(first + i);
  }
  return rows;
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

Samples read_table(const spec::DataSource& source, StorageKind storage) {
  const spec::TableSource& table = table_of(source);
  const TableIndex& index = read_table_index(source);
  if (!table.mixed)
    return read_table_parts(
        source, selected_parts(index.rows_of_files, Selection::of(source), table.name()), storage);
  const RawTable raw = read_raw_table(table, index.preparation.wanted(true));
  Samples samples = samples_of(index.preparation, raw, selected_rows(source, raw), storage);
  samples.origins = {{0, table.name() + ", mixed", 0}};
  return samples;
}

Samples read_table_parts(const spec::DataSource& source, const std::vector<FilePart>& parts,
                         StorageKind storage) {
  const TableIndex& index = read_table_index(source);
  const RawTable raw = read_raw_table(table_of(source), index.preparation.wanted(true));
  if (raw.rows_of_files != index.rows_of_files)
    throw Invalid(table_of(source).name() +
                  ": expected the rows that were there a moment ago, found others: a file has "
                  "changed");
  Samples samples = samples_of(index.preparation, raw, rows_of(raw, parts), storage);
  samples.origins = origins_of(raw, parts);
  return samples;
}

}  // namespace muster::data
