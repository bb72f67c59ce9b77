#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>

#include "operator/kube/cluster/progress_poller.h"

using namespace muster;

// The input is an answer to /progress, which any program in a replica may give.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string answer(reinterpret_cast<const char*>(bytes), size);
  std::stop_source once;
  kube::ProgressPoller poller(
      {}, [](const std::string&) {},
      [&](const std::string&) {
        once.request_stop();
        return answer;
      });
  poller.watch("lab/mnist", "uid", "10.0.0.1:8080");
  poller.run(once.get_token());
  if (poller.group("lab/mnist").silent) __builtin_trap();
  poller.progress("lab/mnist").dump();
  return 0;
}
