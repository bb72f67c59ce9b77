#include "trainer/loop/commands/predict_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/documents/json.h"
#include "common/error.h"
#include "trainer/data/tables/preparation.h"
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
  TablePredictor(LoadedModel& model, const data::Preparation& preparation)
      : engine_(*model.engine), preparation_(preparation) {}

  // Returns the first line.
  std::string names(const std::string& key) const {
    std::string line = csv_cell(key.empty() ? "row" : key) + ",";
    if (!preparation_.target_is_class) return line + csv_cell(preparation_.target) + "\n";
    line += csv_cell(preparation_.target) + ",probability";
    for (const std::string& name : preparation_.classes)
      line += "," + csv_cell("probability of " + name);
    return line + "\n";
  }

  // Returns the lines of these rows, at most kRows.
  std::string lines(const data::RawTable& table, std::span<const uint64_t> rows,
                    const data::RawColumn* keys) {
    const auto inputs = static_cast<size_t>(preparation_.inputs());
    inputs_.resize(rows.size() * inputs);
    data::write_inputs(preparation_, table, rows, inputs_);
    std::vector<const void*> features;
    for (size_t i = 0; i < rows.size(); ++i) features.push_back(&inputs_[i * inputs]);
    const auto width = static_cast<size_t>(engine_.output_count());
    outputs_.resize(rows.size() * width);
    compute::Batch batch;
    batch.rows = static_cast<int64_t>(rows.size());
    batch.features = features;
    engine_.predict(batch, outputs_);
    std::string text;
    for (size_t i = 0; i < rows.size(); ++i) {
      text += key(keys, rows[i]) + ",";
      append(std::span(outputs_).subspan(i * width, width), text);
    }
    return text;
  }

 private:
  static std::string key(const data::RawColumn* keys, uint64_t row) {
    if (keys == nullptr) return std::to_string(row + 1);
    const int32_t cell = keys->cells[row];
    return cell < 0 ? "" : csv_cell(keys->values[static_cast<size_t>(cell)]);
  }

  void append(std::span<const float> outputs, std::string& text) const {
    if (!preparation_.target_is_class) {
      text += fmt::format("{:.7g}\n",
                          preparation_.target_scaling.undo(static_cast<double>(outputs[0])));
      return;
    }
    // A model may have more outputs than there are classes.
    const std::span<const float> known =
        outputs.first(std::min(outputs.size(), preparation_.classes.size()));
    const auto best = static_cast<size_t>(std::ranges::max_element(known) - known.begin());
    text += fmt::format("{},{:.6g}", csv_cell(preparation_.classes[best]), known[best]);
    for (const float probability : known) text += fmt::format(",{:.6g}", probability);
    text += "\n";
  }

  compute::Engine& engine_;
  const data::Preparation& preparation_;
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
  if (!options.key.empty()) wanted.columns.push_back({options.key, true});
  const data::RawTable table = data::read_raw_table(source, wanted);
  std::vector<uint64_t> rows(table.rows());
  std::iota(rows.begin(), rows.end(), uint64_t{0});
  TablePredictor predictor(model, preparation);
  std::string text = predictor.names(options.key);
  for (size_t first = 0; first < rows.size(); first += kRows) {
    const auto count = std::min(static_cast<size_t>(kRows), rows.size() - first);
    text += predictor.lines(table, std::span(rows).subspan(first, count),
                            options.key.empty() ? nullptr : &table.columns.back());
  }
  return text;
}

}  // namespace muster::loop
