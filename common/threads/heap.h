#pragma once

namespace muster {

// Keeps freed memory in the process, up to half a gigabyte, instead of unmapping it and later
// mapping and clearing it again page by page. Meant for a process that allocates and frees
// megabytes with every message. Call it first in main.
void keep_freed_memory();

// Gives freed memory of 128 KiB and more back to the system at once, and lets threads share their
// heaps, so that a process takes little more than what it holds. Meant for a process that has much
// in memory and now and then handles a megabyte. Call it first in main.
void give_back_freed_memory();

}  // namespace muster
