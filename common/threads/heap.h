#pragma once

namespace muster {

// Keeps freed memory in the process, up to half a gigabyte, instead of unmapping it and later
// mapping and clearing it again page by page. Meant for a process that allocates and frees
// megabytes with every message. Call it first in main.
void keep_freed_memory();

// Returns freed memory of 128 KiB and more to the system at once, and lets threads share heaps, so
// that a process takes little more memory than it uses. Meant for a process that keeps much in
// memory and sometimes handles a megabyte. Call it first in main.
void give_back_freed_memory();

}  // namespace muster
