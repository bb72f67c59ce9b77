#include "trainer/ps/member/shm_link.h"

#include <atomic>
#include <utility>

#include "common/program/log.h"
#include "trainer/ps/shard/copy.h"

namespace muster::ps {

namespace {

class ShmLink : public ShardLink {
 public:
  ShmLink(std::unique_ptr<GrpcLink> stream, const LinkEnd& end, std::string name)
      : stream_(std::move(stream)),
        mailbox_(end.memory->view().mailbox(static_cast<size_t>(end.shard))),
        gradients_(end.memory->view().gradients().subspan(end.range.begin, end.range.size())),
        parameters_(end.memory->view().parameters().subspan(end.range.begin, end.range.size())),
        name_(std::move(name)) {}

  void send(const PushHeader& header, std::span<const float> gradients,
            std::span<float> parameters) override {
    if (!accepted_) return stream_->send(header, gradients, parameters);
    wanted_ = parameters;
    copy_unless_same(gradients, gradients_);
    mailbox_.request = to_block(header);
    waiting_ = true;
    ++requests_;
    ring(mailbox_.requests);
  }

  State state() override {
    if (requests_ == 0) {
      const State state = stream_->state();
      if (state == State::answered && !std::exchange(decided_, true)) decide();
      return state;
    }
    // The reply is looked at first: after a rejection the stream's end is expected.
    if (waiting_ && answered() == requests_) take_reply();
    if (!waiting_) return State::answered;
    return stream_->ended() ? State::broken : State::waiting;
  }

  ReplyHeader reply() const override { return requests_ == 0 ? stream_->reply() : reply_; }

 private:
  uint32_t answered() const {
    return std::atomic_ref<uint32_t>(mailbox_.answered).load(std::memory_order_acquire);
  }

  void decide() {
    const GrpcLink::Decision decision = stream_->decision();
    accepted_ = decision.shared_memory == Reply::ACCEPTED;
    if (accepted_) {
      log::info(name_ + ": exchange through shared memory");
    } else if (decision.shared_memory == Reply::REFUSED) {
      log::info(name_ + ": exchange through gRPC; shared memory: " + decision.refusal);
    } else {
      decided_ = false;
    }
  }

  void take_reply() {
    waiting_ = false;
    const ReplyBlock block = mailbox_.reply;
    reply_ = from_block(block);
    if (reply_.status == Status::ok) copy_unless_same(parameters_.first(wanted_.size()), wanted_);
  }

  const std::unique_ptr<GrpcLink> stream_;
  Mailbox& mailbox_;
  const std::span<float> gradients_;
  const std::span<float> parameters_;
  const std::string name_;
  std::span<float> wanted_;
  bool decided_ = false;
  bool accepted_ = false;
  bool waiting_ = false;
  uint32_t requests_ = 0;  // through the mailbox
  ReplyHeader reply_;
};

}  // namespace

std::unique_ptr<ShardLink> make_shm_link(std::unique_ptr<GrpcLink> stream, const LinkEnd& end,
                                         std::string name) {
  return std::make_unique<ShmLink>(std::move(stream), end, std::move(name));
}

}  // namespace muster::ps
