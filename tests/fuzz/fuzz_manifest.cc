#include <cstddef>
#include <cstdint>
#include <string>

#include "common/digest.h"
#include "common/error.h"
#include "trainer/checkpoint/files/manifest.h"

using namespace muster;

// The bytes as they are, and with the checksum that lets them through to the parser. A manifest
// that is taken is written and read again to the same text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const std::string sealed =
      text + "\"crc32c\": " + std::to_string(crc32c(std::as_bytes(std::span(text)))) + "\n}\n";
  for (const std::string& candidate : {text, sealed}) {
    try {
      const auto manifest = checkpoint::parse_manifest(candidate, "fuzz");
      const std::string once = checkpoint::to_text(manifest);
      if (checkpoint::to_text(checkpoint::parse_manifest(once, "fuzz")) != once) __builtin_trap();
    } catch (const Invalid&) {
    }
  }
  checkpoint::FolderName::parse(text);
  return 0;
}
