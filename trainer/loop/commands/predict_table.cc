#include "trainer/loop/commands/predict_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/documents/json.h"
#include "common/error.h"
#include "trainer/data/tables/preparation.h"
#include "trainer/data/tables/row_writer.h"
#include "trainer/data/tables/table_file.h"
#include "trainer/loop/commands/loaded_model.h"

namespace muster::loop {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kRows = 256;  // rows of a batch

// Fills in the model's input, and returns how rows become samples.
data::Preparation complete_for_table(LoadedModel& model) {
  const Json& table = member(model.samples, "table");
  if (table.is_null())
    throw Invalid(model.file +
                  ": expected a model that was trained on a table, found one of other "
                  "samples");
  data::Preparation preparation = data::parse_preparation(table, model.file + ": samples: table");
  spec::TrainingSpec& spec = model.training.spec;
  spec.model.input_shape = {preparation.inputs()};
  take_label_count_from_layers(spec.model);
  spec.batch_size = kRows;
  return preparation;
}

// Returns a cell of CSV, in quotation marks if it needs them.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

using tables::WrittenColumn;

// Returns the lines of CSV for all rows of these columns.
std::string csv_lines(const std::vector<WrittenColumn>& columns) {
  const size_t rows = std::max(columns.front().texts.size(), columns.front().numbers.size());
  std::string text;
  for (size_t row = 0; row < rows; ++row) {
    for (const WrittenColumn& column : columns) {
      if (&column != columns.data()) text += ",";
      text +=
          column.is_text ? csv_cell(column.texts[row]) : fmt::format("{:.7g}", column.numbers[row]);
    }
    text += "\n";
  }
  return text;
}

class TablePredictor {
 public:
  // `key`: the column of the file that names its rows; empty: they are numbered.
  TablePredictor(LoadedModel& model, const data::Preparation& preparation, std::string key)
      : engine_(*model.engine),
        preparation_(preparation),
        key_(std::move(key)),
        writer_(preparation) {
    add_column(key_.empty() ? "row" : key_, !key_.empty());
    const auto* quantile = std::get_if<compute::Quantile>(&model.training.spec.model.loss);
    const bool has_several = quantile != nullptr && quantile->count > 1;
    for (int64_t i = 0; i < (has_several ? quantile->count : 1); ++i)
      for (const std::string& target : preparation_.targets)
        add_column(
            has_several ? fmt::format("quantile {} of {}", quantile->quantiles[i], target) : target,
            preparation_.target_is_class);
    if (!preparation_.target_is_class) return;
    add_column("probability", false);
    for (const std::string& name : preparation_.classes)
      add_column("probability of " + name, false);
  }

  // The predictions for all rows since clear().
  const std::vector<WrittenColumn>& columns() const { return columns_; }
  void clear() {
    for (WrittenColumn& column : columns_) {
      column.texts.clear();
      column.numbers.clear();
    }
  }

  void add(const data::RawRows& rows) {
    for (uint64_t first = 0; first < rows.count; first += kRows)
      add(rows, first, std::min(static_cast<uint64_t>(kRows), rows.count - first));
  }

 private:
  void add_column(std::string name, bool is_text) {
    columns_.push_back({std::move(name), is_text, {}, {}});
  }

  void add(const data::RawRows& rows, uint64_t first, uint64_t count) {
    const auto inputs = static_cast<size_t>(preparation_.inputs());
    inputs_.resize(count * inputs);
    std::vector<data::PlacedRow> placed;
    std::vector<const void*> features;
    for (uint64_t i = 0; i < count; ++i) {
      placed.push_back({first + i, i});
      features.push_back(&inputs_[i * inputs]);
    }
    writer_.write_inputs(rows, placed, inputs_.data());
    const auto width = static_cast<size_t>(engine_.output_count());
    outputs_.resize(count * width);
    compute::Batch batch;
    batch.rows = static_cast<int64_t>(count);
    batch.features = features;
    engine_.predict(batch, outputs_);
    for (uint64_t i = 0; i < count; ++i) {
      add_key(rows, first + i);
      add_outputs(std::span(outputs_).subspan(i * width, width));
    }
  }

  void add_key(const data::RawRows& rows, uint64_t row) {
    if (key_.empty()) {
      columns_.front().numbers.push_back(static_cast<double>(rows.first + row + 1));
      return;
    }
    const data::RawColumn& keys = rows.columns.back();
    const int32_t cell = keys.cells[row];
    columns_.front().texts.push_back(cell < 0 ? "" : keys.values[static_cast<size_t>(cell)]);
  }

  void add_outputs(std::span<const float> outputs) {
    if (!preparation_.target_is_class) {
      const std::vector<data::Scaling>& scalings = preparation_.target_scalings;
      for (size_t i = 0; i < outputs.size(); ++i)
        columns_[i + 1].numbers.push_back(
            scalings[i % scalings.size()].undo(static_cast<double>(outputs[i])));
      return;
    }
    // A model may have more outputs than there are classes.
    const std::span<const float> known =
        outputs.first(std::min(outputs.size(), preparation_.classes.size()));
    const auto best = static_cast<size_t>(std::ranges::max_element(known) - known.begin());
    columns_[1].texts.push_back(preparation_.classes[best]);
    columns_[2].numbers.push_back(static_cast<double>(known[best]));
    for (size_t i = 0; i < known.size(); ++i)
      columns_[i + 3].numbers.push_back(static_cast<double>(known[i]));
  }

  compute::Engine& engine_;
  const data::Preparation& preparation_;
  const std::string key_;
  data::RowWriter writer_;
  std::vector<WrittenColumn> columns_;
  std::vector<float> inputs_, outputs_;
};

// Returns the line of names.
std::string names_line(const std::vector<WrittenColumn>& columns) {
  std::string line;
  for (const WrittenColumn& column : columns)
    line += (line.empty() ? "" : ",") + csv_cell(column.name);
  return line + "\n";
}

}  // namespace

bool is_table(const fs::path& file) {
  return data::is_table_name(file);
}

void predict_table(const fs::path& where, const TableOptions& options,
                   const std::function<void(std::string_view)>& print) {
  data::Preparation preparation;
  LoadedModel model =
      load_model(where, [&](LoadedModel& loading) { preparation = complete_for_table(loading); });
  spec::TableSource source;
  if (const spec::TableSource* trained = model.training.spec.data.train.table())
    source.format = trained->format;
  if (data::is_table_name(options.file)) source.format.name.clear();
  source.files = {options.from / options.file};
  data::Wanted wanted = preparation.wanted(false);
  if (!options.key.empty()) wanted.columns.push_back({options.key, data::FeatureKind::category});
  TablePredictor predictor(model, preparation, options.key);
  if (options.to.empty()) print(names_line(predictor.columns()));
  data::RawReader(source, wanted).read([&](const data::RawRows& rows) {
    predictor.add(rows);
    if (!options.to.empty()) return;
    print(csv_lines(predictor.columns()));
    predictor.clear();
  });
  if (!options.to.empty()) data::write_parquet(options.from / options.to, predictor.columns());
}

}  // namespace muster::loop
