#include "operator/cmd/job/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "trainer/data/sources/look.h"
#include "trainer/spec/convert.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;
using api::Role;

constexpr size_t kMostNamed = 10;  // most unreadable files that an error names

class DataCheck {
 public:
  DataCheck(const JobSource& source, FILE* out)
      : source_(source), out_(out), training_(spec::to_training_spec(source.job.training)) {}

  void run() {
    for (const Role role : {Role::chief, Role::worker}) {
      if (const auto folder = trainer_folder(source_, role))
        check("train", training_.data.train, *folder, false);
    }
    check_shards();
    const bool evaluates_apart = has_role(source_.job, Role::evaluator);
    const Role evaluates = evaluates_apart ? Role::evaluator : leader_of(source_.job);
    if (const auto folder = trainer_folder(source_, evaluates)) {
      if (training_.data.validation)
        check("validation", *training_.data.validation, *folder, evaluates_apart);
      if (training_.data.test) check("test", *training_.data.test, *folder, evaluates_apart);
    }
    if (!problems_.empty()) throw Invalid(problems_, kBadInput);
  }

 private:
  void check_shards() {
    if (training_.data.train.shard != spec::ShardBy::file) return;
    const size_t files = count_files(), replicas = computing_replicas();
    if (files < replicas)
      report("spec.training.data.train.shard",
             fmt::format("file: expected at least {} files, one for each device of each member, "
                         "found {}",
                         replicas, files));
  }

  // Returns the number of files that are divided among the replicas. Other code reports a pattern
  // without files or a folder that cannot be read.
  size_t count_files() const {
    const spec::DataSource& train = training_.data.train;
    if (const spec::IdxSource* idx = train.idx()) return idx->files.size();
    const auto folder = trainer_folder(source_, leader_of(source_.job));
    if (!folder) return computing_replicas();
    const auto facts = data::look_at(spec::below(*folder, train));
    return facts ? facts->files : computing_replicas();
  }

  size_t computing_replicas() const {
    int members = 0;
    for (const Role role : {Role::chief, Role::worker})
      if (has_role(source_.job, role)) members += source_.job.replicas.at(role).replicas;
    return static_cast<size_t>(members) * static_cast<size_t>(training_.devices);
  }

  void check(const std::string& part, const spec::DataSource& given, const fs::path& folder,
             bool whole) {
    const spec::DataSource source = spec::below(folder, given);
    const std::vector<fs::path> paths = spec::paths_of(source);
    if (paths.empty() || !seen_.insert(key(part, paths)).second) return;
    const std::string path = "spec.training.data." + part + "." + spec::words_of(source).name;
    const std::vector<data::UnreadableFile> unreadable = data::unreadable_files(source);
    report_unreadable(path, unreadable);
    const bool is_trained_on = seen_.contains(key("train", paths));
    const spec::IdxSource* idx = source.idx();
    if (idx == nullptr || !unreadable.empty() || !whole || is_trained_on) return;
    const size_t more = idx->files.size() - 1;
    print(out_, "reading the {} data to their end: {}{}\n", part,
          idx->files.front().images.string(),
          more == 0 ? "" : fmt::format(" and {} more files", more));
    std::fflush(out_);
    try {
      data::read_through(source);
    } catch (const Invalid& error) {
      report(path, error.what());
    }
  }

  static std::vector<std::string> key(const std::string& part, const std::vector<fs::path>& paths) {
    std::vector<std::string> key = {part};
    for (const fs::path& path : paths) key.push_back(path.lexically_normal());
    return key;
  }

  void report_unreadable(const std::string& path, const std::vector<data::UnreadableFile>& files) {
    const size_t named = std::min(files.size(), kMostNamed);
    for (size_t i = 0; i < named; ++i) report(path + "." + files[i].field, files[i].why);
    if (files.size() == named) return;
    report(path, fmt::format("{} more files cannot be read", files.size() - named));
  }

  void report(const std::string& path, const std::string& why) {
    problems_ += problems_.empty() ? "" : "\n";
    problems_ += source_.document.locate(path) + ": " + path + ": " + why;
  }

  const JobSource& source_;
  FILE* const out_;
  const spec::TrainingSpec training_;
  std::set<std::vector<std::string>> seen_;  // part and files
  std::string problems_;
};

}  // namespace

void require_data(const JobSource& source, FILE* out) {
  if (!source.job.training.is_null()) DataCheck(source, out).run();
}

}  // namespace muster::cmd
