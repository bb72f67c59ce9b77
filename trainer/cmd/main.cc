#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/environment.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/program/output.h"
#include "common/program/program_texts.h"
#include "common/program/usage.h"
#include "common/system/signals.h"
#include "common/threads/heap.h"
#include "trainer/cmd/data_commands.h"
#include "trainer/cmd/output.h"
#include "trainer/group/address.h"
#include "trainer/group/identity.h"
#include "trainer/loop/commands/on_samples.h"
#include "trainer/loop/commands/predict_pictures.h"
#include "trainer/loop/commands/predict_table.h"
#include "trainer/loop/guard.h"
#include "trainer/loop/roles/roles.h"

namespace muster::cmd {

namespace {

struct Options {
  std::string standalone;
  std::string storage;
  std::string http_address;
  std::string output;  // empty: the command's default
  std::string checkpoint;
  std::string data = "test";
  std::vector<int64_t> indices;
  loop::PictureOptions pictures;
  std::string key;  // of a table
  std::string to;   // of a table: a Parquet file for its predictions
  std::string shell;
};

void print(const Json& json, const Options& options, std::string (*text)(const Json&)) {
  const bool as_json = options.output == "json";
  std::fputs(as_json ? json_text(json).c_str() : text(json).c_str(), stdout);
}

// Returns the exit code.
int predict(Options options) {
  if (options.pictures.pictures.empty()) {
    if (options.indices.empty()) options.indices = {0};
    print(loop::predict_checkpoint(options.checkpoint, options.data, options.indices,
                                   options.pictures.least_score),
          options, predictions_text);
    return kSuccess;
  }
  if (loop::is_table(options.pictures.pictures.front())) {
    if (options.pictures.pictures.size() > 1 || !options.output.empty())
      throw Invalid("predict: expected one table, and no -o, for what it prints is CSV; found more",
                    kUsage);
    loop::predict_table(
        options.checkpoint,
        {options.pictures.pictures.front(), options.pictures.from, options.key, options.to},
        [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
    return kSuccess;
  }
  if (options.output.empty()) options.output = "json";
  const Json json = loop::predict_pictures(options.checkpoint, options.pictures);
  print(json, options, pictures_text);
  const bool all = std::ranges::none_of(json["predictions"],
                                        [](const Json& one) { return one.contains("error"); });
  return all ? kSuccess : kBadInput;
}

// The thread of a StopSignal logs, so the logger must exist before it.
int train(const Options& options) {
  if (options.standalone.empty()) {
    const auto membership = group::parse_membership(group::read_environment());
    log::initialize(membership.job + "-" + membership.role_name + "-" +
                    std::to_string(membership.index));
    loop::StopSignal stop;
    const auto guard = loop::guard_against_hangs();
    return loop::run_replica(membership, stop.token());
  }
  group::Membership membership;
  membership.training = options.standalone;
  membership.storage = options.storage;
  membership.http_address = options.http_address;
  log::initialize("standalone");
  loop::StopSignal stop;
  const auto guard = loop::guard_against_hangs();
  Json result;
  const int code = loop::run_alone(membership, stop.token(), &result);
  if (code == kSuccess) print(result, options, fields_text);
  return code;
}

std::string check_address(const std::string& text) {
  if (group::is_address(text)) return "";
  return "expected host:port, as 127.0.0.1:9090, found \"" + text + "\"";
}

void add_output(CLI::App* app, Options& options, const char* what = "text or json") {
  app->add_option("-o,--output", options.output, what)->check(CLI::IsMember({"text", "json"}));
}

CLI::App* add_checkpoint_command(CLI::App& app, const std::string& name, const std::string& what,
                                 const std::string& more, Options& options) {
  CLI::App* command = app.add_subcommand(name, what);
  command
      ->add_option("--checkpoint", options.checkpoint,
                   "A job's directory or a --storage folder, for the newest whole checkpoint in "
                   "it, or the best after a training with restoreBest; one checkpoint's folder; "
                   "or an exported model (model.safetensors or its folder)")
      ->required();
  command->add_option("--data", options.data, "validation or test")
      ->check(CLI::IsMember({"validation", "test"}))
      ->capture_default_str();
  command->footer("Example:\n  " + app.get_name() + " " + name + " --checkpoint runs/mnist-mlp " +
                  more);
  return command;
}

CLI::App* add_predict_command(CLI::App& app, Options& options) {
  CLI::App* command = add_checkpoint_command(
      app, "predict", "What a model says about pictures, a table, or samples of its data",
      "seven.png --draw drawn", options);
  add_output(command, options, "text or json; of pictures json, else text");
  CLI::Option* pictures = command->add_option(
      "FILE", options.pictures.pictures,
      "JPEG and PNG files, and folders of them; the result is JSON where -o does not say "
      "otherwise. Or a table (.csv, .tsv, .txt, .parquet, .arrow, .feather, .tfrecord, .npy, "
      ".npz); the result is CSV");
  command
      ->add_option("--key", options.key,
                   "Column of a table that stands beside the predictions (the number of the row)")
      ->needs(pictures);
  command
      ->add_option("--to", options.to,
                   "Parquet file to write the predictions of a table to, instead of printing them")
      ->needs(pictures)
      ->check([](const std::string& file) {
        return file.ends_with(".parquet") ? "" : "expected a name that ends with .parquet";
      });
  command
      ->add_option("--index", options.indices,
                   "Without files: numbers of samples of the data, from 0 (0)")
      ->excludes(pictures);
  command
      ->add_option("--draw", options.pictures.drawn,
                   "Folder to write a copy of each picture to, as PNG, with the result drawn in")
      ->needs(pictures);
  command
      ->add_option("--score", options.pictures.least_score,
                   "Lowest score of the objects that a detector reports")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--classes", options.pictures.most_classes,
                   "Number of classes to report for each picture, the most probable first")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->needs(pictures);
  // `muster` passes the folder in which it was called.
  command->add_option("--called-in", options.pictures.from)->group("");
  return command;
}

// Commands for people log text, even if standard error is no terminal, unless JSON is asked for.
bool wants_json_log() {
  return environment_variable("MUSTER_LOG_FORMAT") == "json";
}

int run(int argc, char** argv) {
  // The name is "muster" for users who typed that: it becomes this program.
  const std::string program = std::filesystem::path(argv[0]).filename();
  Options options;
  CLI::App app("Trains as one replica of a TrainingJob, by TF_CONFIG and the MUSTER_* environment.",
               program);
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", "muster-trainer " + group::version());
  CLI::Option* standalone =
      app.add_option("--standalone", options.standalone, "Train this training.yaml in one process");
  app.add_option("--storage", options.storage, "Folder for checkpoints, events and result.json")
      ->needs(standalone);
  app.add_option("--http-address", options.http_address, "host:port for /metrics and /progress")
      ->check(check_address)
      ->needs(standalone);
  add_output(&app, options);
  CLI::App* evaluate = add_checkpoint_command(app, "evaluate", "Loss and accuracy of a checkpoint",
                                              "--data validation -o json", options);
  add_output(evaluate, options);
  CLI::App* predict = add_predict_command(app, options);
  DataCommands data(app);
  CLI::App* completion =
      app.add_subcommand("completion", "Print the script that completes commands in a shell");
  completion->add_option("SHELL", options.shell, "The shell")
      ->required()
      ->check(CLI::IsMember(shells()));
  CLI::App* manual = app.add_subcommand("manual", "Print the man page");
  CLI::App* version = app.add_subcommand("version", "Print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (const std::string unknown = unknown_word(app); !unknown.empty()) {
      std::fprintf(stderr, "%s: %s\n", program.c_str(), unknown.c_str());
      return kUsage;
    }
    return app.exit(error) == 0 ? kSuccess : kUsage;
  }
  std::string text;
  if (*completion) text = completion_script(app, options.shell);
  if (*manual) text = man_page(app, group::version());
  if (*version) text = "muster-trainer " + group::version() + "\n";
  if (!text.empty()) {
    std::fputs(text.c_str(), stdout);
    return kSuccess;
  }
  const bool command = *evaluate || *predict || data.is_called();
  if (command || !options.standalone.empty()) setenv("MUSTER_LOG_FORMAT", "text", 0);
  log::initialize(program);
  loop::Tell tell;
  if (command && !wants_json_log())
    tell = [&](const std::string& message) {
      std::fprintf(stderr, "%s: %s\n", program.c_str(), message.c_str());
    };
  return loop::run_guarded(
      [&]() -> int {
        loop::require_right_answers();
        if (*evaluate) {
          print(loop::evaluate_checkpoint(options.checkpoint, options.data), options, fields_text);
        } else if (*predict) {
          return cmd::predict(options);
        } else if (data.is_called()) {
          data.run();
        } else {
          return train(options);
        }
        return kSuccess;
      },
      tell);
}

// Raises the limit of descriptors. Strangers' connections must not use up the descriptors for the
// group, and gRPC does not listen again after it could not get a descriptor.
void allow_all_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

}  // namespace muster::cmd

int main(int argc, char** argv) {
  muster::occupy_standard_descriptors();
  muster::survive_large_writes();
  muster::keep_freed_memory();
  setenv("GRPC_VERBOSITY", "NONE", 0);  // our own messages contain what is needed
  muster::group::keep_openssl();
  muster::cmd::allow_all_descriptors();
  const std::string program = std::filesystem::path(argv[0]).filename();
  return muster::finish_output(program, muster::cmd::run(argc, argv));
}
