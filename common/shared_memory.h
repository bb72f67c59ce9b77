#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/descriptor.h"

namespace muster {

// Memory that processes of one host share: anonymous, so that nothing is left of it once the last
// one is gone, however that ends; all of it there, so that touching it cannot fail later; sealed
// against any change of its size.

// `name` tells what it is for. Throws Unavailable where the system has none to give.
Descriptor make_shared_memory(const std::string& name, size_t size);

// That of descriptor `fd` in process `pid`, which was made by this name and is of this size. Looks
// what it is before opening it: of a stranger's numbers, some are devices. Throws Invalid saying
// why it cannot be used: another host, hidden from this process, or not that memory.
Descriptor open_shared_memory(const std::string& name, uint32_t pid, uint32_t fd, size_t size);

// The whole of it, mapped and populated; `at`: in place of a mapping of the same size. Throws
// Unavailable.
std::byte* map_shared_memory(const Descriptor& memory, size_t size, std::byte* at = nullptr);

}  // namespace muster
