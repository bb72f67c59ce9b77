#pragma once

#include <map>
#include <utility>
#include <vector>

#include "common/error.h"
#include "tests/unit/trainer/ps/protocol/simulated_job.h"

namespace muster::ps::protocol {

// A control call to several ps at once, as ps::Control makes it.
class ControlCalls {
 public:
  ControlCalls(SimulatedJob& job, int id) : job_(job), id_(id) {}
  ~ControlCalls() { cancel(); }

  // `to` has the ps that each request goes to.
  template <class Request>
  void start(const std::vector<Request>& requests, const std::vector<int>& to) {
    cancel();
    replies_.assign(requests.size(), End());
    for (size_t i = 0; i < requests.size(); ++i) {
      const int server = job_.process_at({Place::Role::ps, to[i]});
      const int stream = job_.network().connect(id_, server, /*call=*/true);
      job_.network().send(stream, Side::client, requests[i]);
      calls_[stream] = i;
    }
    active_ = true;
  }
  // Returns false if the stream is not one of these calls'.
  bool receive(int stream, Message& message) {
    const auto found = calls_.find(stream);
    if (found == calls_.end()) return false;
    replies_[found->second] = std::move(message);
    calls_.erase(found);
    job_.network().close(stream, Side::client);
    return true;
  }
  bool active() const { return active_; }
  bool answered() const { return active_ && calls_.empty(); }
  // Returns the replies. Throws Unavailable if a shard refused, or is gone.
  template <class Reply>
  std::vector<Reply> take() {
    active_ = false;
    std::vector<Reply> replies;
    for (const Message& message : replies_) {
      if (const auto* refusal = std::get_if<Refusal>(&message)) throw Unavailable(refusal->reason);
      if (!std::holds_alternative<Reply>(message)) throw Unavailable("a shard has gone");
      replies.push_back(std::get<Reply>(message));
    }
    return replies;
  }
  void cancel() {
    for (const auto& [stream, number] : calls_) job_.network().close(stream, Side::client);
    calls_.clear();
    active_ = false;
  }

 private:
  SimulatedJob& job_;
  const int id_;
  std::map<int, size_t> calls_;  // by stream
  std::vector<Message> replies_;
  bool active_ = false;
};

}  // namespace muster::ps::protocol
