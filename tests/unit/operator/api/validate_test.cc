#include "operator/api/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "common/error.h"
#include "operator/api/rules.h"
#include "operator/api/schema.h"
#include "operator/api/training_job.h"

namespace muster::api {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Sets = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kTraining = R"(
apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: mnist}
spec:
  training:
    model: {name: mnist-mlp}
    data:
      train: {idx: {images: i, labels: l}}
      test: {idx: {images: i, labels: l}}
    epochs: 2
  replicaSpecs:
    ps: {}
    chief: {}
    worker: {replicas: 2}
    evaluator: {}
)";

constexpr const char* kOwnImage = R"(
apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: own}
spec:
  replicaSpecs:
    worker:
      replicas: 2
      template:
        spec:
          containers: [{name: tensorflow, command: [python3, train.py], env: [{name: A, value: b}]}]
)";

constexpr const char* kCollective = R"(
apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: collective}
spec:
  strategy: collective
  training:
    model: {name: mnist-mlp}
    data: {train: {idx: {images: i, labels: l}}}
    epochs: 2
  replicaSpecs:
    chief: {}
    worker: {replicas: 2}
)";

Document with(const char* manifest, const Sets& sets) {
  Document document = Document::parse(manifest, "job.yaml");
  for (const auto& [path, value] : sets) document.set(path, value);
  return document;
}

std::vector<std::string> problems_with(const char* manifest, const Sets& sets) {
  Document document = with(manifest, sets);
  std::vector<std::string> texts;
  for (const Problem& problem : validate(document)) texts.push_back(problem.text());
  return texts;
}

TEST(Validate, AcceptsAJobAndFillsItsDefaults) {
  Document document = with(kTraining, {});
  for (const Problem& problem : validate(document)) ADD_FAILURE() << problem.text();
  const Json& spec = document.value()["spec"];
  EXPECT_EQ(spec["runPolicy"]["backoffLimit"], 6);
  EXPECT_EQ(spec["replicaSpecs"]["ps"]["replicas"], 1);
  EXPECT_EQ(spec["storage"]["mountPath"], "/muster");
  EXPECT_EQ(spec["training"]["batchSize"], 32);
  EXPECT_FALSE(spec["training"].contains("steps"));
  EXPECT_TRUE(problems_with(kOwnImage, {}).empty());
}

TEST(Validate, ASecondPassChangesNothing) {
  for (const char* manifest : {kTraining, kOwnImage}) {
    Document document = with(manifest, {});
    ASSERT_TRUE(validate(document).empty());
    const std::string once = document.value().dump();
    ASSERT_TRUE(validate(document).empty());
    EXPECT_EQ(document.value().dump(), once);
  }
}

struct Case {
  Sets sets;
  const char* text;
};

void expect_each_refused(const char* manifest, const std::vector<Case>& cases) {
  for (const Case& item : cases) {
    const auto problems = problems_with(manifest, item.sets);
    EXPECT_EQ(problems.size(), 1u) << item.text << ": " << testing::PrintToString(problems);
    EXPECT_THAT(problems, Contains(HasSubstr(item.text)));
  }
}

