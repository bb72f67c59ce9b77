#pragma once

#include <cstddef>
#include <functional>

namespace muster::kube {

// Runs work(0) ... work(count - 1) on up to `limit` threads: first one call, then two at a time,
// then four, ... while all succeed, so that an exhausted quota does not get a hundred requests.
// After a failure no further call begins; when the calls under way have ended, the error of the
// lowest number is thrown. `wanted` is asked before each batch; once it returns false, no further
// call begins.
void in_parallel(
    size_t count, size_t limit, const std::function<void(size_t)>& work,
    const std::function<bool()>& wanted = [] { return true; });

}  // namespace muster::kube
