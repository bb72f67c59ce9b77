#include <malloc.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/log.h"
#include "trainer/group/address.h"
#include "trainer/loop/guard.h"
#include "trainer/loop/roles.h"

namespace {

using namespace muster;

struct Options {
  std::string standalone;
  std::string storage;
  std::string http_address;
  std::string output = "text";
  std::string checkpoint;
  std::string data = "test";
  std::vector<uint64_t> indices;
};

void print(const Json& json, const std::string& output) {
  if (output == "json") {
    std::cout << json.dump(2) << std::endl;
    return;
  }
  for (const auto& [key, value] : json.items()) std::cout << key << ": " << value.dump() << "\n";
  std::cout << std::flush;
}

int train(const Options& options) {
  loop::StopSignal stop;
  if (options.standalone.empty()) {
    const auto membership = group::parse_membership(group::read_environment());
    log::initialize(membership.job + "-" + membership.role_name + "-" +
                    std::to_string(membership.index));
    return loop::run_replica(membership, stop.token());
  }
  group::Membership membership;
  membership.training = options.standalone;
  membership.storage = options.storage;
  membership.http_address = options.http_address;
  log::initialize("standalone");
  Json result;
  const int code = loop::run_alone(membership, stop.token(), &result);
  if (code == kSuccess) print(result, options.output);
  return code;
}

void add_output(CLI::App* app, Options& options) {
  app->add_option("-o,--output", options.output, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
}

void add_checkpoint(CLI::App* app, Options& options) {
  app->add_option("--checkpoint", options.checkpoint, "A checkpoint's folder")->required();
  app->add_option("--data", options.data, "validation or test")
      ->check(CLI::IsMember({"validation", "test"}));
  add_output(app, options);
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Trains as one replica of a TrainingJob, by TF_CONFIG and the MUSTER_* environment.",
               "muster-trainer");
  app.require_subcommand(0, 1);
  app.add_option("--standalone", options.standalone, "Train this training.yaml in one process");
  app.add_option("--storage", options.storage, "Folder for checkpoints, events and result.json");
  app.add_option("--http-address", options.http_address, "host:port for /metrics and /progress");
  add_output(&app, options);
  CLI::App* evaluate = app.add_subcommand("evaluate", "Loss and accuracy of a checkpoint");
  add_checkpoint(evaluate, options);
  CLI::App* predict = app.add_subcommand("predict", "Outputs for single samples");
  add_checkpoint(predict, options);
  predict->add_option("--index", options.indices, "Sample number, from 0");
  CLI::App* version = app.add_subcommand("version", "Print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kSuccess : kUsage;
  }
  if (*version) {
    std::cout << "muster-trainer " << group::version() << std::endl;
    return kSuccess;
  }
  log::initialize("muster-trainer");
  if (options.indices.empty()) options.indices = {0};
  return loop::run_guarded([&] {
    if (*evaluate) {
      print(loop::evaluate_checkpoint(options.checkpoint, options.data), options.output);
      return static_cast<int>(kSuccess);
    }
    if (*predict) {
      print(loop::predict_checkpoint(options.checkpoint, options.data, options.indices),
            options.output);
      return static_cast<int>(kSuccess);
    }
    return train(options);
  });
}

}  // namespace

int main(int argc, char** argv) {
  // Messages of a megabyte come and go with every step: keep their memory rather than map it
  // afresh.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  setenv("GRPC_VERBOSITY", "NONE", 0);  // what matters of it is in our own messages
  return run(argc, argv);
}
