#pragma once

#include <cstddef>
#include <functional>

namespace muster::kube {

// Runs work(0) ... work(count - 1) on up to `limit` threads: one first, then two at a time, four,
// ... while all succeed, so that an exhausted quota is not asked a hundred times. After a failure
// nothing more is begun; when the calls under way have ended, the error of the lowest number is
// thrown. Nothing more is begun either once `wanted`, asked before each batch, returns false.
void in_parallel(
    size_t count, size_t limit, const std::function<void(size_t)>& work,
    const std::function<bool()>& wanted = [] { return true; });

}  // namespace muster::kube
