// What one thread makes of files, as a line of JSON:
// `bench_input FILES LABEL_MAP`: images a second that are decoded and augmented, as training a
// detector does, of a pattern of TFRecords and their label map.
// `bench_input SOURCE`: samples for each CPU second from the opening of a table to the last batch
// of its first epoch. SOURCE is data.train as JSON.

#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/documents/json.h"
#include "trainer/data/batches/batcher.h"
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

double cpu_seconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void measure_table(const char* source) {
  const double begin = cpu_seconds_now();
  const auto dataset = open_dataset(spec::to_source(Json::parse(source), false));
  constexpr int64_t kRows = 256;
  Batcher batcher(*dataset, kRows);
  BatchBuffer buffer(*dataset, kRows);
  uint64_t done = 0;
  for (uint64_t number = 0; done < dataset->size(); ++number)
    done += static_cast<uint64_t>(batcher.fill(buffer, 0, number).rows);
  std::printf("{\"samplesPerSecond\": %.1f}\n",
              static_cast<double>(done) / (cpu_seconds_now() - begin));
}

}  // namespace
}  // namespace muster::data

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: bench_input FILES LABEL_MAP, or bench_input SOURCE\n");
    return 64;
  }
  try {
    if (argc == 2)
      muster::data::measure_table(argv[1]);
    else
      muster::data::measure(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_input: %s\n", error.what());
    return 1;
  }
  return 0;
}
