#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "common/error.h"
#include "trainer/compute/engine.h"
#include "trainer/compute/graph.h"
#include "trainer/group/peer_registry.h"
#include "trainer/ps/serving/shard_host.h"

using namespace muster;

namespace {

// A byte that says what comes, one with a length, and so many bytes: one after the other.
class Script {
 public:
  Script(const uint8_t* bytes, size_t size) : bytes_(bytes), left_(size) {}
  bool next() {
    if (left_ < 2) return false;
    what = bytes_[0];
    size = std::min<size_t>(bytes_[1], left_ - 2);
    bytes = bytes_ + 2;
    bytes_ += 2 + size;
    left_ -= 2 + size;
    return true;
  }
  // Laid over what a peer of the group would say. False for what is no such message.
  bool merge_into(google::protobuf::MessageLite& message) const {
    return message.MergeFromString(std::string(reinterpret_cast<const char*>(bytes), size));
  }

  uint8_t what = 0;
  const uint8_t* bytes = nullptr;
  size_t size = 0;

 private:
  const uint8_t* bytes_;
  size_t left_;
};

spec::TrainingSpec training(uint8_t kind) {
  spec::TrainingSpec spec;
  compute::Dense dense;
  dense.units = 2;
  spec.model.layers.push_back({"layer", dense, {}, true});
  // Three bits are for the policy, so that another one moves none of the others.
  spec.policy = static_cast<spec::SyncPolicy>(kind % 8 % 3);
  spec.backup_workers = kind / 8 % 2;
  return spec;
}

OpenRequest opening(const compute::ParameterLayout& layout) {
  OpenRequest request;
  request.set_job_uid("uid");
  request.set_version("1");
  request.set_training_fingerprint("training");
  request.set_layout_fingerprint(layout.fingerprint());
  request.set_generation(1);
  request.set_content(OpenRequest::INITIALIZE);
  request.add_input_shape(3);
  request.set_label_count(2);
  request.set_members(2);
  request.set_tickets_per_epoch(4);
  request.set_total_tickets(8);
  return request;
}

// A ps whom rank 0, members and another ps tell whatever the script says.
void drive_host(Script script, uint8_t kind) {
  const spec::TrainingSpec spec = training(kind);
  compute::ModelSpec model = spec.model;
  model.input_shape = {3};
  model.label_count = 2;
  const compute::ParameterLayout layout = compute::make_layout(model);
  ps::HostIdentity identity{"uid", "1", "training", "/nonexistent", 0, 1 + kind / 16 % 2, 7};
  std::deque<std::vector<float>> sent;  // the shard may read a push until it is answered
  ps::ShardHost host(spec, identity);
  ForwardHello greeting;
  while (script.next()) {
    try {
      switch (script.what % 8) {
        case 0: {
          OpenRequest request = opening(layout);
          if (script.merge_into(request)) host.open(request);
          break;
        }
        case 1: {
          SnapshotRequest request;
          if (script.merge_into(request)) host.snapshot(request);
          break;
        }
        case 2: {
          WriteRequest request;
          if (script.merge_into(request)) host.write(request);
          break;
        }
        case 3: {
          greeting.Clear();
          *greeting.mutable_opening() = opening(layout);
          greeting.set_incarnation(identity.incarnation);
          Forward message;
          if (!script.merge_into(greeting)) break;
          *message.mutable_hello() = greeting;
          host.follow(greeting, message, {});
          break;
        }
        case 4: {
          Forward message;
          if (!greeting.has_opening() || !script.merge_into(message) || message.has_hello()) break;
          const std::vector<float> values(std::min<size_t>(message.floats(), host.most_forwarded()),
                                          0.5f);
          host.follow(greeting, message, values);
          break;
        }
        case 5: {
          Acknowledgement message;
          if (script.merge_into(message)) host.acknowledged(message);
          break;
        }
        case 6:
          if (script.size < 2) break;
          host.name_standby(script.bytes[0], script.bytes[1]);
          host.greet_standby([](const ps::StandbyFeed::Message&) {});
          break;
        default: {
          Push message;
          message.set_generation(1);
          if (!script.merge_into(message)) break;
          const uint64_t session = script.what / 8 % 4;
          if (message.pull())
            host.pull(session, ps::from_message(message));
          else
            host.push(session, ps::from_message(message),
                      {sent.emplace_back(host.size().value_or(0), 1.0f), {}});
        }
      }
    } catch (const Invalid&) {
    } catch (const Unavailable&) {
    }
  }
  host.state();
  host.cut_standby();
}

// Rank 0's list of its group, and peers that say whatever the script says.
void drive_registry(Script script) {
  group::PeerRegistry::Expected expected{"uid",    "1",         "training", R"({"batchSize": 32})",
                                         "layout", "2 threads", "avx512",   false,
                                         1,        2,           2};
  group::PeerRegistry registry(expected);
  group::PeerRegistry::Time now{};
  while (script.next()) {
    const uint64_t connection = script.what / 4 % 4;
    now += std::chrono::milliseconds(script.what);
    switch (script.what % 4) {
      case 0: {
        Hello hello;
        hello.set_job_uid("uid");
        hello.set_version("1");
        hello.set_training_fingerprint("training");
        hello.set_layout_fingerprint("layout");
        hello.set_role("worker");
        if (!script.merge_into(hello)) break;
        registry.admit(connection, hello, now);
        registry.other_bits(hello);
        break;
      }
      case 1: {
        PeerMessage message;
        if (script.merge_into(message)) registry.heard(connection, message, now);
        break;
      }
      case 2:
        registry.gone(connection);
        break;
      default:
        for (const uint64_t silent : registry.overdue(now)) registry.gone(silent);
    }
    if (registry.members_present() > 3 || registry.shards_present() > 2) __builtin_trap();
    for (int shard = 0; shard < 2; ++shard) registry.serving(shard);
    registry.replicated();
    registry.missing();
    registry.take_replaced();
  }
}

}  // namespace

// What peers of a group may tell each other beside gradients: the rendezvous, rank 0's control
// calls, and what a ps sends to the one that holds its second copies.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size < 2) return 0;
  const Script script(bytes + 1, size - 1);
  if (bytes[0] % 16 < 12)
    drive_host(script, bytes[0] % 16);
  else
    drive_registry(script);
  return 0;
}
