#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/system/descriptor.h"

namespace muster {

// Memory that processes of one host share. It is anonymous, so that nothing is left of it once the
// last process is gone, however that process ends. It is fully allocated, so that access cannot
// fail later, and sealed against any change of its size.

// Creates shared memory. `name` tells its purpose. Throws Unavailable if the system has no memory
// for it.
Descriptor make_shared_memory(const std::string& name, size_t size);

// Opens the shared memory of descriptor `fd` in process `pid`, which must have this name and size.
// Checks the name before opening, because the numbers come from another process and may refer to a
// device. Throws Invalid saying why it cannot be used: another host, hidden from this process, or
// not that memory.
Descriptor open_shared_memory(const std::string& name, uint32_t pid, uint32_t fd, size_t size);

// Maps and populates the whole memory; if `at` is set, in place of a mapping of the same size
// there. Throws Unavailable.
std::byte* map_shared_memory(const Descriptor& memory, size_t size, std::byte* at = nullptr);

}  // namespace muster
