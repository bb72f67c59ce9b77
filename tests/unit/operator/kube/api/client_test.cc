#include "operator/kube/api/client.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/unit/operator/kube/fake_transport.h"

namespace muster::kube {
namespace {

const Json kPodObject = {{"metadata", {{"name", "p"}, {"namespace", "team"}}}};

// The one request that `use` makes of a client, answered with an empty object.
Request request_of(const std::function<void(const Client&)>& use) {
  FakeTransport transport([](const Request&) { return answer(200, "{}"); });
  use(Client(transport));
  EXPECT_EQ(transport.requests().size(), 1U);
  return transport.requests().at(0);
}

TEST(Resource, PathsAreThoseOfTheApi) {
  EXPECT_EQ(pods().path("team", "a b/c"), "/api/v1/namespaces/team/pods/a%20b%2Fc");
  EXPECT_EQ(pods().path(""), "/api/v1/pods");
  EXPECT_EQ(training_jobs().path("team", "mnist", "status"),
            "/apis/muster.dev/v1alpha1/namespaces/team/trainingjobs/mnist/status");
  EXPECT_EQ(training_jobs().api_version(), "muster.dev/v1alpha1");
}

TEST(Client, CreatesInTheNamespaceOfTheObject) {
  WriteOptions options;
  options.dry_run = true;
  options.strict = true;
  const Request request =
      request_of([&](const Client& client) { client.create(pods(), kPodObject, options); });
  EXPECT_EQ(request.method, Method::post);
  EXPECT_EQ(request.path, "/api/v1/namespaces/team/pods");
  EXPECT_EQ(request.content_type, "application/json");
  EXPECT_EQ(Json::parse(request.body), kPodObject);
  EXPECT_EQ(query(request, "dryRun"), "All");
  EXPECT_EQ(query(request, "fieldValidation"), "Strict");
  EXPECT_EQ(query(request, "fieldManager"), "muster-operator");
}

TEST(Client, TextThatIsNoUtf8IsSentAllTheSame) {
  const Json object = {{"metadata", {{"namespace", "team"}}}, {"message", "broken \xff here"}};
  const Request request =
      request_of([&](const Client& client) { client.create(events(), object); });
  EXPECT_EQ(Json::parse(request.body)["message"], "broken \xEF\xBF\xBD here");
}

TEST(Client, UpdatesASubresource) {
  WriteOptions options;
  options.subresource = "status";
  const Request request = request_of(
      [&](const Client& client) { client.update(training_jobs(), kPodObject, options); });
  EXPECT_EQ(request.method, Method::put);
  EXPECT_EQ(request.path, "/apis/muster.dev/v1alpha1/namespaces/team/trainingjobs/p/status");
  EXPECT_EQ(query(request, "fieldValidation"), "Ignore");
}

TEST(Client, PatchesCarryTheirPreconditions) {
  const ObjectName name{"team", "p"};
  const Preconditions preconditions{"u1", "42"};
  const Request merge = request_of([&](const Client& client) {
    client.patch(pods(), name, PatchKind::merge, {{"metadata", {{"labels", {{"a", nullptr}}}}}},
                 preconditions);
  });
  EXPECT_EQ(merge.content_type, "application/merge-patch+json");
  EXPECT_EQ(Json::parse(merge.body),
            Json::parse(R"({"metadata":{"labels":{"a":null},"uid":"u1","resourceVersion":"42"}})"));
  const Request json = request_of([&](const Client& client) {
    client.patch(pods(), name, PatchKind::json,
                 Json::array({{{"op", "remove"}, {"path", "/metadata/finalizers"}}}),
                 preconditions);
  });
  EXPECT_EQ(json.content_type, "application/json-patch+json");
  EXPECT_EQ(Json::parse(json.body),
            Json::parse(R"([{"op":"test","path":"/metadata/uid","value":"u1"},
                            {"op":"test","path":"/metadata/resourceVersion","value":"42"},
                            {"op":"remove","path":"/metadata/finalizers"}])"));
  WriteOptions force;
  force.force = true;
  const Request apply = request_of([&](const Client& client) {
    client.patch(pods(), name, PatchKind::apply, kPodObject, {}, force);
  });
  EXPECT_EQ(apply.content_type, "application/apply-patch+yaml");
  EXPECT_EQ(query(apply, "force"), "true");
}

TEST(Client, APreconditionThatDoesNotHoldIsAConflictHoweverTheServerSaysIt) {
  struct Case {
    PatchKind kind;
    const char* uid;
    const char* causes;
    int code;
  };
  const char* const of_uid = R"([{"field":"metadata.uid","message":"immutable"}])";
  const char* const of_image = R"([{"field":"spec.containers[0].image"}])";
  for (const Case& one :
       {Case{PatchKind::merge, "u1", of_uid, 409}, Case{PatchKind::merge, "u1", of_image, 422},
        Case{PatchKind::merge, "", of_uid, 422}, Case{PatchKind::merge, "u1", "[]", 422},
        Case{PatchKind::json, "u1", "[]", 409}, Case{PatchKind::json, "u1", of_image, 422},
        Case{PatchKind::json, "", "[]", 422}}) {
    FakeTransport transport([&](const Request&) {
      return answer(422, R"({"kind":"Status","code":422,"reason":"Invalid","message":"no",)"
                         R"("details":{"causes":)" +
                             std::string(one.causes) + "}}");
    });
    try {
      Client(transport).patch(
          pods(), {"team", "p"}, one.kind,
          one.kind == PatchKind::json ? Json(Json::array()) : Json(Json::object()), {one.uid, ""});
      ADD_FAILURE();
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status().code, one.code) << one.causes;
      EXPECT_EQ(error.status().conflict(), one.code == 409);
    }
  }
}

TEST(Client, RemovesWhatWasMeantAndNothingElse) {
  Client::RemoveOptions options;
  options.preconditions = {"u1", "42"};
  options.grace_seconds = 0;
  const Request request = request_of([&](const Client& client) {
    EXPECT_TRUE(client.remove(pods(), {"team", "p"}, options));
  });
  EXPECT_EQ(request.method, Method::remove);
  EXPECT_EQ(
      Json::parse(request.body),
      Json::parse(R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background",
              "gracePeriodSeconds":0,"preconditions":{"uid":"u1","resourceVersion":"42"}})"));
}

TEST(Client, WhatIsNotThereIsNoErrorButAnUnknownKindIs) {
  FakeTransport missing([](const Request&) { return refusal(404, "NotFound", "no such pod"); });
  const Client client(missing);
  EXPECT_EQ(client.get(pods(), {"team", "p"}), std::nullopt);
  EXPECT_FALSE(client.remove(pods(), {"team", "p"}, {}));
  EXPECT_THROW(client.update(pods(), kPodObject), ApiUnavailable);
  FakeTransport unknown([](const Request&) { return answer(404, "404 page not found\n"); });
  EXPECT_THROW(Client(unknown).get(pods(), {"team", "p"}), ApiUnavailable);
}

TEST(Client, ListsPageByPage) {
  FakeTransport transport([](const Request& request) {
    if (query(request, "continue").empty()) {
      return answer(200, R"({"metadata":{"continue":"two"},"items":[{"a":1},{"a":2}]})");
    }
    return answer(200, R"({"metadata":{},"items":[{"a":3}]})");
  });
  ListOptions options;
  options.label_selector = "x=y";
  options.limit = 2;
  EXPECT_EQ(Client(transport).list(pods(), "team", options).size(), 3U);
  ASSERT_EQ(transport.requests().size(), 2U);
  EXPECT_EQ(query(transport.requests()[1], "continue"), "two");
  EXPECT_EQ(query(transport.requests()[1], "limit"), "2");
  EXPECT_EQ(query(transport.requests()[1], "labelSelector"), "x=y");
}

TEST(Client, ErrorsAreOfTheirKindAndSayWhatTheServerSaid) {
  struct Case {
    int status;
    const char* reason;
    bool lasts;
  };
  for (const Case& one : {Case{400, "BadRequest", true}, Case{401, "Unauthorized", false},
                          Case{403, "Forbidden", false}, Case{405, "MethodNotAllowed", true},
                          Case{409, "AlreadyExists", false}, Case{409, "Conflict", false},
                          Case{410, "Expired", false}, Case{413, "RequestEntityTooLarge", true},
                          Case{415, "UnsupportedMediaType", true}, Case{422, "Invalid", true},
                          Case{429, "TooManyRequests", false}, Case{500, "InternalError", false},
                          Case{503, "ServiceUnavailable", false}, Case{302, "Found", true}}) {
    FakeTransport transport(
        [&](const Request&) { return refusal(one.status, one.reason, "the words"); });
    const Client client(transport);
    try {
      client.create(pods(), kPodObject);
      ADD_FAILURE() << one.status;
    } catch (const ApiInvalid& error) {
      EXPECT_TRUE(one.lasts) << one.status;
      EXPECT_EQ(error.status().reason, one.reason);
    } catch (const ApiUnavailable& error) {
      EXPECT_FALSE(one.lasts) << one.status;
      EXPECT_EQ(error.status().code, one.status);
      EXPECT_EQ(error.what(), "POST /api/v1/namespaces/team/pods: " + std::to_string(one.status) +
                                  " " + one.reason + ": the words");
    }
  }
}

TEST(Client, WhoeverCatchesTheTwoKindsCatchesTheApis) {
  FakeTransport transport([](const Request&) { return refusal(422, "Invalid", "no"); });
  EXPECT_THROW(Client(transport).create(pods(), kPodObject), Invalid);
  try {
    Client(transport).create(pods(), kPodObject);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status().code, 422);
  }
}

