#include <gtest/gtest.h>

#include "tests/chaos/namespaces.h"

// Beside another of our kind: ports are each one's own where the system lets us have a network.
int main(int argc, char** argv) {
  muster::chaos::enter_own_network();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
