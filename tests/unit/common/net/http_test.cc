#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "common/error.h"
#include "common/net/http_get.h"
#include "common/net/http_server.h"
#include "common/system/descriptor.h"
#include "tests/unit/common/net/listener.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

// Answers one connection with `text`, again and again `repeat` times, then waits for the peer to
// leave.
class RawServer {
 public:
  RawServer(std::string text, std::string drip)
      : thread_([this, text = std::move(text), drip = std::move(drip)] {
          const int fd = listener_.accept_one();
          char request[4096];
          if (recv(fd, request, sizeof request, 0) > 0) {
            bool sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL) >= 0;
            while (sent && !drip.empty() && !stop_) {
              std::this_thread::sleep_for(10ms);
              sent = send(fd, drip.data(), drip.size(), MSG_NOSIGNAL) >= 0;
            }
            while (recv(fd, request, sizeof request, 0) > 0) {
            }
          }
          close(fd);
        }) {}
  ~RawServer() {
    stop_ = true;
    thread_.join();
  }
  std::string address() const { return listener_.address(); }

 private:
  Listener listener_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

std::string get_error(const std::string& address, const std::string& path = "/") {
  try {
    http_get(address, path, 300ms, 1000);
  } catch (const Unavailable& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(Http, ServesItsPathsAndNothingElse) {
  HttpServer server(free_address());
  (void)server;
  const std::string address = free_address();
  HttpServer other(address);
  other.handle("/x", [] { return HttpReply{200, "text/plain", "hello"}; });
  other.handle("/busy", [] { return HttpReply{503, "text/plain", "later"}; });
  other.handle("/throws", []() -> HttpReply { throw Invalid("broken"); });
  other.handle("/exact", [] { return HttpReply{200, "text/plain", std::string(1000, 'x')}; });
  other.handle("/large", [] { return HttpReply{200, "text/plain", std::string(1001, 'x')}; });
  other.handle("/moved", [] { return HttpReply{302, "text/plain", ""}; });
  other.start();
  EXPECT_EQ(http_get(address, "/x", 5s), "hello");
  EXPECT_THAT(get_error(address, "/none"), HasSubstr("status 404"));
  EXPECT_THAT(get_error(address, "/x/"), HasSubstr("status 404"));
  EXPECT_THAT(get_error(address, "/busy"), HasSubstr("status 503"));
  EXPECT_THAT(get_error(address, "/throws"), HasSubstr("status 500"));
  EXPECT_THAT(get_error(address, "/moved"), HasSubstr("status 302"));
  EXPECT_EQ(http_get(address, "/exact", 5s, 1000).size(), 1000u);
  EXPECT_THAT(get_error(address, "/large"), HasSubstr("at most 1000 bytes"));
}

// What a server says to `request`, until it closes.
std::string answer_to(const std::string& address, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  peer.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&peer), sizeof peer), 0);
  send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  shutdown(fd, SHUT_WR);
  std::string answer;
  char piece[4096];
  for (ssize_t got; (got = recv(fd, piece, sizeof piece, 0)) > 0;) {
    answer.append(piece, static_cast<size_t>(got));
  }
  close(fd);
  return answer;
}

class RefusingServer : public testing::Test {
 protected:
  RefusingServer() : address_(free_address()), server_(address_) {
    server_.handle("/x", [] { return HttpReply{200, "text/plain", "hello"}; });
    server_.start();
  }
  const std::string address_;
  HttpServer server_;
};

TEST_F(RefusingServer, TakesNoMethodButGet) {
  EXPECT_THAT(answer_to(address_, "POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"),
              HasSubstr("HTTP/1.1 405 "));
  EXPECT_THAT(answer_to(address_, "DELETE /x HTTP/1.1\r\n\r\n"), HasSubstr("Allow: GET"));
}

// The sizes are announced, and never sent: an answer comes without them.
TEST_F(RefusingServer, AnswersABodyWithoutReadingIt) {
  const std::string huge = "HTTP/1.1\r\nContent-Length: 1000000000000\r\n\r\n";
  const std::string chunked = "HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& rest : {huge, chunked}) {
    for (const auto& [method, status] : {std::pair("POST", "405"), std::pair("GET", "413")}) {
      const std::string answer = answer_to(address_, std::string(method) + " /x " + rest);
      EXPECT_THAT(answer, HasSubstr(std::string("HTTP/1.1 ") + status)) << method << rest;
      EXPECT_THAT(answer, HasSubstr("Connection: close"));
    }
  }
}

TEST_F(RefusingServer, TakesNoBodyForTheNextRequest) {
  const std::string next = "GET /x HTTP/1.1\r\n\r\n";
  const std::string answer =
      answer_to(address_, "POST /x HTTP/1.1\r\nContent-Length: " + std::to_string(next.size()) +
                              "\r\n\r\n" + next);
  EXPECT_THAT(answer, ::testing::Not(HasSubstr("hello")));
}

