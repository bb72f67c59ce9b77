#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "common/error.h"
#include "operator/local/copy/copy_wire.h"
#include "operator/local/hosts/hosts_file.h"
#include "operator/local/hosts/session.h"

namespace muster::local {

// Calls `work` for each number below `count`: each in a thread of its own, several at a time.
// Meanwhile this thread calls `meanwhile` now and then. Returns for each why it failed, as it may
// be shown; "" if it did not. SIGPIPE is ignored from then on.
std::vector<std::string> for_each_host(size_t count, const std::function<void(size_t)>& work,
                                       const std::function<void()>& meanwhile);

// Returns the note that a host is left out.
std::string unusable(const Host& host, const std::string& why);

// Returns what a host has said, as it may be shown: on one line, and not too long.
std::string shown(const std::string& words);

// Returns the error of a session whose wire is broken, with what ssh says: "<what>; ssh or <action>
// has ended with 255: <words>". Ends the session.
Unavailable broken_off(const BrokenWire& error, Session& session, const std::string& action);

}  // namespace muster::local
