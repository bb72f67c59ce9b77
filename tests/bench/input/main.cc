// Images a second that one thread decodes and augments, as training a detector does:
// `bench_input FILES LABEL_MAP`, a pattern of TFRecords and their label map. It prints a line of
// JSON.

#include <chrono>
#include <cstdio>
#include <exception>
#include <vector>

#include "common/documents/json.h"
#include "trainer/data/sources/source.h"
#include "trainer/spec/data_source.h"

namespace muster::data {
namespace {

double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

void measure(const char* files, const char* label_map) {
  const Json source = {{"tfRecord",
                        {{"files", files},
                         {"labelMap", label_map},
                         {"labels", "objects"},
                         {"imageSize", {300, 300}},
                         {"scale", 2.0 / 255},
                         {"offset", -1}}}};
  const auto dataset = open_dataset(spec::to_source(source, false));
  const Augmentation augmentation({spec::Flip{}, spec::SsdRandomCrop{}}, 1);
  std::vector<std::byte> features(dataset->format().bytes());
  std::vector<float> target(static_cast<size_t>(dataset->label_count()));
  Row row{.features_memory = features.data(), .target_memory = target.data()};
  Sample workspace;
  uint64_t done = 0;
  double begin = 0, seconds = 0;
  for (uint64_t position = 0; seconds < 8; ++position) {
    dataset->fill({.sample = position % dataset->size(), .position = position}, augmentation,
                  workspace, row);
    if (position == 2 * dataset->size()) begin = seconds_now();  // all before is warming up
    if (begin == 0) continue;
    seconds = seconds_now() - begin;
    ++done;
  }
  std::printf("{\"imagesPerSecond\": %.2f}\n", static_cast<double>(done) / seconds);
}

}  // namespace
}  // namespace muster::data

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bench_input FILES LABEL_MAP\n");
    return 64;
  }
  try {
    muster::data::measure(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_input: %s\n", error.what());
    return 1;
  }
  return 0;
}
