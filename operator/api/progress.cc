#include "operator/api/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/json.h"
#include "operator/api/training_job.h"

namespace muster::api {

namespace {

// Beyond these a server or a reader of the status may make another number of it, or none.
constexpr uint64_t kTooMuch = uint64_t{1} << 63;

bool has_sane_numbers(const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>() < kTooMuch;
  if (value.is_number_float()) return std::abs(value.get<double>()) < double{kTooMuch};
  return !value.is_object() || std::ranges::all_of(value, has_sane_numbers);
}

}  // namespace

Json progress_of(const Json& answer) {
  const Json& status = training_job_schema()["properties"]["status"];
  const Json& fields = status["properties"]["progress"]["properties"];
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

}  // namespace muster::api
