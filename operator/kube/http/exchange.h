#pragma once

#include <cpprest/http_client.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/threads/mutex.h"
#include "operator/kube/http/transport.h"

namespace muster::kube {

// The error for a pooled connection that the server has closed before anything was sent on it.
struct StaleConnection : std::runtime_error {
  StaleConnection() : std::runtime_error("the connection was closed by the server") {}
};

// One request on its way. It is shared by the caller that waits for it and by the tasks of
// cpprestsdk, which may end later than the caller waits.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  using Clock = std::chrono::steady_clock;
  // `by_piece`: next() fetches the body piece by piece; otherwise the body is collected, up to
  // `largest` bytes. `on_end` is called once, on a thread of cpprestsdk, when the last task has
  // ended.
  Exchange(bool by_piece, size_t largest, std::function<void()> on_end)
      : by_piece_(by_piece), largest_(largest), on_end_(std::move(on_end)) {}

  // Sends the request. Call it once.
  void begin(web::http::client::http_client& client, web::http::http_request request);

  enum class Wait { ready, timed_out, aborted };
  // Waits for the head, or for an end without a head.
  Wait wait_head(Clock::time_point until);
  Wait wait_end(Clock::time_point until);
  // Waits for a piece of the body; `ready` with an empty piece is the end. The piece is valid until
  // the next call; until then nothing more is read from the server.
  Wait next(Clock::time_point until, std::string_view& piece);

  // Ends all waits, and closes the connection if the answer is not whole. Thread-safe, may be
  // called again.
  void abort();

  // The answer so far; it is whole after the end. take() moves the body out.
  struct State {
    int status = 0;
    std::optional<std::chrono::seconds> retry_after;
    std::string body;
    bool head = false;
    bool sent = false;
    bool stale = false;
    std::string error;  // empty: none
  };
  State take();

 private:
  void on_head(const web::http::http_response& response);
  void on_finish(const std::exception_ptr& error);
  pplx::task<size_t> on_piece(const uint8_t* data, size_t size);
  void close_connection();
  void let_go() MUSTER_REQUIRES(mutex_);
  template <class Condition>
  Wait wait(MutexLock& lock, Clock::time_point until, Condition condition) MUSTER_REQUIRES(mutex_);

  const bool by_piece_;
  const size_t largest_;
  const std::function<void()> on_end_;
  pplx::cancellation_token_source cancellation_;

  Mutex mutex_;
  ConditionVariable changed_;
  State state_ MUSTER_GUARDED_BY(mutex_);
  bool ended_ MUSTER_GUARDED_BY(mutex_) = false;
  bool aborted_ MUSTER_GUARDED_BY(mutex_) = false;
  // The piece that next() has returned or will return.
  std::string_view piece_ MUSTER_GUARDED_BY(mutex_);
  bool given_ MUSTER_GUARDED_BY(mutex_) = false;
  std::optional<pplx::task_completion_event<size_t>> piece_taken_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kube