TEST(Validate, RefusesWhatTheSchemaForbids) {
  expect_each_refused(
      kTraining,
      {
          {{{"apiVersion", "muster.dev/v1alhpa1"}}, "did you mean muster.dev/v1alpha1?"},
          {{{"kind", "TrainJob"}}, "did you mean TrainingJob?"},
          {{{"metadata.name", "Mnist"}},
           "metadata.name: expected a string of at most 40 characters matching"},
          {{{"metadata.name", "1st"}}, "metadata.name"},
          {{{"metadata.name", "a-"}}, "metadata.name"},
          {{{"metadata.name", std::string(41, 'a')}}, "metadata.name"},
          {{{"metadata.nmae", "x"}}, "did you mean name?"},
          {{{"metadata.labels", "{a: 1}"}},
           "metadata.labels.a: expected a string, found 1 (an integer)"},
          {{{"spec.replicaSpecs.wroker", "{}"}}, "did you mean worker?"},
          {{{"spec.replicaSpecs.worker.replica", "2"}}, "did you mean replicas?"},
          {{{"spec.replicaSpecs.worker.replicas", "-1"}}, "an integer from 0 to 1000, found -1"},
          {{{"spec.replicaSpecs.worker.replication", "2"}}, "the unknown field \"replication\""},
          {{{"spec.replicaSpecs.chief.replicas", "2"}},
           "spec.replicaSpecs.chief.replicas: expected 1, found 2"},
          {{{"spec.replicaSpecs.evaluator.replicas", "2"}}, "spec.replicaSpecs.evaluator.replicas"},
          {{{"spec.replicaSpecs.worker.restartPolicy", "Always"}}, "one of OnFailure, Never"},
          {{{"spec.strategy", "parameterserver"}}, "did you mean parameterServer?"},
          {{{"spec.storage.mountPath", "muster"}}, "spec.storage.mountPath"},
          {{{"spec.storage.volume", "{a: 1, b: 2}"}}, "spec.storage.volume"},
          {{{"spec.runPolicy.cleanPodPolicy", "Runing"}}, "did you mean Running?"},
          {{{"spec.runPolicy.backoffLimit", "-1"}}, "spec.runPolicy.backoffLimit"},
          {{{"spec.failurePolicy.rules", "[{onExitCodes: [0], action: FailJob}]"}},
           "onExitCodes[0]"},
          {{{"spec.failurePolicy.rules", "[{onExitCodes: [1]}]"}}, "rules[0].action"},
          {{{"spec.training.learningRate", "1"}},
           "spec.training.learningRate: did you mean learningRateSchedule? Expected one of the "
           "fields"},
          {{{"spec.training.batchSize", "0"}}, "job.yaml (--set): spec.training.batchSize"},
          {{{"spec.training.epochs", "null"}},
           "spec.training: expected exactly one of epochs, steps"},
      });
}

TEST(Validate, RefusesWhatTheRulesForbid) {
  expect_each_refused(
      kTraining,
      {
          {{{"spec.replicaSpecs.master", "{}"}},
           "spec.replicaSpecs.master: expected chief or master, which are two names of one role, "
           "found both"},
          {{{"spec.replicaSpecs", "{ps: {}}"}}, "at least one replica that trains"},
          {{{"spec.replicaSpecs", "{ps: {}, worker: {replicas: 0}}"}},
           "at least one replica that trains"},
          {{{"spec.replicaSpecs", "{chief: {}, worker: {}}"}},
           "at least one ps where several members train by parameter servers, found no ps for 2 "
           "members"},
          {{{"spec.replicaSpecs.ps.replicas", "0"}}, "found no ps for 3 members"},
          {{{"spec.training.data.test", "null"}}, "validation or test among spec.training.data"},
          {{{"spec.replicaSpecs", "{ps: {}, worker: {}}"},
            {"spec.successPolicy.decidedBy", "chief"}},
           "found chief, and no chief"},
          {{{"spec.replicaSpecs", "{ps: {}, chief: {}}"},
            {"spec.successPolicy.decidedBy", "workerZero"}},
           "found workerZero, and no workers"},
          {{{"spec.failurePolicy.rules", "[{action: FailJob}]"}},
           "onExitCodes or onReason in each rule"},
          {{{"spec.failurePolicy.rules", "[{onExitCodes: [1], roles: [worker], action: FailJob}]"},
            {"spec.replicaSpecs", "{chief: {}}"}},
           "roles that the job has, found worker"},
          {{{"spec.schedulingPolicy.minAvailable", "6"}}, "found 6 of 5 replicas"},
          {{{"spec.schedulingPolicy.gang", "volcano"}, {"spec.startupPolicy.order", "InOrder"}},
           "spec.schedulingPolicy.minAvailable: expected no more than the role has that "
           "startupPolicy InOrder starts first, for the others wait until it is ready, found 5 "
           "replicas, of which 1 start first"},
          {{{"spec.replicaSpecs.chief.template", "{spec: {containers: [{name: a}, {name: b}]}}"}},
           "to be named trainer or tensorflow"},
          {{{"spec.replicaSpecs.chief.template",
             "{spec: {containers: [{name: trainer, env: [{name: TF_CONFIG, value: x}]}]}}"}},
           "spec.replicaSpecs.chief.template.spec.containers[0].env[0].name: expected a variable "
           "other than TF_CONFIG"},
          {{{"spec.replicaSpecs.chief.template",
             "{spec: {containers: [{name: trainer, env: [{name: MUSTER_ROLE, value: x}]}]}}"}},
           "'MUSTER_ROLE'"},
      });
}

