#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/error.h"
#include "operator/kube/http/config.h"
#include "tests/fuzz/fuzz_folder.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const FuzzFolder folder;
  const auto file =
      folder.write("config", std::string_view(reinterpret_cast<const char*>(bytes), size));
  for (const char* context : {"", "other"}) {
    try {
      if (kube::load_kubeconfig(file, context).server.empty()) __builtin_trap();
    } catch (const Invalid&) {
    }
  }
  return 0;
}
