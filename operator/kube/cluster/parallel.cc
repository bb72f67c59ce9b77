#include "operator/kube/cluster/parallel.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace muster::kube {

namespace {

// Runs all of [begin, end) at once; the calling thread runs the first.
void run_batch(size_t begin, size_t end, const std::function<void(size_t)>& work) {
  std::vector<std::exception_ptr> errors(end - begin);
  const auto run = [&](size_t i) {
    try {
      work(i);
    } catch (...) {
      errors[i - begin] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    size_t i = begin + 1;
    try {
      for (; i < end; ++i) threads.emplace_back(run, i);
    } catch (const std::system_error&) {
      // No more threads can be started: the calling thread does the rest.
      for (; i < end; ++i) run(i);
    }
    run(begin);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

void in_parallel(size_t count, size_t limit, const std::function<void(size_t)>& work,
                 const std::function<bool()>& wanted) {
  size_t batch = 1;
  for (size_t begin = 0; begin < count && wanted();) {
    const size_t end = std::min(count, begin + batch);
    run_batch(begin, end, work);
    begin = end;
    batch = std::min(std::max<size_t>(limit, 1), batch * 2);
  }
}

}  // namespace muster::kube
