#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <deque>

namespace muster::ps {

// The messages that one stream still has to send, in order. gRPC writes one message at a time, from
// its place in the queue. Guarded by the stream's lock.
class SendQueue {
 public:
  void push(grpc::ByteBuffer message) { messages_.push_back(std::move(message)); }

  // Returns the message to call StartWrite with now; null while a write is under way or if there is
  // none.
  const grpc::ByteBuffer* next() {
    if (writing_ || messages_.empty()) return nullptr;
    writing_ = true;
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
  std::deque<grpc::ByteBuffer> messages_;
  bool writing_ = false;
};

}  // namespace muster::ps
