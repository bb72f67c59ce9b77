#include "operator/cmd/data_check.h"

#include <algorithm>
#include <optional>
#include <set>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/output.h"
#include "trainer/data/look.h"
#include "trainer/spec/training_spec.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;
using api::Role;

class DataCheck {
 public:
  DataCheck(const JobSource& source, FILE* out)
      : source_(source), out_(out), data_(spec::to_training_spec(source.job.training).data) {}

  void run() {
    for (const Role role : {Role::chief, Role::worker}) {
      if (const auto folder = trainer_folder(source_, role))
        check("train", data_.train, *folder, false);
    }
    const bool evaluates_apart = has_role(source_.job, Role::evaluator);
    const Role evaluates = evaluates_apart ? Role::evaluator : leader_of(source_.job);
    if (const auto folder = trainer_folder(source_, evaluates)) {
      if (data_.validation) check("validation", *data_.validation, *folder, evaluates_apart);
      if (data_.test) check("test", *data_.test, *folder, evaluates_apart);
    }
    if (!problems_.empty()) throw Invalid(problems_, kBadInput);
  }

 private:
  void check(const std::string& part, spec::DataSource source, const fs::path& folder, bool whole) {
    if (source.kind != spec::SourceKind::idx) return;
    source.images = (folder / source.images).lexically_normal();
    source.labels = (folder / source.labels).lexically_normal();
    if (!seen_.insert({part, source.images, source.labels}).second) return;
    const std::string path = "spec.training.data." + part + ".idx";
    const std::vector<data::UnreadableFile> unreadable = data::unreadable_files(source);
    for (const auto& [field, why] : unreadable) report(path + "." + field, why);
    const bool is_trained_on = seen_.contains({"train", source.images, source.labels});
    if (!unreadable.empty() || !whole || is_trained_on) return;
    print(out_, "reading the {} data to their end: {}\n", part, source.images.string());
    std::fflush(out_);
    try {
      data::read_through(source);
    } catch (const Invalid& error) {
      report(path, error.what());
    }
  }

  void report(const std::string& path, const std::string& why) {
    problems_ += problems_.empty() ? "" : "\n";
    problems_ += source_.document.locate(path) + ": " + path + ": " + why;
  }

  const JobSource& source_;
  FILE* const out_;
  const spec::DataSpec data_;
  std::set<std::vector<std::string>> seen_;  // part, images, labels
  std::string problems_;
};

}  // namespace

void require_data(const JobSource& source, FILE* out) {
  if (!source.job.training.is_null()) DataCheck(source, out).run();
}

}  // namespace muster::cmd
