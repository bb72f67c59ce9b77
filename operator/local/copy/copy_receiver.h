#pragma once

#include <string>

#include "operator/local/copy/copy_wire.h"

namespace muster::local {

// A host says this first.
inline constexpr const char* kCopyGreeting = "muster-host: copies\n";

// Makes this host have what the other end of the wire sends, until that ends. Each file appears as
// a whole, by one rename. What earlier copies have put here, and what is as they left it, is
// replaced; and removed once it is no longer sent. Anything else stays as it is: files beside those
// that are sent are left alone, and one in the way of another content is a problem, before anything
// is written for that path. Says what stops it over the wire. Of a file that was not received in
// whole nothing stays; where this process was killed meanwhile, the next copy of the path removes
// it.
void receive_copies(CopyWire& wire);

}  // namespace muster::local