TEST(Validate, AnElasticJobHasItsWorkersBetweenItsLimits) {
  EXPECT_TRUE(
      problems_with(kCollective, {{"spec.elastic", "{minReplicas: 1, maxReplicas: 2}"}}).empty());
  expect_each_refused(kCollective,
                      {
                          {{{"spec.elastic", "{minReplicas: 3, maxReplicas: 2}"},
                            {"spec.replicaSpecs.worker.replicas", "3"}},
                           "spec.elastic.minReplicas"},
                          {{{"spec.elastic", "{minReplicas: 3, maxReplicas: 4}"}},
                           "workers, between minReplicas and maxReplicas, found 2, where "
                           "3 to 4 may be"},
                          {{{"spec.elastic", "{minReplicas: 1, maxReplicas: 4}"},
                            {"spec.replicaSpecs", "{chief: {}}"}},
                           "found no workers"},
                      });
}

TEST(Validate, OnlyCollectivesOfOursAreElastic) {
  const std::pair<std::string, std::string> elastic{"spec.elastic",
                                                    "{minReplicas: 1, maxReplicas: 4}"};
  const std::string expected =
      "spec.elastic: expected an elastic group only with the strategy collective and "
      "spec.training, found ";
  EXPECT_THAT(problems_with(kTraining, {elastic}),
              ElementsAre(HasSubstr(expected + "the strategy parameterServer")));
  EXPECT_THAT(problems_with(kOwnImage, {elastic, {"spec.strategy", "collective"}}),
              ElementsAre(HasSubstr(expected + "no spec.training")));
  EXPECT_TRUE(problems_with(kTraining, {{"spec.elastic", "null"}}).empty());
}

TEST(Validate, ACollectiveIsInStep) {
  const auto expect_refused = [](const std::string& synchronization, const std::string& found) {
    EXPECT_THAT(problems_with(kCollective, {{"spec.training.synchronization", synchronization}}),
                ElementsAre(HasSubstr("expected for the strategy collective the policy sync, "
                                      "without backup workers, found " +
                                      found)));
  };
  expect_refused("{policy: async, wire: bfloat16}", "the policy async");
  expect_refused("{backupWorkers: 1, wire: bfloat16}", "backup workers");
  EXPECT_TRUE(
      problems_with(kCollective, {{"spec.training.synchronization", "{wire: bfloat16}"}}).empty());
}

TEST(Validate, AnElasticGroupSharesRecordsNotFiles) {
  const Sets by_file = {{"spec.training.data.train.shard", "file"}};
  Sets both = by_file;
  both.push_back({"spec.elastic", "{minReplicas: 1, maxReplicas: 4}"});
  const std::string problem = "spec.elastic: expected training.data.train.shard record";
  EXPECT_THAT(problems_with(kCollective, both), Contains(HasSubstr(problem)));
  EXPECT_THAT(problems_with(kCollective, by_file), Not(Contains(HasSubstr(problem))));
}

