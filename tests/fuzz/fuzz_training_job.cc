#include <cstdint>
#include <cstdlib>

#include "common/error.h"
#include "operator/api/status.h"
#include "operator/api/training_job.h"
#include "operator/api/validate.h"
#include "trainer/spec/convert.h"

// Any manifest is valid or has problems; a valid one converts, and stays valid with its defaults
// filled in. Whatever stands in `status` reads as a status that comes back without loss.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  try {
    Document document = Document::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
    const bool valid = api::validate(document).empty();
    const api::TrainingJob job =
        valid ? api::to_training_job(document.value()) : api::TrainingJob{};
    Json value = {{"status", api::to_json(job.status)}};
    if (api::to_training_job(value).status != job.status) std::abort();
    if (!valid) return 0;
    if (!job.training.is_null()) spec::to_training_spec(job.training);
    if (!api::validate(document).empty()) std::abort();
  } catch (const Invalid&) {
  }
  return 0;
}
