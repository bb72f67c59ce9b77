#include "tests/unit/trainer/loop/support.h"

#include "common/system/file.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::loop {

std::filesystem::path fresh_folder(const std::string& name) {
  static const test::TemporaryFolder program;
  const std::filesystem::path folder = program.path() / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

std::filesystem::path write_training(const std::filesystem::path& folder, const std::string& more) {
  const std::string text = R"(
model:
  layers:
    - dense: {name: hidden, units: 16, activation: relu}
    - batchNormalization: {}
    - dropout: {rate: 0.1}
    - dense: {name: logits, units: 4}
data:
  train: {syntheticClasses: {samples: 330, shape: [8], classes: 4}}
  validation: {syntheticClasses: {samples: 100, shape: [8], classes: 4}}
  test: {syntheticClasses: {samples: 50, shape: [8], classes: 4}}
batchSize: 32
threads: 1
)";
  const std::filesystem::path path = folder / "training.yaml";
  write_file_atomically(path, text + more);
  return path;
}

group::Membership alone(const std::filesystem::path& folder,
                        const std::filesystem::path& training) {
  group::Membership membership;
  membership.training = training;
  membership.storage = folder / "job";
  return membership;
}

}  // namespace muster::loop