TEST(Validate, AReplicaHasUpTo64Devices) {
  const Sets two = {{"spec.training.devices", "2"}};
  EXPECT_TRUE(problems_with(kTraining, two).empty());
  EXPECT_TRUE(problems_with(kCollective, two).empty());
  EXPECT_THAT(problems_with(kCollective, {{"spec.training.devices", "65"}}),
              ElementsAre(HasSubstr("an integer from 1 to 64 or auto, found 65")));
}

TEST(Validate, AllGpusOfReplicasThatTrainAreEquallyMany) {
  const auto with = [](const char* device, const std::string& chief, const std::string& worker) {
    const auto of = [](const std::string& limits) {
      return "{spec: {containers: [{name: trainer, resources: {limits: {" + limits + "}}}]}}";
    };
    return problems_with(kTraining, {{"spec.training.devices", "auto"},
                                     {"spec.training.device", device},
                                     {"spec.replicaSpecs.chief.template", of(chief)},
                                     {"spec.replicaSpecs.worker.template", of(worker)},
                                     {"spec.replicaSpecs.evaluator.template", of("")}});
  };
  const auto refuses = [](int found, int before) {
    return ElementsAre(
        HasSubstr("in the template of worker as in that of chief, found auto, with " +
                  std::to_string(found) + " and " + std::to_string(before)));
  };
  const std::string four = "nvidia.com/gpu: 4";
  EXPECT_THAT(with("auto", four, four), ::testing::IsEmpty());
  EXPECT_THAT(with("auto", four, "nvidia.com/gpu: '4'"), ::testing::IsEmpty());
  EXPECT_THAT(with("auto", "", ""), ::testing::IsEmpty());
  EXPECT_THAT(with("auto", four, "nvidia.com/gpu: 2"), refuses(2, 4));
  EXPECT_THAT(with("auto", four, ""), refuses(0, 4));
  EXPECT_THAT(with("cpu", four, ""), ::testing::IsEmpty());
  EXPECT_THAT(with("cuda", four, ""), ::testing::IsEmpty()) << "the operator adds them";
  EXPECT_THAT(with("cuda", four, "nvidia.com/mig-1g.10gb: 1"), refuses(0, 4));
}

TEST(Validate, AGangOfAnElasticJobIsItsFewest) {
  const Sets elastic = {{"spec.elastic", "{minReplicas: 1, maxReplicas: 4}"},
                        {"spec.schedulingPolicy.gang", "volcano"},
                        {"spec.startupPolicy.order", "InOrder"}};
  EXPECT_THAT(problems_with(kCollective, elastic),
              ElementsAre(HasSubstr("found 2 replicas, of which 1 start first")));
  Sets of_workers = elastic;
  of_workers.push_back({"spec.replicaSpecs", "{worker: {replicas: 2}}"});
  EXPECT_TRUE(problems_with(kCollective, of_workers).empty());
}

