#pragma once

namespace muster {

// For a process in which megabytes come and go with every message: what is freed stays with the
// process, up to half a gigabyte, instead of being unmapped, and mapped and cleared again page by
// page. Call it first in main.
void keep_freed_memory();

}  // namespace muster
