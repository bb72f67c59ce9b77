#pragma once

#include <string>

#include "operator/local/copy/copy_wire.h"

namespace muster::local {

// The first words of a host.
inline constexpr const char* kCopyGreeting = "muster-host: copies\n";

// Writes the files that the other end of the wire sends, until that end closes the wire. Each file
// appears as a whole, by one rename. A file that an earlier copy has created, and that has not
// changed since, is replaced, or removed if it is no longer sent. All other files stay unchanged:
// files that are not sent are left alone, and a different file in the place of a sent file is a
// problem, which is reported before anything is written for that path. Sends its problems over the
// wire. A file that was not received completely is removed; if this process was killed, the next
// copy of the path removes it.
void receive_copies(CopyWire& wire);

}  // namespace muster::local
