#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <sstream>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/program/output.h"
#include "common/program/program_texts.h"
#include "common/program/usage.h"
#include "common/system/file.h"
#include "common/system/signals.h"
#include "common/system/system_words.h"
#include "operator/cmd/cluster/cluster_commands.h"
#include "operator/cmd/local/commands.h"

namespace muster::cmd {

namespace {

constexpr const char* kFooter = R"(Examples:
  muster run examples/mnist-mlp.yaml
  muster run job.yaml --set spec.training.epochs=5 --directory runs/longer
  muster validate job.yaml
  muster status runs/mnist-mlp
  muster scale runs/mnist-multiworker --replicas 3
  muster checkpoint runs/mnist-mlp
  muster submit examples/mnist-mlp.yaml -n lab --wait
  muster logs mnist-mlp -n lab --follow
  muster evaluate --checkpoint runs/mnist-mlp

Exit codes: 0 done, 64 wrong command line, 65 malformed input, 69 try again later, 70 internal error,
71 faulty hardware, 72 wrong results on this processor, 73 cannot write, 75 a process hung, 76 a peer of
another job, 78 malformed configuration, 90 the loss is not finite, 91 trained but not evaluated, 124 the
deadline has passed, 129, 130 and 143 interrupted. A failed job ends with its failed replica's code.)";

// The options of all commands, and the actions that follow once they are read.
class Program {
 public:
  Program() : app_("Muster trains one TrainingJob: on this machine, or on Kubernetes.", "muster") {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "muster " MUSTER_VERSION);
    app_.footer(kFooter);
    // In the order of a first day: on this machine, then on a cluster, then what is rare.
    add_run();
    add_validate();
    add_status();
    add_logs();
    add_stop();
    add_checkpoint();
    add_scale();
    add_trainer_command("evaluate", "Loss and accuracy of a checkpoint",
                        "muster evaluate --checkpoint runs/mnist-mlp --data validation -o json");
    add_trainer_command("predict",
                        "What a model says about pictures, a table, or samples of its data",
                        "muster predict --checkpoint runs/mnist-mlp seven.png --draw drawn");
    add_submit();
    add_list();
    add_suspend("suspend", "Stop a job of a cluster after a checkpoint, until it is resumed", true);
    add_suspend("resume", "Go on with a job of a cluster that was suspended", false);
    add_delete();
    add_usage();
    add_convert();
    add_trainer_command("data", "Look at a table, have a manifest made for it, or make a data set",
                        "muster data suggest sales.csv --target price --output job.yaml");
    add_render();
    add_crd();
    add_host();
    add_texts();
    CLI::App* version = app_.add_subcommand("version", "Print the version");
    on(version, [] { return print("muster " MUSTER_VERSION "\n"); });
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (const std::string text = unknown_word(app_); !text.empty()) {
        std::fprintf(stderr, "muster: %s\n", text.c_str());
        return kUsage;
      }
      if (error.get_exit_code() == 0) return app_.exit(error) == 0 ? kSuccess : kUsage;
      std::fprintf(stderr, "%s\n", refusal(error).c_str());
      return kUsage;
    }
    return action_();
  }

 private:
  // Names the command, what is wrong with it, and how it is used.
  std::string refusal(const CLI::ParseError& error) const {
    const auto used = app_.get_subcommands();
    const CLI::App& command = used.empty() ? app_ : *used.front();
    const std::string name = used.empty() ? "muster" : "muster " + command.get_name();
    std::string usage = used.empty() ? " COMMAND" : " [OPTIONS]";
    for (const CLI::Option* option : command.get_options(&CLI::Option::get_positional))
      usage += " " + option->get_name(true);
    return name + ": " + error.what() + "\nUsage: " + name + usage + "\n" + name +
           " --help says more.";
  }

  void on(CLI::App* command, std::function<int()> action) {
    command->callback([this, action = std::move(action)] { action_ = action; });
  }

  CLI::App* add(const char* name, const char* what, const char* example) {
    CLI::App* command = app_.add_subcommand(name, what);
    command->footer(std::string("Example:\n  ") + example);
    return command;
  }

  void add_output(CLI::App* command) {
    command->add_option("-o,--output", output_, "text or json")
        ->check(CLI::IsMember({"text", "json"}));
  }

  void add_sets(CLI::App* command) {
    command
        ->add_option("--set", run_.sets,
                     "Change a field of the manifest: path=value, as in spec.training.epochs=5")
        ->allow_extra_args(false);
  }

  bool json() const { return output_ == "json"; }

