#pragma once

namespace muster::chaos {

// Each gives this process, and those that it will start, a namespace of its own, as root of a user
// namespace where it is not root already. Before there are other threads. False where the system
// does not allow it; nothing has changed then.

// A network of a loopback alone: no other process takes a port that is free for a moment.
bool enter_own_network();
// Mounts that nobody else sees; entered once, however often this is called.
bool enter_own_mounts();

}  // namespace muster::chaos
