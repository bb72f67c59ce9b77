#include "trainer/ps/serving/exchange_streams.h"

#include <nlohmann/json.hpp>

#include "common/documents/document.h"
#include "common/error.h"
#include "common/program/log.h"
#include "common/text/shorten.h"
#include "trainer/group/membership.h"
#include "trainer/group/peer_registry.h"

namespace muster::ps {

namespace {

std::span<const float> values_of(const Shard& shard, Shard::Answer::Values values) {
  if (values == Shard::Answer::Values::current) return shard.parameters();
  if (values == Shard::Answer::Values::previous) return shard.previous();
  return {};
}

// Returns the current or previous parameters in the form in which they are sent.
grpc::Slice sent(const Shard& shard, Shard::Answer::Values values) {
  if (shard.shape().bfloat16) return to_bfloat16(values_of(shard, values));
  const Versions& versions = shard.versions();
  return slice_of(values == Shard::Answer::Values::current ? versions.lend_current()
                                                           : versions.lend_previous());
}

}  // namespace

ExchangeStreams::ExchangeStreams(std::vector<ShardHost*> hosts, Welcome welcome, bool plaintext)
    : hosts_(std::move(hosts)),
      welcome_(std::move(welcome)),
      wire_(hosts_.front()->wire()),
      plaintext_(plaintext) {
  for (ShardHost* host : hosts_)
    host->on_answers(
        [this](const Shard& shard, const Shard::Answers& answers) { deliver(shard, answers); });
}

ShardHost* ExchangeStreams::host_of(uint32_t shard) const {
  for (ShardHost* host : hosts_)
    if (host->shard() == static_cast<int>(shard)) return host;
  return nullptr;
}

ExchangeStreams::~ExchangeStreams() {
  MutexLock lock(mutex_);
  empty_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return streams_.empty(); });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ExchangeStreams::open(
    grpc::CallbackServerContext* context) {
  ExchangeStream* stream = nullptr;
  {
    const MutexLock lock(mutex_);
    const uint64_t session = next_session_++;
    stream = new ExchangeStream(*this, session, context->peer());  // OnDone deletes it
    streams_[session] = stream;
  }
  stream->begin();
  return stream;
}

void ExchangeStreams::close() {
  const MutexLock lock(mutex_);
  for (auto& [session, stream] : streams_) {
    stream->assert_locked();
    stream->leave_locked();
  }
}

void ExchangeStreams::close_mute(std::chrono::steady_clock::time_point opened_before) {
  const MutexLock lock(mutex_);
  for (auto& [session, stream] : streams_) {
    stream->assert_locked();
    if (stream->is_mute_locked(opened_before)) stream->leave_locked();
  }
}

void ExchangeStreams::deliver(const Shard& shard, const Shard::Answers& answers) {
  grpc::Slice current;
  grpc::Slice previous;
  const MutexLock lock(mutex_);
  for (const Shard::Answer& answer : answers) {
    const auto found = streams_.find(answer.session);
    if (found == streams_.end()) continue;  // the member has gone
    ExchangeStream& stream = *found->second;
    stream.assert_locked();
    if (stream.pending_locked() == ExchangeStream::Request::by_mailbox) {
      stream.answer_locked(answer.header, values_of(shard, answer.values));
      continue;
    }
    grpc::Slice values;
    if (answer.values == Shard::Answer::Values::current) {
      if (current.size() == 0) current = sent(shard, answer.values);
      values = current;
    } else if (answer.values == Shard::Answer::Values::previous) {
      if (previous.size() == 0) previous = sent(shard, answer.values);
      values = previous;
    }
    stream.reply_locked(answer.header, values);
  }
}

void ExchangeStream::begin() {
  const MutexLock beginning(begun_);
  const MutexLock lock(receiving_);
  StartRead(&incoming_);
}

void ExchangeStream::OnReadDone(bool ok) {
  const MutexLock lock(receiving_);
  if (!ok) return leave();
  receive();
}

void ExchangeStream::receive() {
  if (streams_.plaintext_ && !unseal(incoming_)) {
    log::warning("a message of " + peer_ + " was damaged on its way: its stream is ended",
                 {{"peer", peer_}, {"bytes", incoming_.Length()}});
    return leave();
  }
  const auto decoded = decode_push(incoming_, streams_.wire_);
  if (!decoded)
    return reject(0, "expected a push, found " + std::to_string(incoming_.Length()) +
                         " bytes of something else");
  const Push& message = decoded->header;
  rank_ = message.rank();
  if (!host_) {
    const std::string objection = greet(message.hello());
    if (!objection.empty()) return reject(message.sequence(), objection);
  }
  bool open = true;
  const bool whole = message.pull() || message.offset() == 0;
  if (whole && !begin_request(Request::by_stream)) {
    return reject(message.sequence(), "a request before the last one's reply");
  }
  if (message.pull()) {
    open = host_->pull(session_, from_message(message));
  } else if (!gather(message, decoded->count, decoded->at_byte)) {
    return reject(message.sequence(), "a push of " + std::to_string(decoded->count) +
                                          " floats at " + std::to_string(message.offset()) +
                                          " does not fit the shard");
  } else if (gathered_ == gradients_.size()) {
    gathered_ = 0;
    open = host_->push(session_, from_message(message), {gradients_, {}});
  }
  if (!open) reply(Status::superseded, message.sequence(), "");
  const MutexLock lock(streams_.mutex_);
  read_on_locked();
}

// Stops reading requests from a member that does not accept its answers.
void ExchangeStream::read_on_locked() {
  resting_ = !outgoing_.empty();
  if (!resting_ && !finished_) StartRead(&incoming_);
}