  void add_run() {
    CLI::App* command =
        add("run", "Run a job on this machine, or resume it",
            "muster run examples/mnist-mlp.yaml --set spec.training.epochs=1\n\n"
            "Ctrl-C saves a checkpoint and stops; running again on the same directory resumes. A "
            "job\nthat has failed goes on with --retry, and one that has succeeded trains on with\n"
            "--continue and more epochs.");
    add_job_options(command);
    command->add_flag("--retry", run_.retry,
                      "Continue from the newest checkpoint even if the job has failed");
    command->add_flag("--continue", run_.go_on,
                      "If the job has succeeded, train on from its final checkpoint by a manifest "
                      "with more epochs or steps");
    command->add_option("--hosts", run_.hosts,
                        "Run on the machines that this file lists, which ssh reaches and which "
                        "share the job's directory");
    on(command, [this] { return run_job(run_options()); });
  }

  // Not for users: `muster run --hosts` starts this command.
  void add_host() {
    CLI::App* command = app_.add_subcommand("host", "Serve `muster run --hosts`")->group("");
    command->add_option("ACTION", job_, "survey, receive, run or link")
        ->required()
        ->check(CLI::IsMember({"survey", "receive", "run", "link"}));
    command->add_option("FILE", directory_, "Program that the link runs");
    on(command, [this] { return serve_host(job_, directory_); });
  }

  void add_render() {
    CLI::App* command = add("render", "Show each replica's command, environment and training.yaml",
                            "muster render examples/mnist-mlp.yaml");
    add_job_options(command);
    on(command, [this] { return render_job(run_options()); });
  }

  void add_job_options(CLI::App* command) {
    command->add_option("JOB.yaml", run_.manifest, "The manifest")->required();
    add_sets(command);
    command
        ->add_option("--directory", run_.directory,
                     "Where the job keeps its state, logs and checkpoints (runs/<name>)")
        ->check([](const std::string& text) {
          return text.empty() ? "expected a directory, found an empty text" : "";
        });
    add_output(command);
  }

  RunOptions run_options() const {
    RunOptions options = run_;
    options.json = json();
    return options;
  }

  void add_validate() {
    CLI::App* command = add("validate", "Check manifests, and name every problem at once",
                            "muster validate job.yaml other.yaml");
    command->add_option("JOB.yaml", files_, "The manifests")->required();
    add_sets(command);
    add_output(command);
    on(command, [this] { return validate_manifests(files_, run_.sets, json()); });
  }

  void add_directory(CLI::App* command) {
    command->add_option("DIR", directory_, "The job's directory, as runs/mnist-mlp")->required();
  }

  // Adds the argument that names the job (local or on a cluster) for status and logs.
  void add_job(CLI::App* command) {
    command
        ->add_option("JOB", job_,
                     "A job's directory on this machine, as runs/mnist-mlp, or the name of a job "
                     "of a cluster")
        ->required();
    add_cluster(command);
  }

  void add_cluster(CLI::App* command) {
    command->add_option("-n,--namespace", cluster_.name_space,
                        "Namespace of the cluster; the context's");
    add_server(command);
  }

  void add_server(CLI::App* command) {
    command->add_option("--kubeconfig", cluster_.kubeconfig,
                        "How to reach the cluster; $KUBECONFIG, a pod's service account or "
                        "~/.kube/config where left out");
    command->add_option("--context", cluster_.context,
                        "Context of the kubeconfig; its current one");
  }

  void add_name(CLI::App* command) {
    command->add_option("NAME", job_, "The job's name")->required();
    add_cluster(command);
  }

