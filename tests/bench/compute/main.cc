// Microseconds a training step of the models that the project's figures are about, with a probe of
// the machine before and after: `bench_compute [--phases] [--threads=N] [NAME...]`; or, for the
// rows of `make bench`, a line of JSON: `bench_compute --json [--seconds=N] [--threads=N] NAME`.
// With --device=cuda it measures the first GPU, and with --rows=N other batches than the model's. A
// GPU keeps the samples; with --copied each batch comes from the host's memory.

#include <sys/resource.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/threads/cpu_budget.h"
#include "trainer/compute/aligned.h"
#include "trainer/compute/cpu/engine.h"
#include "trainer/compute/engine.h"
#include "trainer/compute/initialize.h"
#include "trainer/compute/models/catalogue.h"
#include "trainer/compute/random.h"
#include "trainer/detection/objects.h"

namespace muster::compute {
namespace {

double microseconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<uint8_t> read_gzip(const std::string& path, size_t skip) {
  std::vector<uint8_t> bytes;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return bytes;
  uint8_t block[1 << 16];
  for (int n = 0; (n = gzread(file, block, sizeof block)) > 0;) {
    bytes.insert(bytes.end(), block, block + n);
  }
  gzclose(file);
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<long>(std::min(skip, bytes.size())));
  return bytes;
}

// Samples in memory: bytes of MNIST, floats without zeros, rows of a table with a target of 0 or 1,
// or images with a class or with objects.
struct Samples {
  ElementType type = ElementType::uint8;
  size_t width = 784;
  int64_t size = 0;  // of images: height and width
  std::vector<uint8_t> bytes;
  std::vector<float> floats;
  std::vector<int32_t> labels;
  std::vector<float> targets;  // of each sample, of this many floats: an ObjectList, or a number
  size_t target_floats = detection::ObjectList::floats(detection::ObjectList::kMost);

