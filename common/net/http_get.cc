#include "common/net/http_get.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <optional>

#include "common/error.h"
#include "common/net/host_port.h"
#include "common/text/whole_number.h"

namespace muster {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr uint32_t kMostOfHead = 8 * 1024;

tcp::endpoint endpoint_of(const std::string& address) {
  error_code error;
  const asio::ip::address ip = asio::ip::make_address(host_of(address), error);
  const auto port = whole_number<uint16_t>(port_of(address), 1, 65535);
  if (error || !port) throw Unavailable("expected an IP address with a port");
  return {ip, *port};
}

// Runs one operation after the other, all within one time limit.
class Exchange {
 public:
  Exchange(const tcp::endpoint& peer, std::chrono::milliseconds timeout)
      : timeout_(timeout), end_(std::chrono::steady_clock::now() + timeout) {
    run([&](auto done) { stream_.async_connect(peer, done); });
  }

  http::response<http::string_body> get(const std::string& host, const std::string& path,
                                        size_t limit) {
    http::request<http::empty_body> request(http::verb::get, path, 11);
    request.set(http::field::host, host);
    request.set(http::field::connection, "close");
    run([&](auto done) { http::async_write(stream_, request, done); });
    http::response_parser<http::string_body> parser;
    parser.header_limit(kMostOfHead);
    parser.body_limit(limit);
    beast::flat_buffer buffer(2 * kMostOfHead);
    run([&](auto done) { http::async_read(stream_, buffer, parser, done); });
    return parser.release();
  }

 private:
  template <class Start>
  void run(const Start& start) {
    std::optional<error_code> result;
    start([&result](error_code error, size_t = 0) { result = error; });
    context_.restart();
    context_.run_until(end_);
    if (!result) {
      stream_.close();
      context_.restart();
      context_.run();  // until the operation has ended, because its handler refers to `result`
      throw Unavailable("no whole answer within " + std::to_string(timeout_.count()) + " ms");
    }
    if (*result) throw boost::system::system_error(*result);
  }

  const std::chrono::milliseconds timeout_;
  const std::chrono::steady_clock::time_point end_;
  asio::io_context context_{1};
  beast::tcp_stream stream_{context_};
};

}  // namespace

std::string http_get(const std::string& address, const std::string& path,
                     std::chrono::milliseconds timeout, size_t limit) {
  const auto fail = [&](const std::string& why) {
    return Unavailable("GET http://" + address + path + ": " + why);
  };
  try {
    auto answer = Exchange(endpoint_of(address), timeout).get(address, path, limit);
    if (answer.body().size() > limit) throw boost::system::system_error(http::error::body_limit);
    if (answer.result_int() != 200)
      throw Unavailable("status " + std::to_string(answer.result_int()));
    return std::move(answer.body());
  } catch (const boost::system::system_error& error) {
    if (error.code() == http::error::body_limit) {
      throw fail("expected a body of at most " + std::to_string(limit) + " bytes, found more");
    }
    throw fail(error.code().message());
  } catch (const std::exception& error) {
    throw fail(error.what());
  }
}

}  // namespace muster
