#include "operator/kube/http/exchange.h"

#include <pplx/threadpool.h>

#include <utility>

#include "common/text/whole_number.h"
#include "operator/kube/http/body_sink.h"

namespace muster::kube {

namespace http = web::http;

namespace {

std::optional<std::chrono::seconds> retry_after_of(const http::http_response& response) {
  const auto header = response.headers().find("Retry-After");
  if (header == response.headers().end()) return std::nullopt;
  const auto seconds = whole_number<int>(header->second, 0);
  return seconds ? std::optional(std::chrono::seconds(*seconds)) : std::nullopt;
}

}  // namespace

void Exchange::begin(http::client::http_client& client, http::http_request request) {
  const auto self = shared_from_this();
  const auto sink = std::make_shared<BodySink>(
      [self](const uint8_t* data, size_t size) { return self->on_piece(data, size); });
  request.set_response_stream(
      concurrency::streams::ostream(concurrency::streams::streambuf<uint8_t>(sink)));
  // Called for the first time when the head of the request has been written.
  request.set_progress_handler([self](http::message_direction::direction direction, uint64_t) {
    if (direction != http::message_direction::upload) return;
    const MutexLock lock(self->mutex_);
    self->state_.sent = true;
  });
  // The failure of every task must be looked at, or it ends the process: the last task does that.
  client.request(request, cancellation_.get_token())
      .then([self](const http::http_response& response) {
        self->on_head(response);
        return response.content_ready();
      })
      .then([self](const pplx::task<http::http_response>& whole) {
        try {
          whole.get();
          self->on_finish(nullptr);
        } catch (...) {
          self->on_finish(std::current_exception());
        }
      });
}

void Exchange::on_head(const http::http_response& response) {
  const MutexLock lock(mutex_);
  state_.head = true;
  state_.sent = true;
  state_.status = response.status_code();
  state_.retry_after = retry_after_of(response);
  changed_.notify_all();
}

void Exchange::on_finish(const std::exception_ptr& error) {
  {
    const MutexLock lock(mutex_);
    try {
      if (error) std::rethrow_exception(error);
    } catch (const StaleConnection& stale) {
      state_.stale = true;
      state_.error = stale.what();
    } catch (const std::exception& other) {
      state_.error = *other.what() ? other.what() : "unknown error";
    }
    ended_ = true;
    changed_.notify_all();
  }
  on_end_();
}

pplx::task<size_t> Exchange::on_piece(const uint8_t* data, size_t size) {
  const MutexLock lock(mutex_);
  const auto fail = [](const std::string& why) {
    return pplx::task_from_exception<size_t>(std::runtime_error(why));
  };
  if (aborted_) return fail("nobody waits for the answer any more");
  const char* text = reinterpret_cast<const char*>(data);
  if (!by_piece_) {
    if (state_.body.size() + size > largest_) {
      return fail("expected an answer of at most " + std::to_string(largest_) + " bytes");
    }
    state_.body.append(text, size);
    return pplx::task_from_result(size);
  }
  piece_ = {text, size};
  given_ = false;
  piece_taken_.emplace();
  changed_.notify_all();
  return pplx::create_task(*piece_taken_);
}

template <class Condition>
Exchange::Wait Exchange::wait(MutexLock& lock, Clock::time_point until, Condition condition) {
  const bool in_time = changed_.wait_until(
      lock, until, [&]() MUSTER_REQUIRES(mutex_) { return aborted_ || condition(); });
  if (aborted_) return Wait::aborted;
  return in_time ? Wait::ready : Wait::timed_out;
}

Exchange::Wait Exchange::wait_head(Clock::time_point until) {
  MutexLock lock(mutex_);
  return wait(lock, until, [this]() MUSTER_REQUIRES(mutex_) { return state_.head || ended_; });
}

Exchange::Wait Exchange::wait_end(Clock::time_point until) {
  MutexLock lock(mutex_);
  return wait(lock, until, [this]() MUSTER_REQUIRES(mutex_) { return ended_; });
}

Exchange::Wait Exchange::next(Clock::time_point until, std::string_view& piece) {
  MutexLock lock(mutex_);
  if (given_) let_go();
  piece = {};
  const Wait result =
      wait(lock, until, [this]() MUSTER_REQUIRES(mutex_) { return piece_taken_ || ended_; });
  if (result == Wait::ready && piece_taken_) {
    piece = piece_;
    given_ = true;
  }
  return result;
}

// Called when the piece has been used or will never be used.
void Exchange::let_go() {
  if (!piece_taken_) return;
  piece_taken_->set(piece_.size());
  piece_taken_.reset();
  given_ = false;
}

void Exchange::abort() {
  const MutexLock lock(mutex_);
  if (aborted_) return;
  aborted_ = true;
  changed_.notify_all();
  let_go();
  if (!ended_) close_connection();
}

// Runs on the thread that reads and writes: closing a connection while another thread is in the
// middle of a step of TLS would not be safe.
void Exchange::close_connection() {
  crossplat::threadpool::shared_instance().service().post(
      [self = shared_from_this()] { self->cancellation_.cancel(); });
}

Exchange::State Exchange::take() {
  const MutexLock lock(mutex_);
  std::string body = std::exchange(state_.body, {});
  State state = state_;
  state.body = std::move(body);
  return state;
}

}  // namespace muster::kube