TEST(Client, AnAnswerThatIsNoObjectIsAnError) {
  for (const char* body : {"", "[]", "<html>gateway</html>", "{\"cut\":"}) {
    FakeTransport transport([&](const Request&) { return answer(200, body); });
    EXPECT_THROW(Client(transport).get(pods(), {"team", "p"}), ApiUnavailable) << body;
  }
}

TEST(Client, NoAnswerSaysHowFarTheCallCame) {
  FakeTransport transport([](const Request&) {
    Response response;
    response.sent = false;
    response.phase = Phase::connecting;
    response.error = "no connection to host:1: refused";
    return response;
  });
  try {
    Client(transport).create(pods(), kPodObject);
    ADD_FAILURE();
  } catch (const ApiUnavailable& error) {
    EXPECT_FALSE(error.status().sent);
    EXPECT_EQ(error.status().code, 0);
    EXPECT_STREQ(error.what(),
                 "POST /api/v1/namespaces/team/pods: no connection to host:1: refused");
  }
}

TEST(Client, ComesAgainWhenTheServerSaysWhen) {
  int calls = 0;
  FakeTransport transport([&](const Request&) {
    if (++calls > 2) return answer(201, "{}");
    Response busy = refusal(calls == 1 ? 429 : 503, "Busy", "later");
    busy.retry_after = std::chrono::seconds(0);
    return busy;
  });
  EXPECT_EQ(Client(transport).create(pods(), kPodObject).text, "{}");
  EXPECT_EQ(calls, 3);
}

TEST(Client, DoesNotWaitBeyondItsDeadline) {
  FakeTransport transport([](const Request&) {
    Response busy = refusal(429, "TooManyRequests", "later");
    busy.retry_after = std::chrono::seconds(3600);
    return busy;
  });
  try {
    Client(transport).create(pods(), kPodObject);
    ADD_FAILURE();
  } catch (const ApiUnavailable& error) {
    EXPECT_EQ(error.status().retry_after, std::chrono::seconds(3600));
  }
  EXPECT_EQ(transport.requests().size(), 1U);
}

TEST(Client, EndsItsPauseWhenTheTransportIsShutDown) {
  std::promise<void> asked;
  FakeTransport transport([&](const Request&) {
    Response busy = refusal(429, "TooManyRequests", "later");
    busy.retry_after = std::chrono::hours(1);
    asked.set_value();
    return busy;
  });
  const auto created = std::async(std::launch::async, [&] {
    const Client patient(transport, {std::chrono::hours(2)});
    EXPECT_THROW(patient.create(pods(), kPodObject), ApiUnavailable);
  });
  asked.get_future().wait();
  transport.shut_down();
  created.wait();
  EXPECT_EQ(transport.requests().size(), 1U);
}

}  // namespace
}  // namespace muster::kube
