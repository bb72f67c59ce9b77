#include "operator/kube/http/http_transport.h"

#include <cpprest/http_client.h>
#include <openssl/crypto.h>
#include <pplx/threadpool.h>
#include <prometheus/counter.h>

#include <cstdlib>
#include <set>

#include "common/threads/mutex.h"
#include "operator/kube/http/exchange.h"
#include "operator/kube/http/http_clients.h"

namespace muster::kube {

namespace {

namespace http = web::http;
using Clock = Exchange::Clock;

const std::string kShuttingDown = "shutting down";

http::http_request to_cpprest(const Request& request, const std::string& authorization,
                              const std::string& tls_server_name) {
  web::uri_builder target(web::uri(request.path));
  for (const auto& [key, value] : request.query) {
    target.append_query(
        web::uri::encode_data_string(key) + "=" + web::uri::encode_data_string(value),
        /*do_encode=*/false);
  }
  http::http_request result(name_of(request.method));
  result.set_request_uri(target.to_uri());
  if (!request.content_type.empty()) result.set_body(request.body, request.content_type);
  result.headers().add("Accept", "application/json");
  result.headers().add("User-Agent", "muster-operator");
  if (!authorization.empty()) result.headers().add("Authorization", authorization);
  // cpprestsdk reads the expected name of the certificate from this header.
  if (!tls_server_name.empty()) result.headers().add("Host", tls_server_name);
  return result;
}

Phase phase_of(const Exchange::State& state, bool whole) {
  if (state.head) return whole ? Phase::done : Phase::reading;
  return state.sent ? Phase::answering : Phase::connecting;
}

// cpprestsdk's messages mislead at times (refused is "No route to host"); the phase that the call
// reached does not.
std::string describe(const Exchange::State& state, const std::string& host) {
  switch (phase_of(state, false)) {
    case Phase::connecting:
      return "no connection to " + host + ": " + state.error;
    case Phase::answering:
      return "no answer from " + host + ": " + state.error;
    default:
      return "the answer of " + host + " broke off: " + state.error;
  }
}

Response unsent(const std::string& why) {
  Response response;
  response.phase = Phase::waiting;
  response.sent = false;
  response.error = why;
  return response;
}

StreamEnd ended(StreamEnd::Reason reason, int status, std::string error = {}) {
  StreamEnd end;
  end.reason = reason;
  end.status = status;
  end.error = std::move(error);
  return end;
}

// Assembles the lines of a stream from its pieces.
class Lines {
 public:
  explicit Lines(size_t longest) : longest_(longest) {}

  // Returns false if a line is longer than it may be.
  bool feed(std::string_view piece, const Transport::OnLine& on_line) {
    for (size_t end; (end = piece.find('\n')) != std::string_view::npos;) {
      const std::string_view part = piece.substr(0, end);
      piece.remove_prefix(end + 1);
      if (begun_.empty()) {
        if (!part.empty()) on_line(part);
        continue;
      }
      begun_.append(part);
      on_line(begun_);
      begun_.clear();
    }
    begun_.append(piece);
    return begun_.size() <= longest_;
  }

 private:
  const size_t longest_;
  std::string begun_;
};

// A single thread reads and writes, because closing a connection must not race with its TLS.
// cpprestsdk's default of forty threads would double the CPU time of a request.
void initialize_threads() {
  try {
    crossplat::threadpool::initialize_with_threads(1);
  } catch (const std::exception&) {
    // The process has its pool already.
  }
}

}  // namespace

void initialize_transport() {
  // cpprestsdk's thread ends after main: OpenSSL must not be shut down before that thread has
  // ended.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  // Every new connection would read the system's authorities from this file, which takes 20 ms and
  // has no effect: connections trust the authorities of TlsMaterial.
  setenv("SSL_CERT_FILE", "/dev/null", 1);
  setenv("SSL_CERT_DIR", "/dev/null", 1);
  initialize_threads();
}

class HttpTransport::Impl {
 public:
  Impl(Credentials& credentials, prometheus::Registry& registry, Settings settings)
      : settings_(settings),
        credentials_(credentials),
        clients_(credentials),
        requests_(prometheus::BuildCounter()
                      .Name("rest_client_requests_total")
                      .Help("Calls of the Kubernetes API, by HTTP status (<error>: no answer).")
                      .Register(registry)) {}

  ~Impl() {
    shut_down();
    MutexLock lock(mutex_);
    changed_.wait(lock, [this]() MUSTER_REQUIRES(mutex_) { return live_.empty(); });
  }

  Response send(const Request& request);
  StreamEnd stream(const Request& request, const OnLine& on_line, const std::stop_token& cancel);
  void shut_down();
  std::stop_token down() const { return down_.get_token(); }