TEST(Validate, OneMistakeIsOneProblem) {
  expect_each_refused(
      kTraining,
      {
          {{{"spec.replicaSpecs", "{}"}},
           "spec.replicaSpecs: expected an object with at least 1 field, found an empty object"},
          {{{"spec.replicaSpecs", "{ps: {}, wroker: {}}"}}, "did you mean worker?"},
          {{{"spec.replicaSpecs.ps.replicas", "none"}},
           "spec.replicaSpecs.ps.replicas: expected an"},
          {{{"spec.replicaSpecs", "{ps: {replica: 2}, chief: {}}"}}, "did you mean replicas?"},
          {{{"spec.replicaSpecs.worker.replicas", "99999999999999999999"}},
           "spec.replicaSpecs.worker.replicas: expected an integer from 0 to 1000, found 1e+20"},
          {{{"spec.strategy", "colective"}, {"spec.replicaSpecs.ps.replicas", "0"}},
           "did you mean collective?"},
          {{{"spec.successPolicy.decidedBy", "worker"}}, "did you mean allWorkers or workerZero?"},
          {{{"spec.failurePolicy.rules", "[{onExitCode: [1], action: FailJob}]"}},
           "did you mean onExitCodes?"},
          {{{"spec.training.data", "{tset: {}, train: {idx: {images: i, labels: l}}}"}},
           "did you mean test?"},
          {{{"spec.replicaSpecs.chief.template",
             "{spec: {containers: [{name: Trainer}, {name: side}]}}"}},
           "containers[0].name: expected a string"},
          {{{"spec.training.model", "{layers: [{dense: {units: 11}}]}"},
            {"spec.training.data",
             "{train: {syntheticClasses: {samples: 9, shape: [3], classes: 10}}, test: "
             "{syntheticClasses: {samples: 9, shape: [3], classes: 10}}}"}},
           "spec.training.model.layers[0].dense.units: expected 10 outputs, one for each class, "
           "found 11"},
      });
  expect_each_refused(
      kOwnImage,
      {
          {{{"spec.replicaSpecs.worker.template", "null"}, {"spec.trainig", "{}"}},
           "did you mean training?"},
          {{{"spec.replicaSpecs.worker.template", "{spec: {containers: 3}}"}},
           "containers: expected a list"},
          {{{"spec.replicaSpecs.worker.template", "{spec: {containers: [{name: a, image: 3}]}}"}},
           "containers[0].image: expected a string"},
      });
}

TEST(Validate, TellsProblemsByLine) {
  Document document = Document::parse(
      "apiVersion: muster.dev/v1alpha1\n"
      "kind: TrainingJob\n"
      "metadata: {name: j}\n"
      "spec:\n"
      "  replicaSpecs: {ps: {replication: 2}, chief: {}, worker: {}, evaluator: {}}\n"
      "  training:\n"
      "    epochs: 99999999999999999999\n"
      "    model: {name: mnist-mlp}\n"
      "    data: {train: {idx: {images: i, labels: l}}}\n"
      "  suspend: 1\n",
      "j");
  std::vector<int> lines;
  for (const Problem& problem : validate(document)) lines.push_back(problem.line);
  EXPECT_EQ(lines, (std::vector<int>{5, 5, 7, 10}));
}

TEST(Validate, SaysWhereATrainingBlockAloneBelongs) {
  Document document = Document::parse("model: {}\ndata: {}\n", "t.yaml");
  const auto problems = validate(document);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].text(), HasSubstr("found a training block alone; put it below"));
}

TEST(Validate, LooksAtDataWhereItIsToldHow) {
  Document document = with(kTraining, {});
  const auto problems = validate(document, [](const std::string& part, const spec::DataSource&) {
    spec::DataFacts facts;
    facts.samples = 9;
    facts.sample_shape = {32, 32};
    facts.label_count = 10;
    return part == "test" ? std::optional(facts) : std::nullopt;
  });
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].where, "job.yaml:10");
  EXPECT_EQ(problems[0].path, "spec.training.data.test.idx.images");
}

TEST(Validate, RefusesAPrecisionThatNoPartOfTheModelHas) {
  EXPECT_THAT(problems_with(kTraining, {{"spec.training.precision", "bfloat16"}}),
              ::testing::ElementsAre(::testing::HasSubstr(
                  "spec.training.precision: expected float32 for a model without convolutions")));
}

// Only the trainer that will run knows what it can do.
TEST(Validate, AcceptsWhatATrainerWithAnotherBuildMayDo) {
  EXPECT_THAT(problems_with(kTraining, {{"spec.training.device", "cuda"}}), ::testing::IsEmpty());
}

TEST(Validate, ReportsARuleAndAnUnknownValueTogether) {
  const auto problems = problems_with(kTraining, {{"spec.strategy", "collective"},
                                                  {"spec.replicaSpecs.ps.replication", "2"},
                                                  {"spec.training.precision", "float16"}});
  EXPECT_THAT(problems, Contains(HasSubstr("no more copies than there are ps")));
  EXPECT_THAT(problems, Contains(HasSubstr("no ps, for the strategy is collective")));
  EXPECT_THAT(problems, Contains(HasSubstr("one of float32, bfloat16")));
  EXPECT_EQ(problems.size(), 3u);
}

