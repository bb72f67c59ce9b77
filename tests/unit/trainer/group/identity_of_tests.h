#pragma once

#include <filesystem>

#include "common/file.h"
#include "common/key_pair.h"
#include "tests/unit/common/temporary_folder.h"
#include "trainer/group/identity.h"

namespace muster::group {

// Writes a key pair into a folder, as replicas find theirs.
inline void write_key_pair(const std::filesystem::path& folder,
                           const KeyPair& pair = make_key_pair()) {
  write_file_atomically(folder / "tls.key", pair.key);
  write_file_atomically(folder / "tls.crt", pair.certificate);
}

inline Identity identity_of(const KeyPair& pair) {
  const test::TemporaryFolder folder;
  write_key_pair(folder.path(), pair);
  return Identity::load(folder.path());
}

inline Identity new_identity() {
  return identity_of(make_key_pair());
}

// Returns the identity of the job that tests play: connections in tests are TLS, as they are in
// jobs.
inline const Identity& identity_of_tests() {
  static const Identity identity = new_identity();
  return identity;
}

}  // namespace muster::group
