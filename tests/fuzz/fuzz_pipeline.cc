#include <cstddef>
#include <cstdint>
#include <string>

#include "common/error.h"
#include "operator/convert/pipeline_job.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    const std::string text(reinterpret_cast<const char*>(bytes), size);
    const auto parsed = convert::parse_pipeline({{"fuzz", text}});
    const auto converted = convert::convert_pipeline(parsed, convert::job_name_of(text));
    if (!converted.job["spec"]["training"].contains("model")) __builtin_trap();
  } catch (const Invalid&) {
  }
  return 0;
}
