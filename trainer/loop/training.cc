#include "trainer/loop/training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/digest.h"
#include "common/documents/json.h"
#include "common/documents/problems.h"
#include "common/environment.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/text/whole_number.h"
#include "common/threads/cpu_budget.h"
#include "trainer/checkpoint/store/store.h"
#include "trainer/compute/cuda/gpus.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/layers/layer.h"
#include "trainer/compute/loss.h"
#include "trainer/data/sources/look.h"
#include "trainer/data/sources/table_source.h"
#include "trainer/group/address.h"
#include "trainer/spec/check.h"
#include "trainer/spec/convert.h"
#include "trainer/spec/open_classes.h"

namespace muster::loop {

namespace {

// Refuses, by name, each setting that a job may have but this build does not support, so that none
// is silently ignored.
void require_available(const Training& training) {
  const auto& devices = compute::device_choices();
  Problems problems(training.document);
  const auto refuse = [&](const char* field, const std::string& expected,
                          const std::string& found) {
    problems.report(
        field, expected,
        describe(Json(found)) +
            ", which is not available in this build (docs/guides/gpu.md says how to build "
            "with CUDA)");
  };
  const spec::TrainingSpec& spec = training.spec;
  if (std::ranges::find(devices, spec.device) == devices.end())
    refuse("device", fmt::format("{}", fmt::join(devices, " or ")), spec.device);
  require_no_problems(problems.sorted(), kBadConfig);
}

Training to_training(Document document) {
  Training training;
  training.document = std::move(document);
  training.json = training.document.value();
  training.spec = spec::to_training_spec(training.json);
  training.fingerprint = sha256(training.json.dump());
  require_available(training);
  return training;
}

void give_preparation(spec::DataSource& source, const Json& prepared) {
  auto* table = std::get_if<spec::TableSource>(&source.kind);
  if (table != nullptr && !prepared.is_null()) table->prepared = prepared;
}

// Sets the number of classes of a model that leaves it open to that of the training data. Every
// replica does so and finds the same number; the number is part of the training's fingerprint.
void decide_classes(Document& document, const Json& prepared) {
  Json& training = document.value();
  std::string why;
  spec::fill_in_classes(training, [&](const std::string&, spec::DataSource train) {
    give_preparation(train, prepared);
    auto facts = data::look_at(train);
    if (facts && !facts->malformed.empty()) why = facts->malformed;
    const auto missing = data::unreadable_files(train);
    if (!missing.empty()) why = missing.front().why;
    return facts;
  });
  if (!spec::leaves_classes_open(member(training, "model"))) return;
  Problems problems(document);
  if (why.empty())
    problems.report("model.classes", spec::kExpectedClasses, "none");
  else
    problems.report("data.train", "data that say how many classes the model has", why);
  require_no_problems(problems.sorted(), kBadInput);
}

// Returns what the newest model in the job's folder keeps of the table that it was trained on; null
// if there is none. Only manifests are read: a damaged checkpoint is found when it is restored.
Json kept_preparation(const std::filesystem::path& storage) {
  if (storage.empty()) return nullptr;
  const checkpoint::Store store(storage / "checkpoints", 1);
  for (const checkpoint::FolderName& name : store.list()) {
    try {
      const auto found = checkpoint::Store::read(storage / "checkpoints" / name.text());
      return member(found.manifest.samples, "table");
    } catch (const Invalid&) {
      continue;
    }
  }
  return nullptr;
}

const spec::DataSource& source_of(const spec::DataSpec& data, const std::string& name) {
  if (name == "train") return data.train;
  return name == "test" ? data.test.value() : data.validation.value();
}

// Checks the headers of the files, so that a mismatch is reported with its line in the training.
void check_files(const Training& training, const std::string& name) {
  const auto look_up = [&](const std::string& part, const spec::DataSource& source) {
    if (part != name && part != "train") return std::optional<spec::DataFacts>();
    spec::DataSource looked_at = source;
    // A model keeps what its training data have decided.
    if (auto* table = std::get_if<spec::TableSource>(&looked_at.kind))
      table->prepared = source_of(training.spec.data, part).table()->prepared;
    auto facts = data::look_at(looked_at);
    if (facts && part != name && !facts->malformed.empty()) facts.reset();
    return facts;
  };
  Problems problems(training.document);
  spec::check_training(training.document, "", problems, look_up);
  require_no_problems(problems.sorted(), kBadInput);
}

void check_labels(const data::Dataset& dataset, const std::string& name,
                  compute::ModelSpec& model) {
  const compute::LossDescription& loss = compute::describe(model.loss);
  if (loss.labels != dataset.label_kind() || dataset.label_count() == 0)
    throw Invalid(
        "data." + name + ": expected " + compute::words_of(loss.labels) + " for " + loss.name +
        ", found " +
        (dataset.label_count() == 0 ? "no labels" : compute::words_of(dataset.label_kind())));
  if (model.label_count == 0) model.label_count = dataset.label_count();
  if (loss.labels == compute::LabelKind::classes) {
    data::require_labels_below(dataset, model.label_count);
  } else if (dataset.label_count() != model.label_count) {
    throw Invalid("data." + name + ": expected targets of " + std::to_string(model.label_count) +
                  " floats, found " + std::to_string(dataset.label_count()));
  } else if (loss.has_target_bounds()) {
    try {
      data::require_targets_within(dataset, loss.least_target, loss.most_target);
    } catch (const Invalid& error) {
      throw Invalid("data." + name + ": " + error.what() + ", for the model's loss is " +
                    loss.name);
    }
  }
  const auto* detector = std::get_if<compute::SsdLoss>(&model.loss);
  if (detector != nullptr && dataset.object_classes() > detector->classes)
    throw Invalid("data." + name + ": expected at most " + std::to_string(detector->classes) +
                  " classes of objects, as the model has, found " +
                  std::to_string(dataset.object_classes()));
}

void check_dataset(const data::Dataset& dataset, const std::string& name,
                   compute::ModelSpec& model) {
  if (dataset.size() == 0) throw Invalid("data." + name + ": expected samples, found none");
  const std::optional<int64_t> width = compute::element_count(dataset.format().shape);
  if (!width)
    throw Invalid("data." + name + ": expected samples with " + compute::kCountable + ", found " +
                  compute::to_string(dataset.format().shape));
  if (model.input_shape.empty()) model.input_shape = dataset.format().shape;
  if (compute::element_count(model.input_shape) != width)
    throw Invalid("data." + name + ": model \"" + model.name + "\" expects samples of " +
                  compute::to_string(model.input_shape) + ", found " +
                  compute::to_string(dataset.format().shape));
  check_labels(dataset, name, model);
}

// `threads` is the device's number of threads; 0: the CPU budget.
Feed::Options feed_options(const spec::TrainingSpec& spec, bool distributed, int threads) {
  Feed::Options options;
  options.shuffle = spec.data.train.shuffle;
  options.seed = spec.seed;
  options.prefetch = spec.data.train.prefetch;
  options.accumulation = spec.gradient_accumulation;
  options.in_turn = spec.policy == spec::SyncPolicy::sync || !distributed;
  options.augment = spec.data.train.augment;
  options.threads = threads > 0 ? threads : cpu_budget();
  return options;
}

// Replaces `devices: auto`. Replicas of a job get a number; a process that trains alone counts the
// devices that it can use.
void count_devices(Document& document) {
  Json* devices = document.find("devices");
  if (devices == nullptr || *devices != "auto") return;
  const bool on_cpu = *document.find("device") == compute::name_of(compute::DeviceKind::cpu);
  *devices = on_cpu ? 1 : std::clamp(compute::cuda::gpu_count(), 1, 64);
}

}  // namespace

Training Training::load(const std::filesystem::path& path, const std::filesystem::path& storage) {
  Document document = spec::load_training(path);
  count_devices(document);
  const Json& train = member(member(document.value(), "data"), "train");
  const Json kept = given(train, "table") ? kept_preparation(storage) : nullptr;
  decide_classes(document, kept);
  Training training = to_training(std::move(document));
  spec::DataSpec& data = training.spec.data;
  if (!kept.is_null() && data.train.table() != nullptr)
    use_preparation(data, data::continue_preparation(data.train, kept));
  return training;
}

Training Training::from_json(const Json& json, const std::string& source) {
  Document document = Document::parse(json.dump(), source);
  require_no_problems(spec::validate_training(document), kBadConfig);
  return to_training(std::move(document));
}

ThreadChoice ThreadChoice::from_environment(int spec_threads) {
  ThreadChoice choice;
  choice.threads = spec_threads;
  const std::string text = environment_variable("MUSTER_THREADS");
  if (text.empty()) return choice;
  const auto number = whole_number<int>(text, 1, 1024);
  if (!number)
    throw Invalid("MUSTER_THREADS: expected 1 to 1024, found \"" + text + "\"", kBadConfig);
  if (spec_threads == 0) choice.threads = *number;
  choice.exclusive = false;
  return choice;
}

std::unique_ptr<data::Dataset> open_for(const Training& training, const std::string& name,
                                        compute::ModelSpec& model) {
  check_files(training, name);
  auto dataset = data::open_dataset(source_of(training.spec.data, name));
  check_dataset(*dataset, name, model);
  return dataset;
}

data::TrainingData open_to_train(const Training& training, const data::Replicas& replicas,
                                 compute::ModelSpec& model) {
  check_files(training, "train");
  data::TrainingData data =
      data::open_training_data(training.spec.data.train, replicas, batch_rule(training.spec));
  check_dataset(*data.samples, "train", model);
  return data;
}

void use_preparation(spec::DataSpec& data, const Json& prepared) {
  give_preparation(data.train, prepared);
  if (data.validation) give_preparation(*data.validation, prepared);
  if (data.test) give_preparation(*data.test, prepared);
}

void take_label_count_from_layers(compute::ModelSpec& model) {
  if (model.label_count == 0)
    model.label_count = compute::check_graph(model).outputs / compute::outputs_for_each(model.loss);
}

// Raise this with each change after which the same engine computes other bits.
constexpr int kArithmetic = 2;

std::string Assembly::layout_fingerprint() const {
  const Json& table = train->format().table;
  return engine->layout().fingerprint() +
         (table.is_null() ? "" : " with the table " + sha256(table.dump()).substr(0, 16));
}

std::string Assembly::determinism_fingerprint() const {
  return "muster " + group::version() + ", arithmetic " + std::to_string(kArithmetic) + "; " +
         engine->instruction_set() + "; " + compute::name_of(spec().precision) + "; " +
         std::to_string(engine->threads()) + " threads";
}

std::vector<compute::Engine*> Assembly::engines() const {
  std::vector<compute::Engine*> engines;
  for (const FedEngine& device : devices()) engines.push_back(&device.engine);
  return engines;
}

std::vector<FedEngine> Assembly::devices() const {
  std::vector<FedEngine> devices{{*engine, *feed}};
  for (size_t i = 0; i < more_engines.size(); ++i)
    devices.push_back({*more_engines[i], *more_feeds[i]});
  return devices;
}

double Assembly::input_wait_seconds() const {
  double longest = feed->waited_seconds();
  for (const auto& other : more_feeds) longest = std::max(longest, other->waited_seconds());
  return longest;
}

int Assembly::threads() const {
  return engine->threads() * (1 + static_cast<int>(more_engines.size()));
}

namespace {

void require_no_evaluation(const spec::TrainingSpec& spec, const std::string& where) {
  if (!spec.evaluate_every_epochs) return;
  throw Invalid("evaluation: expected none " + where, kBadConfig);
}

// Returns the options of one device, with its share of the replica's threads.
compute::EngineOptions engine_options(const spec::TrainingSpec& spec, const ThreadChoice& threads) {
  compute::EngineOptions options;
  options.max_rows = spec.batch_size;
  options.threads = threads.threads;
  options.seed = spec.seed;
  options.precision = spec.precision;
  // Threads that make samples need the cores too.
  options.exclusive =
      threads.exclusive && spec.data.train.augment.empty() && spec.data.train.images() == nullptr;
  if (spec.devices == 1) return options;
  const int all = threads.threads > 0 ? threads.threads : cpu_budget();
  options.threads = std::max(1, all / spec.devices);
  options.exclusive &= all >= spec.devices;
  return options;
}

}  // namespace

Assembly assemble(Training training, int members, bool distributed, const ThreadChoice& threads,
                  int rank, const MakeEngine& create) {
  Assembly assembly;
  spec::TrainingSpec& spec = training.spec;
  if (distributed)
    require_no_evaluation(spec, "with parameter servers: an evaluator evaluates every checkpoint");
  const int replicas = members * spec.devices;
  data::TrainingData data =
      open_to_train(training, {rank * spec.devices, spec.devices, replicas}, spec.model);
  assembly.train = std::move(data.samples);
  assembly.workload = std::make_unique<Workload>(spec, data.shards, replicas, distributed);
  const compute::EngineOptions options = engine_options(spec, threads);
  const auto make_feed = [&] {
    return std::make_unique<Feed>(*assembly.train, data.shards,
                                  feed_options(spec, distributed, options.threads));
  };
  const auto devices = compute::choose_devices(spec.device, spec.devices);
  const std::string why_no_gpu = compute::cuda::why_no_gpu();
  if (spec.device == "auto" && !why_no_gpu.empty()) log::info("no GPU: " + why_no_gpu);
  const auto make_engine = [&](const compute::Device& device) {
    compute::EngineOptions own = options;
    own.device = device;
    return create(spec.model, own);
  };
  assembly.engine = make_engine(devices[0]);
  assembly.optimizer = compute::Optimizer::create(spec.optimizer, assembly.engine->layout());
  assembly.feed = make_feed();
  assembly.feed->connect(*assembly.engine);
  for (size_t i = 1; i < devices.size(); ++i) {
    assembly.more_engines.push_back(make_engine(devices[i]));
    assembly.more_feeds.push_back(make_feed());
    assembly.more_feeds.back()->connect(*assembly.more_engines.back());
  }
  assembly.training = std::move(training);
  return assembly;
}

Assembly assemble_member(Training training, const group::Membership& membership,
                         const ThreadChoice& threads) {
  return assemble(std::move(training), membership.members(), membership.distributed(), threads,
                  membership.rank());
}

}  // namespace muster::loop
