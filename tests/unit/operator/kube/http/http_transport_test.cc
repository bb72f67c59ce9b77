#include "operator/kube/http/http_transport.h"

#include <gmock/gmock.h>
#include <prometheus/text_serializer.h>
#include <zlib.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <thread>

#include "common/error.h"
#include "common/system/file.h"
#include "tests/unit/common/temporary_folder.h"
#include "tests/unit/operator/kube/test_server.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Reply = TestServer::Reply;

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string result(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

// First in main, as programs do.
class InitializedTransport : public ::testing::Environment {
  void SetUp() override { initialize_transport(); }
};
const ::testing::Environment* const kEnvironment =
    ::testing::AddGlobalTestEnvironment(new InitializedTransport);

class HttpTransportTest : public ::testing::Test {
 protected:
  TestServer::Settings tls() const {
    TestServer::Settings settings;
    settings.identity = server_;
    return settings;
  }
  Config config(const std::string& url) const {
    Config config;
    config.server = url;
    config.authority.text = authority_.certificate;
    return config;
  }
  // A transport to `url`; one at a time.
  HttpTransport& connect(const Config& config, HttpTransport::Settings settings = {}) {
    transport_.reset();
    credentials_.emplace(config, 0s);
    return transport_.emplace(*credentials_, registry_, settings);
  }
  static Request get(const std::string& path = "/api") {
    Request request;
    request.path = path;
    request.deadline = 20s;
    return request;
  }
  static Request post(const std::string& body) {
    Request request = get();
    request.method = Method::post;
    request.content_type = "application/json";
    request.body = body;
    return request;
  }
  std::string metrics() const {
    return prometheus::TextSerializer().Serialize(registry_.Collect());
  }

  const Identity authority_ = make_authority("authority");
  const Identity server_ =
      make_identity(authority_, "server", "IP:127.0.0.1,IP:::1,DNS:localhost,DNS:kubernetes");
  prometheus::Registry registry_;
  std::optional<Credentials> credentials_;
  std::optional<HttpTransport> transport_;
};

TEST_F(HttpTransportTest, SendsWhatItIsAskedTo) {
  TestServer::Message seen;
  TestServer server(tls(), [&](const TestServer::Message& message, TestServer::Peer&) {
    seen = message;
    return Reply{201, "made", {{"Retry-After", "7"}}};
  });
  Config as_someone = config(server.url());
  as_someone.token.text = "secret";
  Request request = post(R"({"a":"ä"})");
  request.query = {{"labelSelector", "a=b,c in (d)"}, {"limit", "5"}};
  const Response response = connect(as_someone).send(request);
  EXPECT_EQ(response.status, 201) << response.error;
  EXPECT_EQ(response.body, "made");
  EXPECT_EQ(response.retry_after, 7s);
  EXPECT_EQ(response.phase, Phase::done);
  EXPECT_TRUE(response.sent);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.target, "/api?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=5");
  EXPECT_EQ(seen.body, R"({"a":"ä"})");
  EXPECT_EQ(seen.headers["content-type"], "application/json");
  EXPECT_EQ(seen.headers["authorization"], "Bearer secret");
  EXPECT_THAT(metrics(), HasSubstr("rest_client_requests_total{code=\"201\",host=\"127.0.0.1:" +
                                   std::to_string(server.port()) + "\",method=\"POST\"} 1"));
}

TEST_F(HttpTransportTest, KeepsThePathOfTheServerAndEncodedNames) {
  std::string target;
  TestServer server(tls(), [&](const TestServer::Message& message, TestServer::Peer&) {
    target = message.target;
    return Reply{};
  });
  connect(config(server.url() + "/k8s/cluster")).send(get("/api/v1/pods/a%2Fb"));
  EXPECT_EQ(target, "/k8s/cluster/api/v1/pods/a%2Fb");
}

