#pragma once

namespace muster {

// Keeps freed memory in the process, up to half a gigabyte, instead of unmapping it and later
// mapping and clearing it again page by page. Meant for a process that allocates and frees
// megabytes with every message. Call it first in main.
void keep_freed_memory();

}  // namespace muster
