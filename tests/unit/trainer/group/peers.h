#pragma once

#include "trainer/group/peer_registry.h"

namespace muster::group {

// What the tests of the rendezvous expect of peers, and a peer that is so.
inline PeerRegistry::Expected expected_peers() {
  PeerRegistry::Expected expected;
  expected.job_uid = "u";
  expected.version = "1";
  expected.training_fingerprint = "t";
  expected.training = R"({"seed": 1, "optimizer": {"name": "adam"}})";
  expected.layout_fingerprint = "l";
  expected.chiefs = 1;
  expected.workers = 2;
  expected.shards = 1;
  return expected;
}

inline Hello hello_of(const std::string& role, uint32_t index, uint32_t attempt = 0) {
  Hello hello;
  hello.set_job_uid("u");
  hello.set_version("1");
  hello.set_training_fingerprint("t");
  hello.set_layout_fingerprint(role == "ps" ? "" : "l");
  hello.set_role(role);
  if (role == "ps") hello.set_address("10.0.0.1:2222");
  hello.set_index(index);
  hello.set_attempt(attempt);
  return hello;
}

inline Hello process(uint64_t incarnation, uint64_t started = 0, uint32_t attempt = 0) {
  Hello result = hello_of("worker", 0, attempt);
  result.set_incarnation(incarnation);
  result.set_started(started);
  return result;
}

}  // namespace muster::group