TEST_F(HttpTransportTest, ReusesConnections) {
  TestServer server(tls(), [](const TestServer::Message&, TestServer::Peer&) { return Reply{}; });
  HttpTransport& transport = connect(config(server.url()));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(transport.send(get()).status, 200);
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(HttpTransportTest, UnpacksGzip) {
  const std::string text(300'000, 'x');
  std::string asked;
  TestServer server(tls(), [&](const TestServer::Message& message, TestServer::Peer&) {
    asked = message.headers.at("accept-encoding");
    return Reply{200, gzip(text), {{"Content-Encoding", "gzip"}}};
  });
  const Response response = connect(config(server.url())).send(get());
  EXPECT_EQ(response.status, 200) << response.error;
  EXPECT_EQ(response.body, text);
  EXPECT_THAT(asked, HasSubstr("gzip"));
}

TEST_F(HttpTransportTest, SpeaksOverIpv6) {
  TestServer::Settings settings = tls();
  settings.address = "::1";
  std::optional<TestServer> server;
  try {
    server.emplace(settings, [](const TestServer::Message&, TestServer::Peer&) { return Reply{}; });
  } catch (const std::exception& error) {
    GTEST_SKIP() << "no IPv6 here: " << error.what();
  }
  const Response response = connect(config(server->url())).send(get());
  EXPECT_EQ(response.status, 200) << response.error;
}

TEST_F(HttpTransportTest, TrustsItsAuthorityAndNoOther) {
  std::atomic<int> answered = 0;
  const auto handler = [&](const TestServer::Message&, TestServer::Peer&) {
    ++answered;
    return Reply{};
  };
  TestServer::Settings foreign;
  foreign.identity = make_identity(make_authority("another"), "server", "IP:127.0.0.1");
  TestServer another(foreign, handler);
  const Response unknown = connect(config(another.url())).send(post("{}"));
  EXPECT_EQ(unknown.status, 0);
  EXPECT_FALSE(unknown.sent);
  EXPECT_EQ(unknown.phase, Phase::connecting);

  TestServer::Settings elsewhere;
  elsewhere.identity = make_identity(authority_, "server", "DNS:elsewhere");
  TestServer misnamed(elsewhere, handler);
  EXPECT_EQ(connect(config(misnamed.url())).send(get()).status, 0);
  Config by_name = config(misnamed.url());
  by_name.tls_server_name = "elsewhere";
  EXPECT_EQ(connect(by_name).send(get()).status, 200);
  EXPECT_EQ(answered, 1);
}

TEST_F(HttpTransportTest, ShowsItsCertificateAndTakesANewOne) {
  TestServer::Settings settings = tls();
  settings.client_authority = authority_.certificate;
  std::vector<std::string> clients;
  TestServer server(settings, [&](const TestServer::Message& message, TestServer::Peer&) {
    clients.push_back(message.client);
    return Reply{};
  });
  const test::TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  const auto write = [&](const Identity& identity) {
    write_file_atomically(folder / "crt", identity.certificate);
    write_file_atomically(folder / "key", identity.key);
  };
  write(make_identity(authority_, "first", "DNS:x"));
  Config as_someone = config(server.url());
  as_someone.certificate.file = folder / "crt";
  as_someone.key.file = folder / "key";
  HttpTransport& transport = connect(as_someone);
  transport.send(get());
  transport.send(get());
  write(make_identity(authority_, "second", "DNS:x"));
  transport.send(get());
  // Half of a pair: the one before stays in force.
  write_file_atomically(folder / "crt", make_identity(authority_, "third", "DNS:x").certificate);
  EXPECT_EQ(transport.send(get()).status, 200);
  EXPECT_THAT(clients, ElementsAre("first", "first", "second", "second"));
}

TEST_F(HttpTransportTest, ARefusedTokenIsReadAgainAtOnce) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "token";
  write_file_atomically(file, "old\n");
  TestServer server(tls(), [&](const TestServer::Message& message, TestServer::Peer&) {
    const bool good = message.headers.at("authorization") == "Bearer new";
    if (!good) write_file_atomically(file, "new\n");
    return Reply{good ? 200 : 401, "", {}};
  });
  Config as_someone = config(server.url());
  as_someone.token.file = file;
  credentials_.emplace(as_someone, 3600s);
  transport_.emplace(*credentials_, registry_, HttpTransport::Settings());
  EXPECT_EQ(transport_->send(get()).status, 200);
}

TEST_F(HttpTransportTest, FollowsNoRedirect) {
  TestServer other(tls(), [](const TestServer::Message&, TestServer::Peer&) { return Reply{}; });
  TestServer server(tls(), [&](const TestServer::Message&, TestServer::Peer&) {
    return Reply{302, "", {{"Location", other.url() + "/"}}};
  });
  EXPECT_EQ(connect(config(server.url())).send(get()).status, 302);
  EXPECT_EQ(other.connections(), 0);
}

TEST_F(HttpTransportTest, CallsSurviveTheDeathOfEveryPooledConnection) {
  std::mutex mutex;
  std::condition_variable all_here;
  int here = 0;
  std::atomic<int> posts = 0;
  TestServer server(tls(), [&](const TestServer::Message& message, TestServer::Peer&) {
    if (message.method == "POST") ++posts;
    if (message.target == "/together") {
      std::unique_lock lock(mutex);
      ++here;
      all_here.notify_all();
      all_here.wait_for(lock, 20s, [&] { return here >= 8; });
    }
    return Reply{};
  });
  HttpTransport::Settings settings;
  settings.in_flight = 8;
  HttpTransport& transport = connect(config(server.url()), settings);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { transport.send(get("/together")); });
  }
  EXPECT_EQ(server.connections(), 8);
  server.close_connections();
  for (int i = 0; i < 8; ++i) {
    const Response response = transport.send(post("{}"));
    EXPECT_EQ(response.status, 200) << response.error;
  }
  EXPECT_EQ(posts, 8);
}