TEST_F(RefusingServer, DropsAHeadWithoutEndAndGoesOn) {
  answer_to(address_, "GET /x HTTP/1.1\r\nX: " + std::string(100'000, 'x'));
  EXPECT_EQ(http_get(address_, "/x", 5s), "hello");
}

TEST_F(RefusingServer, DropsTheOldestOfManyConnections) {
  std::vector<Descriptor> silent;
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  peer.sin_port = htons(static_cast<uint16_t>(std::stoi(address_.substr(address_.find(':') + 1))));
  for (int i = 0; i < 300; ++i) {
    silent.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(silent.back().get(), reinterpret_cast<sockaddr*>(&peer), sizeof peer), 0);
  }
  EXPECT_EQ(http_get(address_, "/x", 5s), "hello");
  char byte = 0;
  EXPECT_EQ(recv(silent.front().get(), &byte, 1, 0), 0) << "it was closed";
  EXPECT_EQ(recv(silent.back().get(), &byte, 1, MSG_DONTWAIT), -1) << "it is open";
}

TEST_F(RefusingServer, AnswersSeveralRequestsOfAConnection) {
  const std::string get = "GET /x?y=1 HTTP/1.1\r\n\r\n";
  const std::string answer = answer_to(address_, get + get);
  EXPECT_NE(answer.find("hello"), answer.rfind("hello"));
}

TEST(Http, APortInUseIsUnavailableAndHarmsNobody) {
  const Listener taken;
  HttpServer server(taken.address());
  try {
    server.start();
    FAIL();
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr(taken.address()));
    EXPECT_THAT(error.what(), HasSubstr("in use"));
  }
  const std::string address = free_address();
  HttpServer first(address), second(address);
  first.handle("/x", [] { return HttpReply{200, "text/plain", "first"}; });
  first.start();
  EXPECT_THROW(second.start(), Unavailable);
  EXPECT_EQ(http_get(address, "/x", 5s), "first");
}

TEST(Http, AMalformedAddressIsUnavailable) {
  for (const char* address : {"", "nohost.invalid:80", "127.0.0.1:99999", "a b:1", "127.0.0.1:x"}) {
    EXPECT_THROW(
        {
          HttpServer server(address);
          server.start();
        },
        Unavailable)
        << address;
    EXPECT_THROW(http_get(address, "/", 300ms), Unavailable) << address;
  }
}

TEST(Http, APortIsFreeAgainAfterItsServer) {
  const std::string address = free_address();
  for (const char* text : {"one", "two"}) {
    HttpServer server(address);
    server.handle("/x", [text] { return HttpReply{200, "text/plain", text}; });
    server.start();
    EXPECT_EQ(http_get(address, "/x", 5s), text);
  }
}

TEST(Http, GetGivesUpOnARefusedConnection) {
  EXPECT_THAT(get_error(free_address()), HasSubstr("GET http://127.0.0.1:"));
}

TEST(Http, GetGivesUpOnAServerThatHangs) {
  const Listener silent;  // accepts into its backlog, never answers
  EXPECT_THAT(get_error(silent.address()), HasSubstr("GET http://"));
}

TEST(Http, GetGivesUpOnAServerThatDrips) {
  const RawServer body("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "x");
  EXPECT_THAT(get_error(body.address()), HasSubstr("within 300 ms"));
  const RawServer head("HTTP/1.1 200 OK\r\n", "X: y\r\n");
  EXPECT_THAT(get_error(head.address()), HasSubstr("within 300 ms"));
}

TEST(Http, GetGivesUpOnABodyThatDoesNotEnd) {
  const RawServer endless("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n",
                          std::string(100000, 'x'));
  EXPECT_THAT(get_error(endless.address()), HasSubstr("at most 1000 bytes"));
}

// Sizes of chunks are hexadecimal. A library may take a sign too, or keep a chunk until it is
// whole.
TEST(Http, GetRefusesHostileChunks) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* size : {"-2", "-1", "+5", "0x5", "ffffffffffffffffff", "", "g"}) {
    const RawServer server(head + size + "\r\nhello\r\n0\r\n\r\n", "");
    EXPECT_THAT(get_error(server.address()), HasSubstr("bad chunk")) << size;
  }
  for (const char* size : {"7fffffff", "fffffffffffffffe"}) {
    const RawServer server(head + size + "\r\n", std::string(1000, 'x'));
    EXPECT_THAT(get_error(server.address()), HasSubstr("at most 1000 bytes")) << size;
  }
  const RawServer extended(head + "5;" + std::string(1'000'000, 'x'), "x");
  EXPECT_THAT(get_error(extended.address()), Not(HasSubstr("within")));
  const RawServer good(head + "5\r\nhello\r\n0\r\n\r\n", "");
  EXPECT_EQ(http_get(good.address(), "/", 5s), "hello");
}

TEST(Http, GetRefusesAHeadThatDoesNotEnd) {
  const RawServer endless("HTTP/1.1 200 OK\r\n", "X: " + std::string(10'000, 'x') + "\r\n");
  EXPECT_THAT(get_error(endless.address()), HasSubstr("header limit"));
}

TEST(Http, GetTakesABodyThatEndsWithItsConnection) {
  const Listener listener;
  std::thread peer([&] {
    const int fd = listener.accept_one();
    char request[4096];
    const std::string answer = "HTTP/1.0 200 OK\r\n\r\nhello";
    EXPECT_GT(recv(fd, request, sizeof request, 0), 0);
    EXPECT_GT(send(fd, answer.data(), answer.size(), MSG_NOSIGNAL), 0);
    close(fd);
  });
  EXPECT_EQ(http_get(listener.address(), "/", 5s), "hello");
  peer.join();
}

TEST(Http, GetAsksNoNameServer) {
  EXPECT_THAT(get_error("localhost:80"), HasSubstr("expected an IP address with a port"));
}

TEST(Http, GetRefusesWhatIsNoHttp) {
  const RawServer other("SSH-2.0-nothing\r\n\r\n", "");
  EXPECT_THAT(get_error(other.address()), HasSubstr("GET http://"));
}

// It is an address of IPv6, which a host may lack.
TEST(Http, EveryAddressIncludesThoseOfIPv4) {
  const std::string port = std::to_string(free_port());
  HttpServer server("[::]:" + port);
  server.handle("/healthz", [] { return HttpReply{.body = "ok\n"}; });
  server.start();
  EXPECT_EQ(http_get("127.0.0.1:" + port, "/healthz", 10s), "ok\n");
}

}  // namespace
}  // namespace muster
