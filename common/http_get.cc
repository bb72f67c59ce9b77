#include "common/http_get.h"

#include <cpprest/http_client.h>
#include <pplx/threadpool.h>

#include <algorithm>
#include <array>
#include <future>
#include <mutex>

#include "common/error.h"

namespace muster {

namespace {

namespace http = web::http;

// An answer as it comes in; lives until the chain of tasks that fills it has ended.
struct Answer {
  int status = 0;
  concurrency::streams::streambuf<uint8_t> stream;
  std::string body;  // at most `most` bytes
  size_t most = 0;
  std::array<uint8_t, 16 * 1024> piece;
};

// Reads the body piece by piece until its end or `most` bytes, however much the peer sends.
pplx::task<void> read_body(Answer& answer) {
  const size_t room = answer.most - answer.body.size();
  if (room == 0) return pplx::task_from_result();
  return answer.stream.getn(answer.piece.data(), std::min(room, answer.piece.size()))
      .then([&answer](size_t got) {
        if (got == 0) return pplx::task_from_result();
        answer.body.append(reinterpret_cast<const char*>(answer.piece.data()), got);
        return read_body(answer);
      });
}

http::client::http_client_config client_config(std::chrono::milliseconds timeout) {
  http::client::http_client_config config;
  config.set_timeout(timeout + std::chrono::seconds(5));  // ours ends first, and says so
  config.set_max_redirects(0);
  return config;
}

}  // namespace

void initialize_http_threads(size_t threads) {
  static std::once_flag once;
  std::call_once(once, [threads] {
    try {
      crossplat::threadpool::initialize_with_threads(threads);
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
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
  Answer answer;
  answer.most = limit + 1;
  try {
    http::client::http_client client(web::uri("http://" + address), client_config(timeout));
    const pplx::task<void> chain =
        client.request(http::methods::GET, web::uri(path).to_string(), cancellation.get_token())
            .then([&answer](const http::http_response& response) {
              answer.status = response.status_code();
              answer.stream = response.body().streambuf();
              return read_body(answer);
            })
            .then([&promise](pplx::task<void> read) {
              try {
                read.get();
                promise.set_value();
              } catch (...) {
                promise.set_exception(std::current_exception());
              }
            });
    // cpprestsdk's own timeout is of inactivity: a peer that drips bytes would hold us for ever.
    const bool in_time = done.wait_for(timeout) == std::future_status::ready;
    cancellation.cancel();
    chain.wait();
    if (!in_time) throw fail("no whole answer within " + std::to_string(timeout.count()) + " ms");
    done.get();
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
