#pragma once

#include <cstddef>
#include <functional>

namespace muster::kube {

// Runs work(0) ... work(count - 1) on up to `limit` threads: one first, then two at a time, four,
// ... while all succeed, so that a quota that is used up is not asked a hundred times. After a
// failure nothing more is begun; when what was begun has ended, the error of the lowest number is
// thrown. Nor is anything begun once `wanted`, asked before each batch, says no.
void in_parallel(
    size_t count, size_t limit, const std::function<void(size_t)>& work,
    const std::function<bool()>& wanted = [] { return true; });

}  // namespace muster::kube