  void add_timeout(CLI::App* command) {
    command->add_option("--timeout", timeout_, "Seconds to wait at most; 0: no limit")
        ->check(CLI::Range(0, 1'000'000'000));
  }

  void add_formats(CLI::App* command) {
    command->add_option("-o,--output", output_, "text, json or yaml")
        ->check(CLI::IsMember({"text", "json", "yaml"}));
  }

  WaitOptions waiting() const {
    WaitOptions waiting;
    waiting.timeout = std::chrono::seconds(timeout_);
    return waiting;
  }

  bool is_local() const { return !cluster_.given() && is_local_job(job_); }

  // Runs `command` with `job_` as the name of a job on the cluster. If no cluster can be reached,
  // the error also says that there is no such directory.
  int with_named(const std::function<int(const ClusterAccess&)>& command) const {
    bool asked = false;
    try {
      return with_cluster(cluster_, [&](const ClusterAccess& cluster) {
        asked = true;
        return command(cluster);
      });
    } catch (const Invalid& error) {
      if (asked || cluster_.given()) throw;
      throw Invalid(
          "expected the directory of a run on this machine, or the name of a job of a "
          "cluster, found \"" +
              job_ +
              "\", which is no directory here with a job.json (runs are in runs/NAME, if "
              "--directory named no other). For a cluster: " +
              error.what(),
          error.exit_code());
    }
  }

  void add_status() {
    CLI::App* command =
        add("status", "How a job stands, here or on a cluster",
            "muster status runs/mnist-mlp -o json\n  muster status mnist-mlp -n lab");
    add_job(command);
    add_formats(command);
    on(command, [this] {
      if (is_local()) return show_status(job_, output_);
      return with_named([this](const ClusterAccess& cluster) {
        return show_cluster_status(cluster, job_, output_);
      });
    });
  }

  void add_logs() {
    CLI::App* command = add("logs", "Logs of all replicas, or of some, in the order of time",
                            "muster logs runs/mnist-mlp worker chief-0 --follow");
    add_job(command);
    command->add_option("REPLICA", logs_.replicas, "Roles or replicas, as worker or worker-1");
    command->add_flag("-f,--follow", logs_.follow,
                      "Go on until the job stops; on a cluster, wait for one that is pending");
    command->add_option("--tail", logs_.tail, "Only the last N lines of each")
        ->check(CLI::Range(0, std::numeric_limits<int>::max()));
    add_output(command);
    on(command, [this] {
      logs_.directory = job_;
      logs_.json = json();
      if (is_local()) return show_logs(logs_);
      return with_named([this](const ClusterAccess& cluster) {
        ClusterLogOptions options{job_, logs_.replicas, logs_.tail, logs_.follow, logs_.json};
        return show_cluster_logs(cluster, options);
      });
    });
  }

  void add_submit() {
    CLI::App* command = add("submit", "Validate manifests, and apply them to a cluster",
                            "muster submit examples/mnist-mlp.yaml -n lab --wait");
    command->add_option("JOB.yaml", submit_.files, "The manifests")->required();
    add_sets(command);
    add_cluster(command);
    command->add_flag("--force-conflicts", submit_.force,
                      "Take over fields that another program has set");
    command->add_flag("--wait", submit_.wait,
                      "Show the jobs' progress until they have finished; exit with their code");
    add_timeout(command);
    on(command, [this] {
      submit_.sets = run_.sets;
      submit_.waiting = waiting();
      const std::vector<Json> manifests = checked_manifests(submit_);
      return with_cluster(cluster_, [&](const ClusterAccess& cluster) {
        return submit_jobs(cluster, manifests, cluster_.name_space, submit_);
      });
    });
  }

  void add_list() {
    CLI::App* command = add("list", "The jobs of a cluster", "muster list -A");
    add_cluster(command);
    command->add_flag("-A,--all-namespaces", all_namespaces_, "Of all namespaces");
    add_formats(command);
    on(command, [this] {
      return with_cluster(cluster_, [this](const ClusterAccess& cluster) {
        return list_jobs(cluster, all_namespaces_, output_);
      });
    });
  }

  void add_delete() {
    CLI::App* command = add("delete", "Delete a job of a cluster, and its pods",
                            "muster delete mnist-mlp -n lab --wait");
    add_name(command);
    command->add_flag("--wait", wait_, "Until job and pods are gone");
    add_timeout(command);
    on(command, [this] {
      return with_cluster(cluster_, [this](const ClusterAccess& cluster) {
        return delete_job(cluster, job_, wait_, waiting());
      });
    });
  }

  void add_usage() {
    CLI::App* command = add("usage", "What the jobs of each namespace have used, by month",
                            "muster usage --month 2026-11 -o json");
    command->add_option("--month", usage_.month, "Only this month, as 2026-11");
    command->add_option("-n,--namespace", operators_namespace_,
                        "Namespace of the operator (muster-system)");
    command->add_option("--name", usage_.name,
                        "Name of the ConfigMap in it that has the sums (muster-usage)");
    add_server(command);
    add_formats(command);
    on(command, [this] {
      usage_.output = output_;
      cluster_.name_space = operators_namespace_;
      return with_cluster(
          cluster_, [this](const ClusterAccess& cluster) { return show_usage(cluster, usage_); });
    });
  }

  void add_suspend(const char* name, const char* what, bool suspend) {
    CLI::App* command =
        add(name, what, (std::string("muster ") + name + " mnist-mlp -n lab").c_str());
    add_name(command);
    on(command, [this, suspend] {
      return with_cluster(cluster_, [this, suspend](const ClusterAccess& cluster) {
        return suspend_job(cluster, job_, suspend);
      });
    });
  }

  void add_stop() {
    CLI::App* command = add("stop", "Stop a job that runs, after a checkpoint, and wait for it",
                            "muster stop runs/mnist-mlp");
    add_directory(command);
    command->add_flag("--now", now_, "Do not wait for a checkpoint");
    on(command, [this] { return stop_job(directory_, now_); });
  }

  void add_scale() {
    CLI::App* command = add("scale", "Change the number of workers of a job that runs",
                            "muster scale runs/mnist-multiworker --replicas 3\n"
                            "  muster scale mnist-multiworker -n lab --replicas 3");
    add_job(command);
    command
        ->add_option("--replicas", replicas_,
                     "Workers; of an elastic job within spec.elastic's limits")
        ->required()
        ->check(CLI::Range(0, std::numeric_limits<int>::max()));
    on(command, [this] {
      if (is_local()) return scale_local_job(job_, replicas_);
      return with_named([this](const ClusterAccess& cluster) {
        return scale_cluster_job(cluster, job_, replicas_);
      });
    });
  }

  void add_checkpoint() {
    CLI::App* command = add("checkpoint", "Have a job that runs save a checkpoint now, and go on",
                            "muster checkpoint runs/mnist-mlp\n"
                            "  muster checkpoint mnist-mlp -n lab --timeout 600");
    add_job(command);
    command->add_flag("--no-wait", no_wait_, "Do not wait until the checkpoint is published");
    add_timeout(command);
    on(command, [this] {
      CheckpointOptions options;
      options.wait = !no_wait_;
      options.timeout = std::chrono::seconds(timeout_);
      if (is_local()) return checkpoint_local_job(job_, options);
      return with_named([&](const ClusterAccess& cluster) {
        return checkpoint_cluster_job(cluster, job_, options);
      });
    });
  }

  void add_crd() {
    CLI::App* command = add("crd", "Print the CustomResourceDefinition of TrainingJob",
                            "muster crd | kubectl apply --server-side -f -");
    command->add_option("-o,--output", output_, "yaml or json")
        ->check(CLI::IsMember({"yaml", "json"}));
    on(command, [this] { return print_definition(MUSTER_VERSION, json()); });
  }

  void add_convert() {
    CLI::App* command = add(
        "convert", "Make a manifest of a TFJob, or of a pipeline of the TF Object Detection API",
        "muster convert tfjob.yaml --output job.yaml\n"
        "  muster convert pipeline.config --output job.yaml\n"
        "  muster convert model.config train.config input.config");
    command
        ->add_option("FILE", files_,
                     "The TFJob's manifest; or the pipeline file, or those of model, training, "
                     "input and evaluation")
        ->required();
    command->add_option("-o,--output", convert_output_,
                        "The manifest to write; printed if left out");
    on(command, [this] { return convert_files(files_, convert_output_); });
  }

  void add_texts() {
    CLI::App* completion = add("completion", "Print the script that completes commands in a shell",
                               "source <(muster completion bash)");
    completion->add_option("SHELL", shell_, "The shell")
        ->required()
        ->check(CLI::IsMember(shells()));
    on(completion, [this] { return print(completion_script(app_, shell_)); });
    CLI::App* manual = add("manual", "Print the man page", "muster manual | man -l -");
    on(manual, [this] { return print(man_page(app_, MUSTER_VERSION)); });
  }

  static int print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    return kSuccess;
  }

  // Adds a command that has muster-trainer's options, including --help.
  void add_trainer_command(const char* name, const char* what, const char* example) {
    CLI::App* command = add(name, what, example);
    command->set_help_flag();
    command->prefix_command();
    on(command, [command, name] { return exec_trainer(name, command->remaining()); });
  }

  CLI::App app_;
  std::function<int()> action_;
  RunOptions run_;
  LogOptions logs_;
  ClusterFlags cluster_;
  SubmitOptions submit_;
  UsageOptions usage_;
  std::string operators_namespace_ = "muster-system";
  std::string job_;
  std::string shell_;
  int timeout_ = 0;
  int replicas_ = 0;
  bool all_namespaces_ = false;
  bool wait_ = false;
  std::vector<std::filesystem::path> files_;
  std::filesystem::path directory_;
  std::filesystem::path convert_output_;
  std::string output_ = "text";
  bool now_ = false;
  bool no_wait_ = false;
};

int fail(const std::exception& error, int exit_code) {
  std::fflush(stdout);
  std::istringstream lines(error.what());
  for (std::string line; std::getline(lines, line);) {
    std::fprintf(stderr, "muster: %s\n", line.c_str());
  }
  return exit_code;
}

int run_guarded(int argc, char** argv) {
  try {
    return Program().run(argc, argv);
  } catch (const Invalid& error) {
    return fail(error, error.exit_code());
  } catch (const WriteError& error) {
    return fail(error, kCannotWrite);
  } catch (const Unavailable& error) {
    return fail(error, kUnavailable);
  } catch (const std::exception& error) {
    if (const auto limit = limit_words(error)) return fail(Unavailable(*limit), kUnavailable);
    return fail(error, kInternal);
  }
}

}  // namespace

}  // namespace muster::cmd

int main(int argc, char** argv) {
  using namespace muster;
  occupy_standard_descriptors();
  survive_large_writes();
  setenv("MUSTER_LOG_FORMAT", "text", 0);  // for people, whatever standard error is
  log::initialize("muster");
  return finish_output("muster", cmd::run_guarded(argc, argv));
}