 private:
  using ExchangePtr = std::shared_ptr<Exchange>;

  bool wait_turn(Clock::time_point until);
  void leave_turn();
  ExchangePtr begin(const Request& request, bool streamed);
  Response attempt(const Request& request, Clock::time_point until, bool& stale);
  Response attempts(const Request& request, Clock::time_point until);
  StreamEnd read_head(Exchange& exchange, const Request& request, bool& stale);
  StreamEnd read_lines(Exchange& exchange, const OnLine& on_line);
  void count(const Request& request, int status);
  bool is_down() const { return down_.stop_requested(); }

  const Settings settings_;
  Credentials& credentials_;
  HttpClients clients_;
  prometheus::Family<prometheus::Counter>& requests_;

  std::stop_source down_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::set<ExchangePtr> live_ MUSTER_GUARDED_BY(mutex_);  // until the last task of each has ended
  int in_flight_ MUSTER_GUARDED_BY(mutex_) = 0;
};

bool HttpTransport::Impl::wait_turn(Clock::time_point until) {
  MutexLock lock(mutex_);
  const bool got = changed_.wait_until(lock, until, [this]() MUSTER_REQUIRES(mutex_) {
    return is_down() || in_flight_ < settings_.in_flight;
  });
  if (!got || is_down()) return false;
  ++in_flight_;
  return true;
}

void HttpTransport::Impl::leave_turn() {
  const MutexLock lock(mutex_);
  --in_flight_;
  changed_.notify_all();
}

HttpTransport::Impl::ExchangePtr HttpTransport::Impl::begin(const Request& request, bool streamed) {
  const HttpClients::Pair clients = clients_.current();
  http::http_request message =
      to_cpprest(request, clients.authorization, credentials_.config().tls_server_name);
  // cpprestsdk offers gzip in a list of encodings; the API server accepts gzip only if it is the
  // only one.
  if (!streamed) message.headers().add("Accept-Encoding", "gzip");
  // live_ owns the exchange too, so that shut_down() can reach it; the exchange is removed from
  // live_ when its last task has ended.
  auto holder = std::make_shared<std::weak_ptr<Exchange>>();
  auto exchange = std::make_shared<Exchange>(streamed, settings_.largest_answer, [this, holder] {
    const ExchangePtr ended = holder->lock();
    const MutexLock lock(mutex_);
    live_.erase(ended);
    changed_.notify_all();
  });
  *holder = exchange;
  {
    const MutexLock lock(mutex_);
    if (is_down()) return nullptr;
    live_.insert(exchange);
  }
  exchange->begin(streamed ? *clients.streams : *clients.calls, message);
  return exchange;
}

void HttpTransport::Impl::count(const Request& request, int status) {
  requests_
      .Add({{"code", status == 0 ? "<error>" : std::to_string(status)},
            {"method", name_of(request.method)},
            {"host", clients_.host()}})
      .Increment();
}

Response HttpTransport::Impl::attempt(const Request& request, Clock::time_point until,
                                      bool& stale) {
  const ExchangePtr exchange = begin(request, /*streamed=*/false);
  if (!exchange) return unsent(kShuttingDown);
  const Exchange::Wait waited = exchange->wait_end(until);
  if (waited != Exchange::Wait::ready) exchange->abort();
  Exchange::State state = exchange->take();
  if (waited == Exchange::Wait::timed_out) {
    state.error = "nothing within " + std::to_string(request.deadline.count()) + " ms";
  } else if (waited == Exchange::Wait::aborted) {
    state.error = kShuttingDown;
  }
  stale = state.stale;
  Response response;
  response.phase = phase_of(state, state.error.empty());
  response.sent = state.sent;
  response.retry_after = state.retry_after;
  if (state.error.empty()) {
    response.status = state.status;
    response.body = std::move(state.body);
  } else {
    response.error = describe(state, clients_.host());
  }
  return response;
}

// Tries the call again if nothing of it was sent. After a restart of the server every connection in
// the pool is dead, and each must be tried once to find that out. One further try is for a
// connection that dies in between.
Response HttpTransport::Impl::attempts(const Request& request, Clock::time_point until) {
  int spare = 1;
  for (int tries = 0;; ++tries) {
    bool stale = false;
    Response response = attempt(request, until, stale);
    if (!stale) count(request, response.status);
    const bool again = stale ? tries <= settings_.in_flight
                             : response.phase == Phase::connecting && !response.sent && spare-- > 0;
    if (!again || Clock::now() >= until || is_down()) return response;
  }
}

Response HttpTransport::Impl::send(const Request& request) {
  const Clock::time_point until = Clock::now() + request.deadline;
  if (!wait_turn(until)) {
    return unsent(is_down() ? kShuttingDown
                            : "no turn within " + std::to_string(request.deadline.count()) +
                                  " ms: other calls of " + clients_.host() + " take too long");
  }
  const std::unique_ptr<Impl, void (*)(Impl*)> turn(this, [](Impl* impl) { impl->leave_turn(); });
  Response response = attempts(request, until);
  if (response.status == 401) {
    const std::string before = credentials_.current().authorization;
    credentials_.refused();
    if (credentials_.current().authorization != before) response = attempts(request, until);
  }
  return response;
}

// Returns `closed` if there is a head of status 200.
StreamEnd HttpTransport::Impl::read_head(Exchange& exchange, const Request& request, bool& stale) {
  using Reason = StreamEnd::Reason;
  const Clock::time_point until = Clock::now() + request.deadline;
  const Exchange::Wait waited = exchange.wait_head(until);
  if (waited == Exchange::Wait::aborted) return ended(Reason::cancelled, 0);
  if (waited == Exchange::Wait::timed_out) {
    return ended(Reason::lost, 0,
                 "no answer from " + clients_.host() + " within " +
                     std::to_string(request.deadline.count()) + " ms");
  }
  Exchange::State state = exchange.take();
  stale = state.stale;
  if (!state.head) return ended(Reason::lost, 0, describe(state, clients_.host()));
  if (state.status == 200) return ended(Reason::closed, 200);
  StreamEnd end = ended(Reason::refused, state.status);
  end.retry_after = state.retry_after;
  std::string_view piece;
  while (exchange.next(until, piece) == Exchange::Wait::ready && !piece.empty() &&
         end.body.size() < settings_.longest_line) {
    end.body.append(piece);
  }
  return end;
}

StreamEnd HttpTransport::Impl::read_lines(Exchange& exchange, const OnLine& on_line) {
  using Reason = StreamEnd::Reason;
  Lines lines(settings_.longest_line);
  for (;;) {
    std::string_view piece;
    const Exchange::Wait waited = exchange.next(Clock::now() + settings_.silence, piece);
    if (waited == Exchange::Wait::aborted) return ended(Reason::cancelled, 200);
    if (waited == Exchange::Wait::timed_out) {
      return ended(Reason::silent, 200,
                   "nothing from " + clients_.host() + " for " +
                       std::to_string(settings_.silence.count()) + " s");
    }
    if (piece.empty()) break;
    if (!lines.feed(piece, on_line)) {
      return ended(Reason::lost, 200,
                   "expected lines of at most " + std::to_string(settings_.longest_line) +
                       " bytes from " + clients_.host());
    }
  }
  const Exchange::State state = exchange.take();
  if (state.error.empty()) return ended(Reason::closed, 200);
  return ended(Reason::lost, 200, describe(state, clients_.host()));
}

StreamEnd HttpTransport::Impl::stream(const Request& request, const OnLine& on_line,
                                      const std::stop_token& cancel) {
  for (int tries = 0;; ++tries) {
    const ExchangePtr exchange = begin(request, /*streamed=*/true);
    if (!exchange) return ended(StreamEnd::Reason::cancelled, 0);
    // At the end of this block, also by an exception, the connection must not stay busy with a
    // stream that nobody reads.
    struct AtEnd {
      Exchange& exchange;
      ~AtEnd() { exchange.abort(); }
    } at_end{*exchange};
    const std::stop_callback on_cancel(cancel, [&] { exchange->abort(); });
    bool stale = false;
    StreamEnd end = read_head(*exchange, request, stale);
    if (stale && tries <= settings_.in_flight) continue;
    count(request, end.status);
    if (end.status == 401) credentials_.refused();
    return end.status == 200 ? read_lines(*exchange, on_line) : end;
  }
}

void HttpTransport::Impl::shut_down() {
  down_.request_stop();
  std::set<ExchangePtr> live;
  {
    const MutexLock lock(mutex_);
    live = live_;
    changed_.notify_all();
  }
  for (const ExchangePtr& exchange : live) exchange->abort();
}

HttpTransport::HttpTransport(Credentials& credentials, prometheus::Registry& registry,
                             Settings settings)
    : impl_(std::make_unique<Impl>(credentials, registry, settings)) {}
HttpTransport::~HttpTransport() = default;

Response HttpTransport::send(const Request& request) {
  return impl_->send(request);
}

StreamEnd HttpTransport::stream(const Request& request, const OnLine& on_line,
                                const std::stop_token& cancel) {
  return impl_->stream(request, on_line, cancel);
}

void HttpTransport::shut_down() {
  impl_->shut_down();
}

std::stop_token HttpTransport::down() const {
  return impl_->down();
}

}  // namespace muster::kube
