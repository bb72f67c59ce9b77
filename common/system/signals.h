#pragma once

#include <initializer_list>
#include <optional>

#include "common/system/descriptor.h"

namespace muster {

// Returns a descriptor for poll() that becomes readable when one of these signals has come. This
// thread, and the threads that it creates from now on, get these signals only by the descriptor.
// SIGPIPE is ignored from now on. The descriptor is invalid if none can be created; errno says why.
Descriptor watch_signals(std::initializer_list<int> numbers);

// Lets a write beyond the limit that `ulimit -f` sets fail with EFBIG, which an error can name,
// where the system would end this process. Programs that this one starts have to do so themselves.
void survive_large_writes();

// Returns the number of a signal that has come; nothing if there is none. Does not wait.
std::optional<int> read_signal(const Descriptor& signals);

}  // namespace muster
