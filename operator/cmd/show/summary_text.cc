#include "operator/cmd/show/summary_text.h"

#include <fmt/format.h>

#include <cmath>

#include "common/json.h"
#include "operator/cmd/show/display.h"
#include "operator/cmd/show/small_model.h"

namespace muster::cmd {

namespace {

// One row of the summary on screen; nothing for null.
std::string row(const char* label, const Json& value, const char* format) {
  if (value.is_null()) return "";
  const std::string text = value.is_number_integer() ? grouped(value.get<int64_t>())
                           : value.is_number()
                               ? fmt::format(fmt::runtime(format), value.get<double>())
                           : value.is_string() ? value.get<std::string>()
                                               : value.dump();
  return fmt::format("  {:<21}{}\n", label, text);
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

std::string wall_text(double seconds) {
  return seconds < 60 ? fmt::format("{:.1f} s", seconds) : duration_text(seconds);
}

}  // namespace

std::string summary_rows(const Json& summary) {
  const auto of = [&](const char* field) -> const Json& { return member(summary, field); };
  // An API server writes a 1.0 as 1.
  const auto real = [&](const char* field) {
    return of(field).is_number() ? Json(of(field).get<double>()) : Json();
  };
  const bool accuracy = !of("testAccuracy").is_null() || !of("validationAccuracy").is_null();
  std::string text = row("steps", of("step"), "{:.0f}");
  text += row("epochs", of("epochs"), "{:.2f}");
  text += row("stopped early", stopped_early_text(summary), "");
  text += row("training loss", real("trainLoss"), "{:.6g}");
  text += row("training accuracy", real("trainAccuracy"), "{:.4f}");
  if (!accuracy) text += row("validation loss", real("validationLoss"), "{:.6g}");
  text += row("validation accuracy", real("validationAccuracy"), "{:.4f}");
  if (!accuracy) text += row("test loss", real("testLoss"), "{:.6g}");
  text += row("test accuracy", real("testAccuracy"), "{:.4f}");
  for (const auto& [data, why] : of("notEvaluated").items()) {
    text += row((data + " data").c_str(), "not evaluated: " + why.get<std::string>(), "");
  }
  const Json& seconds = of("trainSeconds");
  text += row("training time",
              seconds.is_number() ? Json(wall_text(seconds.get<double>())) : Json(), "");
  const Json& speed = of("examplesPerSecond");
  text +=
      row("examples/s", speed.is_number() ? Json(std::llround(speed.get<double>())) : Json(), "");
  text += row("seconds per batch", real("secondsPerBatch"), "{:.6f}");
  if (!of("parameters").is_null()) {
    text += row("parameters", parameters_text(of("parameters")), "");
  }
  text += row("weights (SHA-256)", of("weightsDigest"), "");
  text += row("checkpoint", of("checkpoint"), "");
  text += row("model", of("model"), "");
  return text;
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
