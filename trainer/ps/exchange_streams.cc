#include "trainer/ps/exchange_streams.h"

#include <cstring>

#include "common/log.h"

namespace muster::ps {

namespace {

grpc::Slice copy_of(std::span<const float> values) {
  grpc::Slice slice(values.size_bytes());
  std::memcpy(const_cast<uint8_t*>(slice.begin()), values.data(), values.size_bytes());
  return slice;
}

}  // namespace

ExchangeStreams::ExchangeStreams(ShardHost& host) : host_(host) {
  host_.on_answers(
      [this](const Shard& shard, const Shard::Answers& answers) { deliver(shard, answers); });
}

ExchangeStreams::~ExchangeStreams() {
  std::unique_lock lock(mutex_);
  empty_.wait(lock, [&] { return streams_.empty(); });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ExchangeStreams::open(
    grpc::CallbackServerContext*) {
  ExchangeStream* stream = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const uint64_t session = next_session_++;
    stream = new ExchangeStream(*this, session);  // OnDone deletes it
    streams_[session] = stream;
  }
  stream->begin();
  return stream;
}

void ExchangeStreams::close() {
  const std::lock_guard lock(mutex_);
  for (auto& [session, stream] : streams_) stream->leave_locked();
}

void ExchangeStreams::deliver(const Shard& shard, const Shard::Answers& answers) {
  grpc::Slice current;
  grpc::Slice previous;
  const std::lock_guard lock(mutex_);
  for (const Shard::Answer& answer : answers) {
    const auto found = streams_.find(answer.session);
    if (found == streams_.end()) continue;  // a member that has gone
    grpc::Slice values;
    if (answer.values == Shard::Answer::Values::current) {
      if (current.size() == 0) current = copy_of(shard.parameters());
      values = current;
    } else if (answer.values == Shard::Answer::Values::previous) {
      if (previous.size() == 0) previous = copy_of(shard.previous());
      values = previous;
    }
    found->second->reply_locked(answer.header, values);
  }
}

void ExchangeStream::begin() {
  const std::lock_guard lock(receiving_);
  StartRead(&incoming_);
}

void ExchangeStream::OnReadDone(bool ok) {
  const std::lock_guard lock(receiving_);
  if (!ok) return leave();
  receive();
}

void ExchangeStream::receive() {
  const auto decoded = decode_push(incoming_);
  if (!decoded) return reply(Status::rejected, 0, "a push that is not one");
  const Push& message = decoded->header;
  if (!greeted_) {
    const std::string objection = streams_.host_.objection(message.hello());
    if (!objection.empty()) return reply(Status::rejected, message.sequence(), objection);
    greeted_ = true;
  }
  bool open = true;
  if (message.pull()) {
    open = streams_.host_.pull(session_, from_message(message));
  } else if (!gather(message, decoded->count, decoded->at_byte)) {
    return reply(Status::rejected, message.sequence(),
                 "a push of " + std::to_string(decoded->count) + " floats at " +
                     std::to_string(message.offset()) + " does not fit the shard");
  } else if (gathered_ == gradients_.size()) {
    gathered_ = 0;
    open = streams_.host_.push(session_, from_message(message), gradients_);
  }
  if (!open) reply(Status::superseded, message.sequence(), "");
  StartRead(&incoming_);
}

// Chunks come in order and without holes, from 0.
bool ExchangeStream::gather(const Push& message, size_t count, size_t at_byte) {
  const std::optional<size_t> size = streams_.host_.size();
  if (!size) return true;  // nothing was opened yet: the push is answered so
  if (gradients_.size() != *size) gradients_.resize(*size);
  if (message.offset() == 0) gathered_ = 0;
  if (message.offset() != gathered_ || count > *size - gathered_) return false;
  if (count > 0) copy_floats(incoming_, at_byte, std::span(gradients_).subspan(gathered_, count));
  gathered_ += count;
  return true;
}

void ExchangeStream::reply(Status status, uint64_t sequence, const std::string& message) {
  ReplyHeader header;
  header.status = status;
  header.sequence = sequence;
  header.message = message;
  const std::lock_guard lock(streams_.mutex_);
  if (status == Status::rejected) {
    log::warning("a member was rejected: " + message);
    closing_ = true;
  }
  reply_locked(header, grpc::Slice());
}

void ExchangeStream::reply_locked(const ReplyHeader& header, const grpc::Slice& values) {
  if (finished_) return;
  Reply message = to_message(header);
  const size_t bytes = kChunkFloats * sizeof(float);
  size_t begin = 0;
  do {
    const size_t end = std::min(values.size(), begin + bytes);
    message.set_offset(begin / sizeof(float));
    outgoing_.push_back(encode(message, values.sub(begin, end)));
    begin = end;
  } while (begin < values.size());
  if (writing_) return;
  writing_ = true;
  StartWrite(&outgoing_.front());
}

void ExchangeStream::OnWriteDone(bool ok) {
  const std::lock_guard lock(streams_.mutex_);
  writing_ = false;
  if (!outgoing_.empty()) outgoing_.pop_front();
  if (!ok) return leave_locked();
  if (!outgoing_.empty() && !finished_) {
    writing_ = true;
    StartWrite(&outgoing_.front());
  } else if (closing_) {
    leave_locked();
  }
}

void ExchangeStream::leave() {
  const std::lock_guard lock(streams_.mutex_);
  leave_locked();
}

void ExchangeStream::leave_locked() {
  if (std::exchange(finished_, true)) return;
  Finish(grpc::Status::OK);
}

void ExchangeStream::OnDone() {
  streams_.host_.detach(session_);
  {
    const std::lock_guard lock(streams_.mutex_);
    streams_.streams_.erase(session_);
    streams_.empty_.notify_all();
  }
  delete this;
}

}  // namespace muster::ps
