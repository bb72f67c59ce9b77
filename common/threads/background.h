#pragma once

#include <future>
#include <system_error>
#include <type_traits>

#include "common/error.h"

namespace muster {

// Lowers the priority of the calling thread: from now on other threads get the CPUs first.
void give_way();

// Runs `work` on a thread of low priority, and waits for it. Meant for work that only the caller
// waits for; `work` must take no lock that other threads would wait for. Throws the exceptions of
// `work`, and Unavailable if no thread can be created.
template <class Work>
std::invoke_result_t<Work> in_background(Work work) {
  std::future<std::invoke_result_t<Work>> result;
  try {
    result = std::async(std::launch::async, [&work] {
      give_way();
      return work();
    });
  } catch (const std::system_error& error) {
    throw Unavailable(std::string("no thread to work in the background: ") + error.what());
  }
  return result.get();
}

}  // namespace muster
