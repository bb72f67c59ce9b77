#include "tests/unit/operator/cmd/http_api.h"

#include <cpprest/base_uri.h>

#include <thread>

#include "operator/kube/pods/names.h"

namespace muster::cmd {

namespace {

constexpr std::chrono::milliseconds kGlance(5);

kube::Request to_request(const HttpApi::Message& message) {
  kube::Request request;
  for (const kube::Method method : {kube::Method::get, kube::Method::post, kube::Method::put,
                                    kube::Method::patch, kube::Method::remove}) {
    if (message.method == kube::name_of(method)) request.method = method;
  }
  const web::uri target(message.target);
  request.path = web::uri::decode(target.path());
  for (const auto& [key, value] : web::uri::split_query(target.query())) {
    request.query.emplace_back(web::uri::decode(key), web::uri::decode(value));
  }
  const auto type = message.headers.find("content-type");
  if (type != message.headers.end()) request.content_type = type->second;
  request.body = message.body;
  return request;
}

std::string query_of(const kube::Request& request, const std::string& key) {
  for (const auto& [name, value] : request.query) {
    if (name == key) return value;
  }
  return "";
}

}  // namespace

HttpApi::HttpApi(Intercept intercept)
    : intercept_(std::move(intercept)),
      http_({}, [this](const Message& message, kube::TestServer::Peer& peer) {
        return handle(message, peer);
      }) {}

std::optional<HttpApi::Reply> HttpApi::handle(const Message& message,
                                              kube::TestServer::Peer& peer) {
  const kube::Request request = to_request(message);
  if (query_of(request, "watch") == "true") {
    const bool permitted =
        with([&](auto& server) { return !server.permits || server.permits(request); });
    if (!permitted) return Reply{403, "{}", {}};
    watch(request, peer);
    return std::nullopt;
  }
  if (intercept_) {
    if (auto reply = intercept_(message)) return reply;
  }
  const kube::Response response = with([&](auto& server) { return server.send(request); });
  return Reply{response.status, response.body, {}};
}

void HttpApi::watch(const kube::Request& request, kube::TestServer::Peer& peer) {
  const std::string plural = request.path.substr(request.path.rfind('/') + 1);
  uint64_t seen = std::stoull(query_of(request, "resourceVersion"));
  peer.begin();
  // An empty line is how it is noticed that the client has gone.
  for (bool listens = true; listens; std::this_thread::sleep_for(kGlance)) {
    listens = peer.chunk("\n");
    for (const std::string& line :
         with([&](auto& server) { return server.watch_lines(plural, seen); })) {
      const Json object = Json::parse(line)["object"];
      seen = std::stoull(object["metadata"]["resourceVersion"].get<std::string>());
      listens = listens && peer.chunk(line + "\n");
    }
  }
}

int HttpApi::count(const std::string& call) {
  return with([&](auto& server) { return server.count(call); });
}

void HttpApi::submit(const std::string& name) {
  const Json role = Json::parse(R"({"replicas": 1, "restartPolicy": "OnFailure",
    "template": {"spec": {"containers": [{"name": "tensorflow", "image": "tf"}]}}})");
  const Json roles = {{"ps", role}, {"chief", role}, {"worker", role}, {"evaluator", role}};
  with([&](auto& server) {
    server.put({{"apiVersion", "muster.dev/v1alpha1"},
                {"kind", "TrainingJob"},
                {"metadata", {{"name", name}, {"namespace", "lab"}, {"generation", 1}}},
                {"spec", {{"replicaSpecs", roles}}}});
  });
}

std::vector<std::string> HttpApi::pods(const std::string& role) {
  std::vector<std::string> names;
  for (const Json& pod : with([](auto& server) { return server.objects("pods"); })) {
    if (pod["metadata"]["labels"][kube::kRoleLabel] == role) {
      names.push_back(pod["metadata"]["name"]);
    }
  }
  return names;
}

}  // namespace muster::cmd
