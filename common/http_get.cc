#include <cpprest/containerstream.h>
#include <cpprest/http_client.h>
#include <cpprest/producerconsumerstream.h>
#include <pplx/threadpool.h>

#include <future>
#include <mutex>

#include "common/error.h"
#include "common/http_server.h"
#include "common/http_threads.h"

namespace muster {

namespace {

namespace http = web::http;

struct Answer {
  int status = 0;
  std::string body;  // up to limit + 1 bytes
};

// Reads the body piece by piece until its end or `room` bytes, whatever the peer goes on sending.
pplx::task<Answer> read_body(concurrency::streams::istream body, Answer answer, size_t room) {
  constexpr size_t kPiece = 16 * 1024;
  if (room == 0) return pplx::task_from_result(std::move(answer));
  concurrency::streams::container_buffer<std::string> piece;
  return body.read(piece, std::min(room, kPiece))
      .then([body, piece, answer = std::move(answer), room](size_t got) mutable {
        if (got == 0) return pplx::task_from_result(std::move(answer));
        answer.body.append(piece.collection(), 0, got);  // it holds more room than data
        return read_body(body, std::move(answer), room - std::min(room, got));
      });
}

http::client::http_client_config client_config(std::chrono::milliseconds timeout) {
  http::client::http_client_config config;
  config.set_timeout(timeout + std::chrono::seconds(5));  // ours ends first, and says so
  config.set_max_redirects(0);
  return config;
}

}  // namespace

void initialize_http_threads() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      crossplat::threadpool::initialize_with_threads(2);
    } catch (const std::exception&) {
      // The program has chosen a pool of its own already.
    }
  });
}

std::string http_get(const std::string& address, const std::string& path,
                     std::chrono::milliseconds timeout, size_t limit) {
  initialize_http_threads();
  const std::string url = "http://" + address + path;
  const auto fail = [&](const std::string& why) { return Unavailable("GET " + url + ": " + why); };
  pplx::cancellation_token_source cancellation;
  std::promise<Answer> promise;
  std::future<Answer> future = promise.get_future();
  pplx::task<void> chain;
  Answer answer;
  try {
    http::client::http_client client(web::uri("http://" + address), client_config(timeout));
    chain = client.request(http::methods::GET, web::uri(path).to_string(), cancellation.get_token())
                .then([limit](const http::http_response& response) {
                  Answer head{response.status_code(), ""};
                  return read_body(response.body(), head, limit + 1);
                })
                .then([&promise](pplx::task<Answer> done) {
                  try {
                    promise.set_value(done.get());
                  } catch (...) {
                    promise.set_exception(std::current_exception());
                  }
                });
    // cpprestsdk's own timeout is of inactivity: a peer that drips bytes would hold us for ever.
    const bool in_time = future.wait_for(timeout) == std::future_status::ready;
    cancellation.cancel();
    chain.wait();
    if (!in_time) throw fail("no whole answer within " + std::to_string(timeout.count()) + " ms");
    answer = future.get();
  } catch (const Unavailable&) {
    throw;
  } catch (const std::exception& error) {
    throw fail(error.what());
  }
  if (answer.status != 200) throw fail("status " + std::to_string(answer.status));
  if (answer.body.size() > limit) {
    throw fail("expected a body of at most " + std::to_string(limit) + " bytes, found more");
  }
  return std::move(answer.body);
}

}  // namespace muster