// Returns the reason why the member is refused, or an empty string.
std::string ExchangeStream::greet(const ExchangeHello& hello) {
  ShardHost* const host = streams_.host_of(hello.shard());
  if (!host) return "shard " + std::to_string(hello.shard()) + " is not at home here";
  if (std::string objection = host->objection(hello); !objection.empty()) return objection;
  host_ = host;
  streams_.welcome_(peer_);
  {
    const MutexLock lock(streams_.mutex_);
    greeted_ = true;
  }
  if (hello.has_shared_memory()) consider(hello.shared_memory());
  return "";
}

// Maps the offered memory if it is on this host. Later requests then use the memory instead of the
// stream.
void ExchangeStream::consider(const SharedMemoryOffer& offer) {
  const auto place = host_->place();
  if (!place) return;  // nothing was opened yet: the member will come again
  std::string refusal;
  try {
    if (!group::shared_memory_wanted()) throw Invalid("the ps is told not to use it");
    mailbox_ = std::make_unique<MemberMailbox>(offer, *place);
    mailbox_->start([this](const auto& header) { return receive_from_mailbox(header); });
  } catch (const std::exception& error) {
    refusal = error.what();
    mailbox_.reset();
  }
  const MutexLock lock(streams_.mutex_);
  decision_ = mailbox_ ? Reply::ACCEPTED : Reply::REFUSED;
  refusal_ = refusal;
}

bool ExchangeStream::receive_from_mailbox(const std::optional<PushHeader>& header) {
  if (!header || !begin_request(Request::by_mailbox)) {
    log::warning("the shared memory of " + peer_ + " holds no request: its link is cut",
                 {{"peer", peer_}, {"shard", host_->shard()}});
    leave();
    return false;
  }
  const bool open = header->pull ? host_->pull(session_, *header)
                                 : host_->push(session_, *header,
                                               {mailbox_->gradients(), mailbox_->parameters()});
  if (!open) reply(Status::superseded, header->sequence, "");
  return true;
}

// Returns false if an earlier request is still being answered.
bool ExchangeStream::begin_request(Request way) {
  const MutexLock lock(streams_.mutex_);
  if (pending_ != Request::none) return false;
  pending_ = way;
  return true;
}

// Chunks come in order and without holes, from 0.
bool ExchangeStream::gather(const Push& message, size_t count, size_t at_byte) {
  const std::optional<size_t> size = host_->size();
  if (!size) return true;  // no shard was opened yet; the answer to the push will say so
  if (gradients_.size() != *size) gradients_.resize(*size);
  if (message.offset() == 0) gathered_ = 0;
  if (message.offset() != gathered_ || count > *size - gathered_) return false;
  if (count > 0)
    copy_floats(incoming_, at_byte, std::span(gradients_).subspan(gathered_, count),
                streams_.wire_);
  gathered_ += count;
  return true;
}

// The message may repeat what a stranger has sent.
void ExchangeStream::reject(uint64_t sequence, const std::string& long_message) {
  const std::string message = shorten(long_message, group::kMostTold);
  Json who = {{"peer", peer_}, {"rank", rank_}};
  if (host_) who["shard"] = host_->shard();
  log::warning(
      "a member was rejected: " + message + " (" + peer_ + ", rank " + std::to_string(rank_) + ")",
      who);
  reply(Status::rejected, sequence, message);
}

void ExchangeStream::reply(Status status, uint64_t sequence, const std::string& message) {
  ReplyHeader header;
  header.status = status;
  header.sequence = sequence;
  header.message = message;
  const MutexLock lock(streams_.mutex_);
  if (status == Status::rejected) closing_ = true;
  if (pending_ == Request::by_mailbox) {
    answer_locked(header, {});
    if (closing_) leave_locked();  // no message is left to write
  } else {
    reply_locked(header, grpc::Slice());
  }
}

void ExchangeStream::answer_locked(const ReplyHeader& header, std::span<const float> values) {
  pending_ = Request::none;
  mailbox_->answer(header, values);
}

void ExchangeStream::reply_locked(const ReplyHeader& header, const grpc::Slice& values) {
  pending_ = Request::none;
  if (finished_) return;
  Reply message = to_message(header);
  message.set_shared_memory(std::exchange(decision_, Reply::NOT_DECIDED));
  message.set_shared_memory_refusal(std::exchange(refusal_, ""));
  const size_t width = width_of(streams_.wire_);
  const size_t bytes = kChunkFloats * width;
  size_t begin = 0;
  do {
    const size_t end = std::min(values.size(), begin + bytes);
    message.set_offset(begin / width);
    outgoing_.push(encode(message, values.sub(begin, end)));
    begin = end;
  } while (begin < values.size());
  write_next_locked();
}

void ExchangeStream::write_next_locked() {
  if (finished_) return;
  if (const grpc::ByteBuffer* message = outgoing_.next()) StartWrite(message);
}

void ExchangeStream::OnWriteDone(bool ok) {
  { const MutexLock lock(begun_); }
  const MutexLock lock(streams_.mutex_);
  outgoing_.written();
  if (!ok) return leave_locked();
  if (!outgoing_.empty()) {
    write_next_locked();
  } else if (closing_) {
    leave_locked();
  } else if (resting_) {
    read_on_locked();
  }
}

void ExchangeStream::leave() {
  const MutexLock lock(streams_.mutex_);
  leave_locked();
}

void ExchangeStream::leave_locked() {
  if (std::exchange(finished_, true)) return;
  Finish(grpc::Status::OK);
}

void ExchangeStream::OnDone() {
  { const MutexLock lock(receiving_); }  // nothing is being received any more
  if (mailbox_) mailbox_->stop();
  if (host_) host_->detach(session_);
  {
    const MutexLock lock(streams_.mutex_);
    streams_.streams_.erase(session_);
    streams_.empty_.notify_all();
  }
  delete this;
}

}  // namespace muster::ps
