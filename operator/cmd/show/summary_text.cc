#include "operator/cmd/show/summary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/documents/json.h"
#include "common/job/metric_name.h"
#include "operator/cmd/show/display.h"
#include "operator/cmd/show/small_model.h"

namespace muster::cmd {

namespace {

// Returns the text of a value in a row of the summary; "" for null.
std::string text_of(const Json& value, const char* format) {
  if (value.is_null()) return "";
  return value.is_number_integer() ? grouped(value.get<int64_t>())
         : value.is_number()       ? fmt::format(fmt::runtime(format), value.get<double>())
         : value.is_string()       ? value.get<std::string>()
                                   : value.dump();
}

// Rows of a label and a text, with the texts aligned.
class Rows {
 public:
  // Adds a row; nothing for null.
  void add(std::string label, const Json& value, const char* format = "") {
    if (!value.is_null()) rows_.emplace_back(std::move(label), text_of(value, format));
  }
  std::string text() const {
    size_t width = kLeastWidth;
    for (const auto& [label, unused] : rows_) width = std::max(width, label.size() + 2);
    std::string all;
    for (const auto& [label, text] : rows_) all += fmt::format("  {:<{}}{}\n", label, width, text);
    return all;
  }

 private:
  static constexpr size_t kLeastWidth = 21;
  std::vector<std::pair<std::string, std::string>> rows_;
};

// An API server writes a 1.0 as 1.
Json real(const Json& value) {
  return value.is_number() ? Json(value.get<double>()) : Json();
}

// Returns the fields of the summary that are metrics of an evaluation of these data, without the
// loss.
std::vector<std::string> metric_fields(const Json& summary, const std::string& data) {
  std::vector<std::string> fields;
  for (const auto& [field, value] : summary.items()) {
    const bool is_metric = field.starts_with(data) && field.size() > data.size() &&
                           field != metric_field(data, "loss");
    if (is_metric && value.is_number()) fields.push_back(field);
  }
  return fields;
}

// Says which evaluation was the best if early stopping has ended the training; else null.
Json stopped_early_text(const Json& summary) {
  if (!bool_or(summary, "stoppedEarly", false)) return nullptr;
  const Json& best = member(summary, "best");
  if (!best.is_object()) return "no evaluation came to a finite value";
  return fmt::format("the best {}, {:.6g}, was after epoch {}, at step {}",
                     string_or(best, "metric", "?"), number_or(best, "value", 0),
                     integer_or(best, "epoch", 0), grouped(integer_or(best, "step", 0)));
}

// Says which metric has reached the value of stopWhen, if one has; else null. With an evaluator the
// value may become known only after the training has ended.
Json reached_text(const Json& summary) {
  const Json& reached = member(summary, "reached");
  if (!reached.is_object()) return nullptr;
  return fmt::format("{} was {:.6g} at step {}", string_or(reached, "metric", "?"),
                     number_or(reached, "value", 0), grouped(integer_or(reached, "step", 0)));
}

// Returns the file of the exported model, and the step of its weights if restoreBest has exported
// earlier weights than the last ones.
Json model_text(const Json& summary) {
  const Json& model = member(summary, "model");
  const int64_t step = integer_or(summary, "exportedStep", -1);
  if (!model.is_string() || step < 0 || step == integer_or(summary, "step", step)) return model;
  return fmt::format("{}, of step {}", model.get<std::string>(), grouped(step));
}

std::string wall_text(double seconds) {
  return seconds < 60 ? fmt::format("{:.1f} s", seconds) : duration_text(seconds);
}

}  // namespace

std::string summary_rows(const Json& summary) {
  const auto of = [&](const char* field) -> const Json& { return member(summary, field); };
  const std::vector<std::string> data = {"validation", "test"};
  const bool only_loss = std::ranges::all_of(
      data, [&](const std::string& name) { return metric_fields(summary, name).empty(); });
  Rows rows;
  rows.add("steps", of("step"), "{:.0f}");
  rows.add("epochs", of("epochs"), "{:.2f}");
  rows.add("stopped early", stopped_early_text(summary));
  rows.add("stopWhen reached", reached_text(summary));
  rows.add("training loss", real(of("trainLoss")), "{:.6g}");
  rows.add("training accuracy", real(of("trainAccuracy")), "{:.4f}");
  for (const std::string& name : data) {
    const std::string loss = metric_field(name, "loss");
    if (only_loss) rows.add(metric_words(loss), real(member(summary, loss)), "{:.6g}");
    for (const std::string& field : metric_fields(summary, name))
      rows.add(metric_words(field), real(summary[field]), "{:.4f}");
  }
  for (const Json& field : of("notFinite"))
    rows.add(metric_words(field.get<std::string>()), "not a finite number");
  for (const auto& [name, why] : of("notEvaluated").items())
    rows.add(name + " data", "not evaluated: " + why.get<std::string>());
  for (const Json& name : of("notMeasured"))
    rows.add(name.get<std::string>() + " data",
             "warning: nothing was measured on them: no sample gives a metric of this model");
  const Json& seconds = of("trainSeconds");
  rows.add("training time", seconds.is_number() ? Json(wall_text(seconds.get<double>())) : Json());
  const Json& speed = of("examplesPerSecond");
  rows.add("examples/s", speed.is_number() ? Json(std::llround(speed.get<double>())) : Json());
  rows.add("seconds per batch", real(of("secondsPerBatch")), "{:.6f}");
  if (!of("parameters").is_null()) rows.add("parameters", parameters_text(of("parameters")));
  rows.add("weights (SHA-256)", of("weightsDigest"));
  const bool nothing_saved = string_or(summary, "state", "") == "Suspended" &&
                             of("checkpoint").is_null() && integer_or(summary, "step", -1) == 0;
  rows.add("checkpoint",
           nothing_saved ? Json("none was saved: the next run begins anew") : of("checkpoint"));
  rows.add("model", model_text(summary));
  rows.add("model as ONNX", of("onnx"));
  return rows.text();
}

std::string summary_text(const std::string& name, const Json& summary) {
  std::string text = name + ": " + string_or(summary, "state", "");
  const Json& wall = member(summary, "wallSeconds");
  if (wall.is_number()) text += " after " + wall_text(wall.get<double>());
  text += "\n" + summary_rows(summary);
  text.pop_back();
  return text;
}

}  // namespace muster::cmd
