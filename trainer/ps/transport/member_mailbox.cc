#include "trainer/ps/transport/member_mailbox.h"

#include <utility>

#include "trainer/ps/shard/copy.h"

namespace muster::ps {

namespace {

// A member that overwrites the count could make us miss the ring of stop(), so the mailbox checks
// from time to time.
constexpr std::chrono::milliseconds kGlanceAtMember{500};

}  // namespace

MemberMailbox::MemberMailbox(const SharedMemoryOffer& offer, const Place& place)
    : memory_(offer, place.shape, place.gpu),
      place_(place),
      mailbox_(memory_.view().mailbox(place.shard)),
      rounding_(place.bfloat16 ? &host::arithmetic() : nullptr),
      spins_(memory_.view().header().spins) {}

MemberMailbox::~MemberMailbox() {
  stop();
}

void MemberMailbox::start(Receive receive) {
  thread_ = std::thread([this, receive = std::move(receive)] { run(receive); });
}

void MemberMailbox::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  ring(mailbox_.requests);
  thread_.join();
}

void MemberMailbox::run(const Receive& receive) {
  uint32_t taken = 0;
  while (!stopping_) {
    const uint32_t requests = rung(mailbox_.requests);
    if (requests == taken) {
      wait_for_ring(mailbox_.requests, taken, kGlanceAtMember, spins_);
      continue;
    }
    if (stopping_) return;
    const RequestBlock block = mailbox_.request;
    const auto header = requests == ++taken ? from_block(block) : std::nullopt;
    if (!receive(header) || !header) return;
  }
}

void MemberMailbox::answer(const ReplyHeader& header, std::span<const float> values) {
  const compute::PlacedFloats to = parameters();
  if (!values.empty() && values.size() == to.size()) {
    if (to.is_on_host()) {
      give(values, to.host(), rounding_);
    } else {
      compute::Floats rounded(rounding_ ? values.size() : 0);
      if (rounding_) give(values, rounded, rounding_);
      const float* from = rounding_ ? rounded.data() : values.data();
      place_.gpu->put(to.address(), from, to.size_bytes()).wait();
    }
  }
  mailbox_.reply = to_block(header);
  std::atomic_ref<uint32_t>(mailbox_.answered).store(++answers_, std::memory_order_release);
  ring(memory_.view().header().bell);
}

compute::ConstPlacedFloats MemberMailbox::gradients() const {
  return memory_.view().gradients().part(place_.range);
}
compute::PlacedFloats MemberMailbox::parameters() const {
  return memory_.view().parameters().part(place_.range);
}

}  // namespace muster::ps