TEST(Validate, ABackupWorkerMoreThanMembersIsRefusedByTheRuleToo) {
  EXPECT_THAT(problems_with(kTraining, {{"spec.training.synchronization.backupWorkers", "3"}}),
              Contains(HasSubstr("fewer backup workers than members, found 3 of 3 members")));
}

TEST(Validate, BackupWorkersHaveNoSecondCopies) {
  const std::pair<std::string, std::string> twice{"spec.replicaSpecs.ps",
                                                  "{replicas: 2, replication: 2}"};
  EXPECT_THAT(
      problems_with(kTraining, {twice, {"spec.training.synchronization.backupWorkers", "1"}}),
      testing::ElementsAre(
          HasSubstr("spec.replicaSpecs.ps.replication: expected 1 with backup workers: gradients "
                    "that wait for shard 0 have no second copy, found 2 with 1 backup workers")));
  EXPECT_TRUE(problems_with(kTraining, {twice}).empty());
}

TEST(Validate, AJobOfOnesOwnImageNeedsSomethingToRun) {
  const std::string worker = "spec.replicaSpecs.worker.template";
  expect_each_refused(
      kOwnImage,
      {
          {{{worker, "null"}}, "a container to run, for the job has no spec.training, found none"},
          {{{worker, "{spec: {containers: []}}"}}, "a container to run"},
          {{{worker, "{spec: {containers: [{name: a}]}}"}},
           "containers[0]: expected a command or an image"},
          {{{worker, "{spec: {containers: [{name: a, comand: [x], image: z}]}}"}},
           "did you mean command?"},
          {{{worker, "{spec: {containers: [{name: a, command: x}]}}"}}, "command: expected a list"},
          {{{worker, "{spec: {containers: [{name: side}, {name: other, image: x}]}}"}},
           "trainer or tensorflow"},
          {{{"spec.replicaSpecs.ps", "{}"}}, "spec.replicaSpecs.ps.template.spec.containers"},
      });
  expect_each_refused(
      kTraining, {{{{worker, "{spec: {containers: [{name: proxy, image: x}]}}"}},
                   "containers[0].name: expected trainer, for the job has spec.training and this "
                   "is the only container, found 'proxy'; to run it beside the trainer, add {name: "
                   "trainer}"}});
  EXPECT_TRUE(problems_with(kTraining, {{worker,
                                         "{spec: {containers: [{name: proxy, image: x}, {name: "
                                         "trainer}]}}"}})
                  .empty());
  EXPECT_TRUE(problems_with(kOwnImage, {{worker,
                                         "{spec: {containers: [{name: side, env: [{name: "
                                         "MUSTER_X, value: z}]}, {name: trainer, image: "
                                         "x}]}}"}})
                  .empty());
}

// Whose replicas may be on several nodes; `muster run` gives them a folder of this machine.
TEST(Validate, OnAClusterThoseWhoTrainTogetherShareAVolume) {
  const auto problems = [](const std::string& text) {
    Document document = Document::parse(text, "job.yaml");
    return validate_for_cluster(document);
  };
  const auto found = problems(kTraining);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text(), HasSubstr("spec.storage.volume: expected a volume that all replicas"
                                         " share, found none"));
  const auto own = problems(std::string(kTraining) + "  storage: {volume: {emptyDir: {}}}\n");
  ASSERT_EQ(own.size(), 1u);
  EXPECT_THAT(own[0].text(), HasSubstr("found one that each pod has for itself"));
  // An earlier version has accepted it, and the job has begun.
  EXPECT_TRUE(
      problems(std::string(kTraining) +
               "  storage: {volume: {emptyDir: {}}}\nstatus: {startTime: 2026-01-02T03:04:05Z}\n")
          .empty());
  const std::string shared = "  storage: {volume: {persistentVolumeClaim: {claimName: mnist}}}\n";
  EXPECT_TRUE(problems(kTraining + shared).empty());
  std::string alone = kTraining;
  alone.erase(alone.find("    ps: {}"));
  EXPECT_TRUE(problems(alone + "    chief: {}\n").empty());
  std::string grows = kCollective;
  grows.replace(grows.find("    chief: {}\n    worker: {replicas: 2}"), std::string::npos,
                "    worker: {replicas: 1}\n  elastic: {minReplicas: 1, maxReplicas: 2}\n");
  EXPECT_EQ(problems(grows).size(), 1u);
  EXPECT_TRUE(problems(kOwnImage).empty());
}

