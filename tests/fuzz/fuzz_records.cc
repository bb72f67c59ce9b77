#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "common/error.h"
#include "common/system/descriptor.h"
#include "trainer/records/example.h"
#include "trainer/records/record_file.h"

using namespace muster;

// A TFRecord file, whose records do not overlap, and each of its records as an example of either
// kind.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const Descriptor memory(::memfd_create("fuzz", MFD_CLOEXEC));
  if (::write(memory.get(), bytes, size) != static_cast<ssize_t>(size)) __builtin_trap();
  const records::RecordFile file("/proc/self/fd/" + std::to_string(memory.get()));
  records::ExampleReader reader;
  try {
    uint64_t damaged = 0, end = 0;
    const auto places = file.index([&](const std::string&) { ++damaged; });
    if (places.empty() && damaged == 0 && size > 0) __builtin_trap();
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].offset < end || places[i].length > size) __builtin_trap();
      end = places[i].offset + places[i].length;
      std::string record;
      try {
        file.read(places[i], i, record);
        records::DetectionExample detection;
        reader.read(record, "fuzz", nullptr, detection);
      } catch (const Invalid&) {
      }
      try {
        records::ClassificationExample classification;
        reader.read(record, "fuzz", classification);
      } catch (const Invalid&) {
      }
    }
  } catch (const Invalid&) {
  }
  return 0;
}
