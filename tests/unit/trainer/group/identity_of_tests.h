#pragma once

#include "common/net/key_pair.h"
#include "tests/unit/common/temporary_folder.h"
#include "trainer/group/identity.h"

namespace muster::group {

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
