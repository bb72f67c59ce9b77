#pragma once

#include <filesystem>

namespace muster::local {

// `muster host` calls these on a host that `muster run --hosts` reaches by ssh; see protocol.h and
// copy_wire.h. `trainer` is the path of muster-trainer on this machine; it may be empty. They
// return the exit code.
int answer_survey(const std::filesystem::path& trainer);
int run_for_another_host(const std::filesystem::path& trainer);
int receive_copies_here();

}  // namespace muster::local
