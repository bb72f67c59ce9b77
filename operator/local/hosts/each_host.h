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

// Calls `work` for each number below `count`: each in a thread of its own, `at_once` at a time.
// Meanwhile the calling thread calls `meanwhile` from time to time. Returns for each number the
// reason of its failure, ready to be shown; "" after a success. SIGPIPE is ignored from then on.
std::vector<std::string> for_each_host(size_t count, size_t at_once,
                                       const std::function<void(size_t)>& work,
                                       const std::function<void()>& meanwhile);

// Returns the note that a host is left out.
std::string unusable(const Host& host, const std::string& why);

// Returns the words of a host in a form that may be shown: on one line, and not too long.
std::string shown(const std::string& words);

// The number of hosts to which files are copied at the same time.
inline constexpr size_t kCopiesAtOnce = 8;

// Starts `command`, which runs `action` on a host, and calls `talk` with the connection. Starts the
// command again if sshd has refused the connection (see Refusals). If the wire breaks otherwise,
// throws Unavailable with what ssh says: "<what>; ssh or <action> has ended with 255: <words>".
void talk_to_host(const std::vector<std::string>& command, const std::string& action,
                  const std::function<void(Session&, CopyWire&)>& talk);

}  // namespace muster::local
