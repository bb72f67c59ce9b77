#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/error.h"
#include "operator/kube/cache/store.h"

using namespace muster;

// What an API server may send, to caches of every kind; what is no list or event is Unavailable.
template <class T>
void read(std::string_view text) {
  kube::Store<T> store("muster.dev/job");
  try {
    store.begin_list();
    store.add_page(text);
    store.end_list();
  } catch (const Unavailable&) {
  }
  try {
    store.apply(text);
  } catch (const Unavailable&) {
  }
  for (const std::string& key : store.keys()) {
    if (!store.get(key)) __builtin_trap();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  read<kube::Pod>(text);
  read<kube::Service>(text);
  read<kube::WholeObject>(text);
  return 0;
}
