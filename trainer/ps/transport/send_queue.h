#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <deque>

#include "trainer/ps/transport/seal.h"

namespace muster::ps {

// The messages that one stream still has to send, in order. gRPC writes one message at a time,
// directly from the queue. Guarded by the stream's lock.
class SendQueue {
 public:
  explicit SendQueue(bool plaintext) : plaintext_(plaintext) {}

  void push(grpc::ByteBuffer message) { messages_.push_back(std::move(message)); }

  // Returns the message to call StartWrite with now; null while a write is under way or if there is
  // none.
  const grpc::ByteBuffer* next() {
    if (writing_ || messages_.empty()) return nullptr;
    writing_ = true;
    if (plaintext_) messages_.front() = sealed(messages_.front());
    return &messages_.front();
  }
  // Called from OnWriteDone.
  void written() {
    writing_ = false;
    messages_.pop_front();
  }

  size_t size() const { return messages_.size(); }
  bool empty() const { return messages_.empty(); }
  // Precondition: no write is under way any more.
  void clear() { messages_.clear(); }

 private:
  const bool plaintext_;  // messages get a CRC-32C: see seal.h
  std::deque<grpc::ByteBuffer> messages_;
  bool writing_ = false;
};

}  // namespace muster::ps