TEST_F(HttpTransportTest, NobodyThereIsNotSent) {
  unsigned short port = 0;
  {
    TestServer server(tls(), [](const TestServer::Message&, TestServer::Peer&) { return Reply{}; });
    port = server.port();
  }
  const std::string host = "127.0.0.1:" + std::to_string(port);
  const Response response = connect(config("https://" + host)).send(post("{}"));
  EXPECT_EQ(response.status, 0);
  EXPECT_FALSE(response.sent);
  EXPECT_EQ(response.phase, Phase::connecting);
  EXPECT_THAT(response.error, HasSubstr("no connection to " + host));
  EXPECT_THAT(metrics(), HasSubstr("code=\"<error>\""));
}

TEST_F(HttpTransportTest, SaysWhetherTheServerMayHaveSeenTheCall) {
  TestServer server(tls(), [](const TestServer::Message& message, TestServer::Peer& peer) {
    if (message.target == "/half") peer.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    return std::nullopt;
  });
  HttpTransport& transport = connect(config(server.url()));
  const Response silent = transport.send(post("{}"));
  EXPECT_EQ(silent.status, 0);
  EXPECT_TRUE(silent.sent);
  EXPECT_EQ(silent.phase, Phase::answering);
  const Response half = transport.send(get("/half"));
  EXPECT_EQ(half.status, 0);
  EXPECT_EQ(half.phase, Phase::reading);
  EXPECT_THAT(half.error, HasSubstr("broke off"));
}

// A peer that says a little all the time would hold a client for ever that counts from the last
// word.
TEST_F(HttpTransportTest, ADeadlineIsForTheWholeCall) {
  std::atomic<bool> done = false;
  TestServer server(tls(), [&](const TestServer::Message&, TestServer::Peer& peer) {
    peer.begin();
    while (!done && peer.chunk("drip")) std::this_thread::sleep_for(10ms);
    return std::nullopt;
  });
  Request request = get();
  request.deadline = 300ms;
  const Response response = connect(config(server.url())).send(request);
  EXPECT_EQ(response.status, 0);
  EXPECT_THAT(response.error, HasSubstr("within 300 ms"));
  done = true;
}

TEST_F(HttpTransportTest, AnAnswerHasALimit) {
  TestServer server(tls(), [](const TestServer::Message&, TestServer::Peer&) {
    return Reply{200, std::string(100'000, 'x'), {}};
  });
  HttpTransport::Settings settings;
  settings.largest_answer = 99'999;
  const Response response = connect(config(server.url()), settings).send(get());
  EXPECT_EQ(response.status, 0);
  EXPECT_THAT(response.error, HasSubstr("at most 99999 bytes"));
}

TEST_F(HttpTransportTest, NoMoreCallsAtATimeThanAllowed) {
  std::mutex mutex;
  int now = 0, most = 0;
  TestServer server(tls(), [&](const TestServer::Message&, TestServer::Peer&) {
    {
      const std::lock_guard lock(mutex);
      most = std::max(most, ++now);
    }
    std::this_thread::sleep_for(5ms);
    const std::lock_guard lock(mutex);
    --now;
    return Reply{};
  });
  HttpTransport::Settings settings;
  settings.in_flight = 3;
  HttpTransport& transport = connect(config(server.url()), settings);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([&] { EXPECT_EQ(transport.send(get()).status, 200); });
    }
  }
  EXPECT_LE(most, 3);
  EXPECT_LE(server.connections(), 3);
}

