#include "operator/api/progress.h"

#include "common/json.h"
#include "operator/api/training_job.h"

namespace muster::api {

Json progress_of(const Json& answer) {
  const Json& status = training_job_schema()["properties"]["status"];
  const Json& fields = status["properties"]["progress"]["properties"];
  Json taken;
  for (const auto& [name, schema] : fields.items()) {
    const Json& value = member(answer, name);
    if (value.is_null()) continue;
    Document field = Document::parse("", name);
    field.value() = value;
    if (apply_schema(schema, field).empty()) taken[name] = std::move(field.value());
  }
  const nlohmann::json sorted = taken;
  return sorted;
}

}  // namespace muster::api