  const void* row(size_t i) const {
    if (type == ElementType::uint8) return &bytes[i * width];
    return &floats[i * width];
  }
  const float* target(size_t i) const { return &targets[i * target_floats]; }
  std::span<const std::byte> memory() const {
    return type == ElementType::uint8 ? std::as_bytes(std::span(bytes))
                                      : std::as_bytes(std::span(floats));
  }
};

// Noise, with three objects in each image.
Samples images(size_t count, size_t size) {
  Samples samples;
  samples.type = ElementType::float32;
  samples.size = static_cast<int64_t>(size);
  samples.width = size * size * 3;
  samples.floats.resize(count * samples.width);
  for (size_t i = 0; i < samples.floats.size(); ++i)
    samples.floats[i] = static_cast<float>(mix64(i) >> 40) * 0x1p-23f - 1;
  samples.targets.resize(count * samples.target_floats);
  for (size_t i = 0; i < count; ++i) {
    samples.labels.push_back(static_cast<int32_t>(i));
    std::vector<detection::Object> objects(3);
    for (size_t j = 0; j < objects.size(); ++j) {
      const float at = 0.1f + 0.2f * static_cast<float>(j);
      objects[j].box = {at, at, at + 0.2f + 0.02f * static_cast<float>(i), at + 0.3f};
      objects[j].label = static_cast<int32_t>(10 * j + i);
    }
    const auto edge = static_cast<float>(size);
    detection::write_objects(
        edge, edge, objects,
        std::span(samples.targets).subspan(i * samples.target_floats, samples.target_floats));
  }
  return samples;
}

Samples mnist() {
  const std::string folder = std::string(MUSTER_SOURCE_DIR) + "/examples/data/mnist/";
  Samples samples;
  samples.bytes = read_gzip(folder + "train-images-idx3-ubyte.gz", 16);
  for (uint8_t label : read_gzip(folder + "train-labels-idx1-ubyte.gz", 8)) {
    samples.labels.push_back(label);
  }
  return samples;
}

Samples without_zeros(const Samples& from) {
  Samples samples;
  samples.type = ElementType::float32;
  samples.labels = from.labels;
  samples.labels.resize(8192);
  samples.floats.resize(samples.labels.size() * 784);
  for (size_t i = 0; i < samples.floats.size(); ++i) {
    samples.floats[i] = float(from.bytes[i]) / 255.0f * 0.9f + 0.05f;
  }
  return samples;
}

Samples table_rows() {
  Samples samples;
  samples.type = ElementType::float32;
  samples.width = 30;
  samples.target_floats = 1;
  samples.labels.resize(51'200);
  samples.floats.resize(samples.labels.size() * samples.width);
  for (size_t i = 0; i < samples.floats.size(); ++i)
    samples.floats[i] = static_cast<float>(mix64(i) >> 40) * 0x1p-23f - 1;
  for (size_t i = 0; i < samples.labels.size(); ++i)
    samples.targets.push_back(samples.floats[i * samples.width] > 0 ? 1.0f : 0.0f);
  return samples;
}

struct Work {
  std::string name;
  std::vector<int64_t> units;  // of dense layers; none: the model of this name in the catalogue
  Activation activation;
  int64_t rows;
  OptimizerSpec optimizer;
  const Samples* samples;
  int steps;
  bool copied = false;  // see Run::Buffer
};

ModelSpec model_of(const Work& work) {
  ModelSpec model;
  if (work.units.empty()) {
    model = find_model(work.name).value();
    if (work.samples->size > 0) model.input_shape = {work.samples->size, work.samples->size, 3};
    return model;
  }
  model.name = work.name;
  model.input_shape = {static_cast<int64_t>(work.samples->width)};
  model.label_count = work.units.back();
  if (!work.samples->targets.empty()) model.loss = BinaryCrossEntropy{};
  for (size_t i = 0; i < work.units.size(); ++i) {
    Dense dense;
    dense.units = work.units[i];
    dense.activation = i + 1 < work.units.size() ? work.activation : Activation::linear;
    model.layers.push_back({"layer_" + std::to_string(i), dense, {}, true});
  }
  return model;
}

class Run {
 public:
  Run(const Work& work, const EngineOptions& asked) : work_(work) {
    EngineOptions options = asked;
    options.max_rows = work.rows;
    engine_ = Engine::create(model_of(work), options);
    optimizer_ = Optimizer::create(work.optimizer, engine_->layout());
    HostView parameters(engine_->parameters());
    initialize_parameters(engine_->layout(), 1, parameters.values());
    parameters.store();
    storage_ = allocate_slots(*engine_, *optimizer_);
    for (const auto& slot : storage_) slots_.push_back(slot.get());
    make_buffers(work.copied);
  }
  ~Run() {
    for (; begun_ > 0; --begun_) engine_->end_training();
  }

  // A device that trains ahead has always begun the next step when it ends one, as in a job.
  LossSums step() {
    if (!engine_->trains_ahead(*optimizer_)) {
      const auto [batch, update] = next();
      return engine_->train(batch, *optimizer_, update, slots_);
    }
    for (; begun_ < Engine::kMostAhead; ++begun_) {
      const auto [batch, update] = next();
      engine_->begin_training(batch, *optimizer_, update, slots_);
    }
    --begun_;
    return engine_->end_training();
  }

  Engine& engine() { return *engine_; }
  cpu::CpuEngine& cpu_engine() { return dynamic_cast<cpu::CpuEngine&>(*engine_); }

 private:
  std::pair<Batch, UpdateArguments> next() {
    if (made_ == steps_) fill();
    const Batch batch = made();
    ++steps_;
    UpdateArguments update;
    update.t = ++t_;
    return {batch, update};
  }

  // The run has batches in memory and hands them out in turn, as a data pipeline does.
  struct Buffer {
    std::vector<std::byte> copies;  // of features
    std::vector<const void*> features;
    std::vector<int32_t> labels;
    std::vector<const float*> targets;
  };

  void make_buffers(bool copied) {
    const Samples& samples = *work_.samples;
    const auto rows = static_cast<size_t>(work_.rows);
    const size_t bytes = samples.width * bytes_of(samples.type);
    for (Buffer& buffer : buffers_) {
      buffer.copies.resize(copied ? rows * bytes : 0);
      buffer.features.resize(rows);
      buffer.labels.resize(rows);
      if (!samples.targets.empty()) buffer.targets.resize(rows);
      if (copied) served_.push_back(engine_->serve(buffer.copies, Content::changing));
      for (size_t r = 0; r < rows && copied; ++r) {
        std::byte* to = &buffer.copies[r * bytes];
        std::memcpy(to, samples.row(r % samples.labels.size()), bytes);
        buffer.features[r] = to;
      }
    }
    if (!copied) served_.push_back(engine_->serve(samples.memory(), Content::constant));
    engine_->set_meanwhile([this] {
      fill();
      engine_->prepare(made());
    });
  }

  // Makes the next batch. What is copied stays what it is: the copies are the work of others.
  void fill() {
    Buffer& buffer = buffers_[made_++ % buffers_.size()];
    for (size_t r = 0; r < buffer.features.size(); ++r) {
      const size_t i = buffer.copies.empty() ? mix64(at_++) % work_.samples->labels.size()
                                             : r % work_.samples->labels.size();
      if (buffer.copies.empty()) buffer.features[r] = work_.samples->row(i);
      buffer.labels[r] = work_.samples->labels[i];
      if (!buffer.targets.empty()) buffer.targets[r] = work_.samples->target(i);
    }
  }

  // Returns the batch of the next step, or the one after it if that is made already.
  Batch made() const {
    const Buffer& buffer = buffers_[(made_ - 1) % buffers_.size()];
    Batch batch;
    batch.rows = work_.rows;
    batch.type = work_.samples->type;
    batch.features = buffer.features;
    batch.labels = buffer.labels;
    batch.targets = buffer.targets;
    batch.scale = batch.type == ElementType::uint8 ? 1.0f / 255.0f : 1.0f;
    return batch;
  }

  const Work& work_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<std::unique_ptr<Memory>> storage_;
  std::vector<Memory*> slots_;
  std::array<Buffer, 2> buffers_;
  std::vector<std::shared_ptr<void>> served_;  // it ends before the engine and the buffers
  uint64_t made_ = 0, steps_ = 0;              // batches
  uint64_t at_ = 0, t_ = 0;
  int begun_ = 0;  // steps that are not ended
};

double ticks_per_microsecond() {
  const double start = microseconds_now();
  const uint64_t ticks = __builtin_ia32_rdtsc();
  while (microseconds_now() - start < 20000) {
  }
  return double(__builtin_ia32_rdtsc() - ticks) / (microseconds_now() - start);
}

void print_phases(Run& run, int steps, double rate) {
  run.cpu_engine().profile(true);
  std::vector<std::vector<double>> times;
  for (int i = 0; i < steps; ++i) {
    run.step();
    const auto phases = run.cpu_engine().phase_times();
    times.resize(phases.size());
    for (size_t p = 0; p < phases.size(); ++p) times[p].push_back(double(phases[p].ticks) / rate);
  }
  const auto phases = run.cpu_engine().phase_times();
  for (size_t p = 0; p < phases.size(); ++p) {
    std::printf("    %-32s %8.1f us (least %.1f)\n", phases[p].name.c_str(), median(times[p]),
                *std::min_element(times[p].begin(), times[p].end()));
  }
  run.cpu_engine().profile(false);
}

void measure(const Work& work, const EngineOptions& options, bool phases, double rate) {
  Run run(work, options);
  LossSums sums;
  for (int i = 0; i < std::max(3, work.steps / 4); ++i) sums = run.step();
  std::vector<double> each, blocks;
  for (int repeat = 0; repeat < 7; ++repeat) {
    const double start = microseconds_now();
    for (int i = 0; i < work.steps; ++i) {
      const double before = microseconds_now();
      sums = run.step();
      each.push_back(microseconds_now() - before);
    }
    blocks.push_back((microseconds_now() - start) / work.steps);
  }
  std::sort(each.begin(), each.end());
  std::printf(
      "%-14s %-9s %9.1f us/step (median of 7 x %d; best block %.1f, least step %.1f)  loss %.4f\n",
      work.name.c_str(), run.engine().instruction_set().c_str(), median(blocks), work.steps,
      *std::min_element(blocks.begin(), blocks.end()), each.front(), sums.loss / double(sums.rows));
  if (phases) print_phases(run, std::min(work.steps, 500), rate);
  std::fflush(stdout);
}

// Nanoseconds a barrier of `threads`, and GB/s of copying 32 MB.
void probe(int threads) {
  host::Team team(threads, true);
  constexpr int kBarriers = 2000;
  std::vector<double> each;
  const std::function<void(host::TeamThread)> work = [&](host::TeamThread thread) {
    for (int i = 0; i < kBarriers; ++i) team.barrier(thread);
  };
  for (int repeat = 0; repeat < 9; ++repeat) {
    const double start = microseconds_now();
    team.run(work);
    each.push_back((microseconds_now() - start) * 1000 / kBarriers);
  }
  std::vector<char> from(32 << 20, 1), to(32 << 20, 2);
  std::vector<double> rates;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double start = microseconds_now();
    std::memcpy(to.data(), from.data(), from.size());
    rates.push_back(double(from.size()) / (microseconds_now() - start) / 1000);
  }
  std::printf("probe: barrier of %d threads %.0f ns, memcpy %.1f GB/s\n", threads, median(each),
              median(rates));
}

// One line: steps a second over about so many seconds, and the peak of resident memory.
void measure_as_json(const Work& work, const EngineOptions& options, double most) {
  Run run(work, options);
  for (int i = 0; i < 3; ++i) run.step();
  int done = 0;
  const double start = microseconds_now();
  double seconds = 0;
  for (; seconds < most; seconds = (microseconds_now() - start) / 1e6, ++done) run.step();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("{\"stepsPerSecond\": %.4f, \"imagesPerSecond\": %.3f, \"peakMegabytes\": %.1f}\n",
              done / seconds, double(done * work.rows) / seconds, double(usage.ru_maxrss) / 1024);
}

int main_of(const std::vector<std::string>& arguments) {
  const Samples sparse = mnist();
  if (sparse.labels.empty()) {
    std::fprintf(stderr, "no MNIST in examples/data/mnist\n");
    return 1;
  }
  const Samples dense = without_zeros(sparse), table = table_rows();
  const Samples large = images(8, 300), middle = images(16, 224);
  const std::vector<Work> works = {
      {"mlp-sparse", {256, 256, 10}, Activation::relu, 32, Adam{}, &sparse, 400},
      {"mlp-dense", {256, 256, 10}, Activation::relu, 32, Adam{}, &dense, 400},
      {"sigmoid", {100, 10}, Activation::sigmoid, 100, Sgd{}, &sparse, 400},
      {"table", {128, 64, 1}, Activation::relu, 256, Adam{}, &table, 400},
      {"mnist-cnn", {}, Activation::relu, 32, Adam{}, &sparse, 20},
      {"ssd-mobilenet-v1", {}, Activation::relu, 8, RmsProp{0.9f, 0.9f, 1.0f}, &large, 2},
      {"mobilenet-v1", {}, Activation::relu, 16, RmsProp{0.9f, 0.9f, 1.0f}, &middle, 2},
      {"wide-4096", {4096, 4096, 10}, Activation::relu, 32, Adam{}, &sparse, 10},
  };
  const double rate = ticks_per_microsecond();
  bool phases = false, any = true, json = false, copied = false;
  EngineOptions options;
  int64_t rows = 0;
  double seconds = 15;
  int most = std::min(2, cpu_budget()), least = 1;
  for (const std::string& argument : arguments) {
    if (argument == "--phases") {
      phases = true;
    } else if (argument == "--json") {
      json = true;
    } else if (argument == "--bfloat16") {
      options.precision = Precision::bfloat16;
    } else if (argument == "--device=cuda") {
      options.device = {DeviceKind::cuda, 0};
    } else if (argument.rfind("--rows=", 0) == 0) {
      rows = std::max(1, std::atoi(argument.c_str() + 7));
    } else if (argument.rfind("--seconds=", 0) == 0) {
      seconds = std::max(1, std::atoi(argument.c_str() + 10));
    } else if (argument == "--copied") {
      copied = true;
    } else if (argument.rfind("--threads=", 0) == 0) {
      most = least = std::max(1, std::atoi(argument.c_str() + 10));
    } else {
      any = false;
    }
  }
  if (!json) probe(most);
  if (options.device.kind == DeviceKind::cuda) least = most;
  for (Work work : works) {
    if (rows > 0) work.rows = rows;
    work.copied = copied;
    const bool named = std::find(arguments.begin(), arguments.end(), work.name) != arguments.end();
    if (!any && !named) continue;
    options.threads = most;
    if (json) {
      measure_as_json(work, options, seconds);
      continue;
    }
    for (; options.threads >= least; --options.threads) measure(work, options, phases, rate);
  }
  if (!json) probe(most);
  return 0;
}

}  // namespace
}  // namespace muster::compute

int main(int argc, char** argv) {
  return muster::compute::main_of(std::vector<std::string>(argv + 1, argv + argc));
}