TEST(Validate, TheTrainingBlockFitsAnAnnotation) {
  std::string layers = "{layers: [";
  for (int i = 0; i < 900; ++i) layers += "{dense: {units: 1}}, ";
  EXPECT_THAT(problems_with(kTraining, {{"spec.training.model", layers + "]}"}}),
              Contains(HasSubstr("at most 64 KiB as JSON")));
}

TEST(Validate, TakesAnythingAtAll) {
  for (const char* text :
       {"", "[]", "1", "spec: []", "spec: {replicaSpecs: 1}", "spec: {replicaSpecs: {chief: 1}}",
        "spec: {replicaSpecs: {chief: {template: {spec: {containers: 3}}}}}",
        "spec: {replicaSpecs: {chief: {template: {spec: {containers: [1, {env: 3}]}}}}}",
        "spec: {replicaSpecs: {chief: {template: {spec: {containers: [{name: trainer, env: {a: "
        "b}}]}}}}}",
        "spec: {failurePolicy: {rules: 1}}", "spec: {failurePolicy: {rules: [1, {roles: 2}]}}",
        "spec: {training: 1}", "spec: {training: {data: []}}", "spec: {elastic: [1]}"}) {
    Document document = Document::parse(text, "x");
    EXPECT_FALSE(validate(document).empty()) << text;
  }
}

TEST(Rules, AreWholeAndTheirPathsAreInTheSchema) {
  for (const Rule& rule : rules()) {
    EXPECT_GT(rule.cel.size(), 0u);
    EXPECT_GT(rule.expected.size(), 0u);
    const Json* schema = &training_job_schema();
    std::string path = rule.path;
    if (!rule.blame.empty()) path += (path.empty() ? "" : ".") + rule.blame;
    for (const std::string& step : split_path(path)) {
      ASSERT_TRUE(schema->contains("properties") && (*schema)["properties"].contains(step)) << path;
      schema = &(*schema)["properties"][step];
    }
    EXPECT_EQ(rule.found == nullptr, rule.cel.find("oldSelf") != std::string::npos);
  }
}

TEST(Schema, DescribesEveryFieldOfTheJob) {
  const std::function<void(const Json&, const std::string&)> visit = [&](const Json& schema,
                                                                         const std::string& path) {
    if (!schema.contains("properties")) return;
    for (const auto& [name, property] : schema["properties"].items()) {
      const std::string child = child_path(path, name);
      EXPECT_TRUE(property.contains("description")) << child;
      EXPECT_NE(property.contains("type"), property.contains("x-kubernetes-int-or-string"))
          << child;
      visit(property, child);
      if (property.contains("items")) visit(property["items"], child + "[]");
    }
  };
  visit(training_job_schema(), "");
}

TEST(LoadTrainingJob, ThrowsEveryProblemAsBadInput) {
  Document document = with(kTraining, {{"spec.training.batchSize", "x"}, {"kind", "x"}});
  try {
    load_training_job(document);
    FAIL();
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), 65);
    EXPECT_THAT(error.what(), HasSubstr("kind: expected one of TrainingJob"));
    EXPECT_THAT(error.what(), HasSubstr("\njob.yaml (--set): spec.training.batchSize"));
  }
}

}  // namespace
}  // namespace muster::api