TEST_F(HttpTransportTest, WaitingForATurnEndsByTheDeadline) {
  std::promise<void> leave;
  const std::shared_future<void> left = leave.get_future().share();
  TestServer server(tls(), [&](const TestServer::Message&, TestServer::Peer&) {
    left.wait();
    return Reply{};
  });
  HttpTransport::Settings settings;
  settings.in_flight = 1;
  HttpTransport& transport = connect(config(server.url()), settings);
  std::jthread first([&] { transport.send(get()); });
  while (server.connections() == 0) std::this_thread::sleep_for(1ms);
  Request request = get();
  request.deadline = 100ms;
  const Response response = transport.send(request);
  EXPECT_EQ(response.phase, Phase::waiting);
  EXPECT_FALSE(response.sent);
  EXPECT_THAT(response.error, HasSubstr("no turn within 100 ms"));
  leave.set_value();
}

TEST_F(HttpTransportTest, StreamsLinesAsTheyComeHoweverTheyAreCut) {
  std::atomic<int> seen = 0;
  TestServer server(tls(), [&](const TestServer::Message&, TestServer::Peer& peer) {
    peer.begin();
    peer.chunk("one\n");
    for (int i = 0; i < 2000 && seen < 1; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(seen, 1);  // it did not wait for more
    peer.chunk("t");
    peer.chunk("wo\nthree\n\nfo");
    peer.chunk("ur\nnever ended");
    peer.end();
    return std::nullopt;
  });
  std::vector<std::string> lines;
  const std::thread::id here = std::this_thread::get_id();
  const StreamEnd end = connect(config(server.url()))
                            .stream(get(),
                                    [&](std::string_view line) {
                                      EXPECT_EQ(std::this_thread::get_id(), here);
                                      lines.emplace_back(line);
                                      ++seen;
                                    },
                                    {});
  EXPECT_EQ(end.reason, StreamEnd::Reason::closed) << end.error;
  EXPECT_THAT(lines, ElementsAre("one", "two", "three", "four"));
}

TEST_F(HttpTransportTest, AStreamThatIsRefusedSaysSo) {
  TestServer server(tls(), [](const TestServer::Message&, TestServer::Peer&) {
    return Reply{410, "too old", {{"Retry-After", "3"}}};
  });
  const StreamEnd end =
      connect(config(server.url())).stream(get(), [](std::string_view) { ADD_FAILURE(); }, {});
  EXPECT_EQ(end.reason, StreamEnd::Reason::refused);
  EXPECT_EQ(end.status, 410);
  EXPECT_EQ(end.body, "too old");
  EXPECT_EQ(end.retry_after, 3s);
}

TEST_F(HttpTransportTest, AStreamIsCancelledFromAnotherThread) {
  TestServer server(tls(), [](const TestServer::Message&, TestServer::Peer& peer) {
    peer.begin();
    while (peer.chunk("tick\n")) std::this_thread::sleep_for(1ms);
    return std::nullopt;
  });
  HttpTransport& transport = connect(config(server.url()));
  for (int i = 0; i < 20; ++i) {
    std::stop_source stop;
    std::jthread canceller;
    const StreamEnd end = transport.stream(
        get(),
        [&](std::string_view) {
          if (!canceller.joinable()) canceller = std::jthread([&] { stop.request_stop(); });
        },
        stop.get_token());
    EXPECT_EQ(end.reason, StreamEnd::Reason::cancelled) << end.error;
  }
}

TEST_F(HttpTransportTest, AnExceptionOfTheReaderEndsItsStream) {
  std::promise<void> gone;
  TestServer server(tls(), [&](const TestServer::Message&, TestServer::Peer& peer) {
    peer.begin();
    while (peer.chunk("tick\n")) std::this_thread::sleep_for(1ms);
    gone.set_value();
    return std::nullopt;
  });
  EXPECT_THROW(connect(config(server.url()))
                   .stream(get(), [](std::string_view) { throw Unavailable("unreadable"); }, {}),
               Unavailable);
  EXPECT_EQ(gone.get_future().wait_for(20s), std::future_status::ready);
}

// What the reader has not taken stays in the server: memory is bounded.
TEST_F(HttpTransportTest, ASlowReaderHoldsUpTheServer) {
  std::atomic<size_t> written = 0;
  TestServer server(tls(), [&](const TestServer::Message&, TestServer::Peer& peer) {
    peer.begin();
    const std::string line = std::string(64 * 1024 - 1, 'x') + "\n";
    while (peer.chunk(line)) written += line.size();
    return std::nullopt;
  });
  std::stop_source stop;
  size_t before = 1;
  const StreamEnd end = connect(config(server.url()))
                            .stream(
                                get(),
                                [&](std::string_view) {
                                  while (written != std::exchange(before, written))
                                    std::this_thread::sleep_for(200ms);
                                  EXPECT_LT(written, 64U * 1024 * 1024);
                                  stop.request_stop();
                                },
                                stop.get_token());
  EXPECT_EQ(end.reason, StreamEnd::Reason::cancelled);
}

TEST_F(HttpTransportTest, AStreamThatBreaksOrFallsSilentEnds) {
  std::atomic<bool> done = false;
  TestServer server(tls(), [&](const TestServer::Message& message, TestServer::Peer& peer) {
    peer.begin();
    peer.chunk("one\n");
    while (message.target == "/silent" && !done) std::this_thread::sleep_for(1ms);
    return std::nullopt;
  });
  HttpTransport::Settings settings;
  settings.silence = 1s;
  HttpTransport& transport = connect(config(server.url()), settings);
  int lines = 0;
  const auto count = [&](std::string_view) { ++lines; };
  const StreamEnd broken = transport.stream(get("/broken"), count, {});
  EXPECT_EQ(broken.reason, StreamEnd::Reason::lost);
  EXPECT_THAT(broken.error, HasSubstr("broke off"));
  const StreamEnd silent = transport.stream(get("/silent"), count, {});
  EXPECT_EQ(silent.reason, StreamEnd::Reason::silent);
  EXPECT_THAT(silent.error, HasSubstr("for 1 s"));
  EXPECT_EQ(lines, 2);
  done = true;
}

TEST_F(HttpTransportTest, ALineHasALimit) {
  TestServer server(tls(), [](const TestServer::Message&, TestServer::Peer& peer) {
    peer.begin();
    while (peer.chunk(std::string(1000, 'x'))) {
    }
    return std::nullopt;
  });
  HttpTransport::Settings settings;
  settings.longest_line = 10'000;
  const StreamEnd end = connect(config(server.url()), settings)
                            .stream(get(), [](std::string_view) { ADD_FAILURE(); }, {});
  EXPECT_EQ(end.reason, StreamEnd::Reason::lost);
  EXPECT_THAT(end.error, HasSubstr("at most 10000 bytes"));
}

TEST_F(HttpTransportTest, ShuttingDownEndsEverything) {
  std::atomic<bool> done = false;
  TestServer server(tls(), [&](const TestServer::Message&, TestServer::Peer& peer) {
    peer.begin();
    while (!done && peer.chunk("tick\n")) std::this_thread::sleep_for(1ms);
    return std::nullopt;
  });
  HttpTransport& transport = connect(config(server.url()));
  std::vector<std::jthread> threads;
  std::atomic<int> begun = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      ++begun;
      const StreamEnd end = transport.stream(get(), [](std::string_view) {}, {});
      EXPECT_EQ(end.reason, StreamEnd::Reason::cancelled) << end.error;
    });
    threads.emplace_back([&] {
      ++begun;
      EXPECT_EQ(transport.send(get()).status, 0);
    });
  }
  while (begun < 8 || server.connections() < 8) std::this_thread::sleep_for(1ms);
  transport.shut_down();
  threads.clear();
  const Response after = transport.send(get());
  EXPECT_EQ(after.error, "shutting down");
  EXPECT_FALSE(after.sent);
  transport_.reset();
  done = true;
}

TEST_F(HttpTransportTest, SaysWhatIsWrongWithItsConfiguration) {
  EXPECT_THROW(connect(config("nonsense")), Invalid);
  EXPECT_THROW(connect(config("ftp://host")), Invalid);
  Config no_pem = config("https://127.0.0.1:1");
  no_pem.authority.text = "no PEM";
  EXPECT_THROW(connect(no_pem), Invalid);
  Config mixed = config("https://127.0.0.1:1");
  mixed.certificate.text = server_.certificate;
  mixed.key.text = authority_.key;
  EXPECT_THROW(connect(mixed), Invalid);
}

}  // namespace
}  // namespace muster::kube
