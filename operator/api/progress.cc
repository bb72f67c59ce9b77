#include "operator/api/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "common/documents/json.h"
#include "common/text/shorten.h"
#include "operator/api/schema.h"
#include "operator/api/training_job.h"

namespace muster::api {

namespace {

// A server or a reader of the status may change or refuse a number beyond this limit.
constexpr uint64_t kTooMuch = uint64_t{1} << 63;
constexpr size_t kMostOfText = 1024;

bool has_sane_numbers(const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>() < kTooMuch;
  if (value.is_number_float()) return std::abs(value.get<double>()) < double{kTooMuch};
  return !value.is_structured() || std::ranges::all_of(value, has_sane_numbers);
}

// Returns the fields of `answer` that the status's object named `object` may have.
Json fitting(const char* object, const Json& answer) {
  const Json& status = training_job_schema()["properties"]["status"];
  const Json& fields = status["properties"][object]["properties"];
  Json taken;
  for (const auto& [name, schema] : fields.items()) {
    const Json& value = member(answer, name);
    if (value.is_null()) continue;
    Document field = Document::parse("", name);
    field.value() = value;
    const bool fits = apply_schema(schema, field).empty() && has_sane_numbers(field.value());
    if (fits) taken[name] = std::move(field.value());
  }
  const nlohmann::json sorted = taken;
  return sorted;
}

// Leaves out members that are null, and rounds numbers that are not integers to kDigits digits.
Json tidy(const Json& value) {
  constexpr int kDigits = 6;
  if (value.is_number_float()) {
    return std::strtod(fmt::format("{:.{}g}", value.get<double>(), kDigits).c_str(), nullptr);
  }
  if (value.is_string()) return shorten(value.get<std::string>(), kMostOfText);
  if (!value.is_object()) return value;
  Json object = Json::object();
  for (const auto& [name, field] : value.items()) {
    if (!field.is_null()) object[name] = tidy(field);
  }
  return object;
}

}  // namespace

Json progress_of(const Json& answer) {
  return fitting("progress", answer);
}

int64_t steps_taken(const Json& progress) {
  return integer_or(progress, "stepsHere", integer_or(progress, "step", 0));
}

Json results_of(const Json& said) {
  Json results = fitting("results", tidy(said));
  // The schema takes any metric of an evaluation.
  for (const char* data : {"validation", "test"}) {
    if (!member(results, data).is_object()) continue;
    const Json metrics = std::move(results[data]);
    results[data] = Json::object();
    for (const auto& [name, value] : metrics.items())
      if (value.is_number() || name == "error") results[data][name] = value;
  }
  return results;
}

}  // namespace muster::api
