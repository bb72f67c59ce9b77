#include <cstdint>
#include <cstdlib>

#include "common/documents/document.h"
#include "common/error.h"

// Any text is a document whose JSON comes back as itself, or Invalid; a path is found or Invalid.
// The text up to the first NUL is the document, what follows is "path=value" for set().
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = text.find('\0');
  try {
    muster::Document document = muster::Document::parse(text.substr(0, cut), "fuzz");
    const std::string json = document.value().dump();  // throws on bad UTF-8
    if (muster::Json::parse(json).dump() != json) std::abort();
    if (cut != std::string_view::npos) {
      const std::string_view set = text.substr(cut + 1);
      const size_t equals = set.find('=');
      document.locate(set.substr(0, equals));
      document.find(set.substr(0, equals));
      if (equals != std::string_view::npos) {
        document.set(set.substr(0, equals), set.substr(equals + 1));
        if (document.find(set.substr(0, equals)) == nullptr) std::abort();
      }
    }
  } catch (const muster::Invalid&) {
  }
  return 0;
}
