#include "trainer/ps/member/shm_link.h"

#include <atomic>
#include <utility>

#include "common/program/log.h"
#include "trainer/ps/shard/copy.h"

namespace muster::ps {

namespace {

using compute::ConstPlacedFloats;
using compute::PlacedFloats;

class ShmLink : public ShardLink {
 public:
  ShmLink(std::unique_ptr<GrpcLink> stream, const LinkEnd& end, std::string name)
      : stream_(std::move(stream)),
        mailbox_(end.memory->view().mailbox(static_cast<size_t>(end.shard))),
        gradients_(end.memory->view().gradients().part(end.range)),
        parameters_(end.memory->view().parameters().part(end.range)),
        gpu_(end.memory->gpu()),
        name_(std::move(name)) {}

  void send(const PushHeader& header, ConstPlacedFloats gradients,
            PlacedFloats parameters) override {
    wanted_ = parameters;
    if (!accepted_) return send_by_stream(header, gradients);
    if (!gpu_) copy_unless_same(gradients.host(), gradients_.host());
    mailbox_.request = to_block(header);
    waiting_ = true;
    ++requests_;
    ring(mailbox_.requests);
  }

  State state() override {
    if (requests_ == 0) {
      const State state = stream_->state();
      if (state != State::answered) return state;
      if (std::exchange(coming_, false) && stream_->reply().status == Status::ok)
        gpu_->put(wanted_.address(), host_parameters_.data(), wanted_.size_bytes()).wait();
      if (!std::exchange(decided_, true)) decide();
      return state;
    }
    // The reply is checked first, because after a rejection the end of the stream is expected.
    if (waiting_ && answered() == requests_) take_reply();
    if (!waiting_) return State::answered;
    return stream_->ended() ? State::broken : State::waiting;
  }

  ReplyHeader reply() const override { return requests_ == 0 ? stream_->reply() : reply_; }

 private:
  uint32_t answered() const {
    return std::atomic_ref<uint32_t>(mailbox_.answered).load(std::memory_order_acquire);
  }

  // The stream sends and receives in the host's memory.
  void send_by_stream(const PushHeader& header, ConstPlacedFloats gradients) {
    if (!gpu_) return stream_->send(header, gradients, wanted_);
    host_gradients_.resize(gradients.size());
    host_parameters_.resize(wanted_.size());
    if (!gradients.empty())
      gpu_->fetch(host_gradients_.data(), gradients.address(), gradients.size_bytes()).wait();
    coming_ = !wanted_.empty();
    stream_->send(header, host_gradients_, host_parameters_);
  }

  void decide() {
    const GrpcLink::Decision decision = stream_->decision();
    accepted_ = decision.shared_memory == Reply::ACCEPTED;
    if (accepted_) {
      log::info(name_ + ": exchange through shared memory" + (gpu_ ? " of a GPU" : ""));
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
    if (reply_.status == Status::ok && !gpu_)
      copy_unless_same(parameters_.part({0, wanted_.size()}).host(), wanted_.host());
  }

  // With a GPU: the memory from which the stream sends and into which it receives, also while it is
  // closed; and whether its answer must still be copied.
  compute::Floats host_gradients_, host_parameters_;
  bool coming_ = false;
  const std::unique_ptr<GrpcLink> stream_;
  Mailbox& mailbox_;
  const PlacedFloats gradients_, parameters_;
  compute::cuda::Gpu* const gpu_;  // the GPU that has both; null: the host's memory
  const std::string name_;
  PlacedFloats wanted_;
  bool decided_ = false;
  bool accepted_ = false;
  bool waiting_ = false;
  uint32_t requests_ = 0;  // number of requests through the mailbox
  ReplyHeader reply_;
};

}  // namespace

std::unique_ptr<ShardLink> make_shm_link(std::unique_ptr<GrpcLink> stream, const LinkEnd& end,
                                         std::string name) {
  return std::make_unique<ShmLink>(std::move(stream), end, std::move(name));
}

}  // namespace muster::ps
