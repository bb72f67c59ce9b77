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

class TablePredictor {
 public:
  // `key`: the column of the file that names its rows; empty: they are numbered.
  TablePredictor(LoadedModel& model, const data::Preparation& preparation, std::string key)
      : engine_(*model.engine),
        preparation_(preparation),
        key_(std::move(key)),
        writer_(preparation) {}

  // Returns the first line.
  std::string names() const {
    std::string line = csv_cell(key_.empty() ? "row" : key_);
    for (const std::string& target : preparation_.targets) line += "," + csv_cell(target);
    if (!preparation_.target_is_class) return line + "\n";
    line += ",probability";
    for (const std::string& name : preparation_.classes)
      line += "," + csv_cell("probability of " + name);
    return line + "\n";
  }

  // Returns the lines of all rows of a block.
  std::string lines(const data::RawRows& rows) {
    std::string text;
    for (uint64_t first = 0; first < rows.count; first += kRows)
      text += lines(rows, first, std::min(static_cast<uint64_t>(kRows), rows.count - first));
    return text;
  }

 private:
  std::string lines(const data::RawRows& rows, uint64_t first, uint64_t count) {
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
    std::string text;
    for (uint64_t i = 0; i < count; ++i) {
      text += key(rows, first + i);
      append(std::span(outputs_).subspan(i * width, width), text);
    }
    return text;
  }

  std::string key(const data::RawRows& rows, uint64_t row) const {
    if (key_.empty()) return std::to_string(rows.first + row + 1);
    const data::RawColumn& keys = rows.columns.back();
    const int32_t cell = keys.cells[row];
    return cell < 0 ? "" : csv_cell(keys.values[static_cast<size_t>(cell)]);
  }

  void append(std::span<const float> outputs, std::string& text) const {
    if (!preparation_.target_is_class) {
      for (size_t i = 0; i < preparation_.targets.size(); ++i)
        text += fmt::format(",{:.7g}",
                            preparation_.target_scalings[i].undo(static_cast<double>(outputs[i])));
      text += "\n";
      return;
    }
    // A model may have more outputs than there are classes.
    const std::span<const float> known =
        outputs.first(std::min(outputs.size(), preparation_.classes.size()));
    const auto best = static_cast<size_t>(std::ranges::max_element(known) - known.begin());
    text += fmt::format(",{},{:.6g}", csv_cell(preparation_.classes[best]), known[best]);
    for (const float probability : known) text += fmt::format(",{:.6g}", probability);
    text += "\n";
  }

  compute::Engine& engine_;
  const data::Preparation& preparation_;
  const std::string key_;
  data::RowWriter writer_;
  std::vector<float> inputs_, outputs_;
};

}  // namespace

bool is_table(const fs::path& file) {
  return data::is_table_name(file);
}

std::string predict_table(const fs::path& where, const TableOptions& options) {
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
  std::string text = predictor.names();
  data::RawReader(source, wanted).read([&](const data::RawRows& rows) {
    text += predictor.lines(rows);
  });
  return text;
}

}  // namespace muster::loop
