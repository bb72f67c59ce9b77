#include "trainer/loop/synchronizers/ps_synchronizer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <thread>

#include "common/digest.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/program/stopwatch.h"
#include "common/program/time_ledger.h"
#include "common/text/shorten.h"
#include "common/threads/doorbell.h"
#include "common/threads/watched_work.h"
#include "trainer/checkpoint/files/manifest.h"
#include "trainer/group/backoff.h"
#include "trainer/group/membership.h"
#include "trainer/ps/group/ps_formation.h"
#include "trainer/ps/shard/replicated_shard.h"

namespace muster::loop {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kSnapshot{10000};
constexpr milliseconds kAgreement{2000};
constexpr milliseconds kLastCommit{500};
constexpr milliseconds kWrite{600000};
constexpr milliseconds kHurry{2000};

// Checks a file name from a ps, because rank 0 will read the file and name it in the manifest.
void require_own_file(const std::string& name, int shard, int shards) {
  for (const char* kind : {"model", "optimizer"})
    if (name == checkpoint::shard_file_name(kind, shard, shards)) return;
  throw Invalid("expected a file of shard " + std::to_string(shard) + " of " +
                    std::to_string(shards) + ", found \"" + shorten(name, 100) + "\"",
                kProtocol);
}

class PsSnapshot : public Snapshot {
 public:
  // `bytes` is an upper bound for all shards together.
  PsSnapshot(ps::Control& control, uint64_t bytes, uint64_t generation,
             checkpoint::Position position, std::vector<uint64_t> shard_steps)
      : control_(control),
        bytes_(bytes),
        generation_(generation),
        position_(std::move(position)),
        shard_steps_(std::move(shard_steps)) {}

  const checkpoint::Position& position() const override { return position_; }

  void write(const std::filesystem::path& directory, checkpoint::Manifest& manifest,
             double bytes_per_second) override {
    WriteRequest request;
    request.set_bytes_per_second(bytes_per_second);
    request.set_generation(generation_);
    request.set_directory("checkpoints/" + directory.filename().string());
    auto deadline = kWrite;
    if (bytes_per_second > 0)
      deadline +=
          milliseconds(static_cast<int64_t>(1e3 * static_cast<double>(bytes_) / bytes_per_second));
    const auto replies = control_.write(request, shard_steps_, deadline);
    const int shards = static_cast<int>(replies.size());
    for (int shard = 0; shard < shards; ++shard)
      for (const WrittenFile& file : replies[static_cast<size_t>(shard)].files()) {
        require_own_file(file.name(), shard, shards);
        manifest.files.push_back({file.name(), file.bytes(), file.crc32c()});
      }
    manifest.position = position_;
    manifest.shard_steps = shard_steps_;
  }

  // A shard that the call does not reach continues at the old speed.
  void hurry() override {
    try {
      control_.hurry(generation_, shard_steps_, kHurry);
    } catch (const std::runtime_error& error) {
      log::info(std::string("a checkpoint is not written faster: ") + error.what());
    }
  }

 private:
  ps::Control& control_;
  const uint64_t bytes_;
  const uint64_t generation_;
  const checkpoint::Position position_;
  const std::vector<uint64_t> shard_steps_;
};

// Returns the logical replicas of this member's devices: in a step, among those of all members; in
// a ticket, which is for one member, from 0.
compute::Subtree replicas_of(const Assembly& assembly, bool sync, int rank) {
  const int devices = assembly.spec().devices;
  const int first = sync ? rank * devices : 0;
  return {first, first + devices};
}

// Returns the GPU whose memory is used to exchange a member's gradients and parameters. Null: the
// host's memory is used, where several gradients of a step are added up.
compute::cuda::Gpu* gpu_of_exchange(const Assembly& assembly) {
  const spec::TrainingSpec& spec = assembly.spec();
  const bool alone = spec.devices == 1 && spec.gradient_accumulation == 1;
  return spec.ps_device == "cuda" && alone ? assembly.engine->gpu_or_null() : nullptr;
}

std::unique_ptr<ps::MemberMemory> make_memory(const Assembly& assembly,
                                              const PsSynchronizer::Setup& setup) {
  if (!group::shared_memory_wanted()) {
    log::info("exchange through gRPC: MUSTER_SHARED_MEMORY is 0");
    return nullptr;
  }
  const ps::SegmentShape shape{assembly.engine->layout().size(), static_cast<size_t>(setup.shards)};
  const uint32_t spins = worthwhile_spins(setup.members * assembly.threads() + setup.shards);
  try {
    if (compute::cuda::Gpu* gpu = gpu_of_exchange(assembly))
      return std::make_unique<ps::MemberMemory>(shape, spins, gpu);
  } catch (const Unavailable& error) {
    log::warning(std::string("exchange through the host's memory: ") + error.what());
  }
  try {
    return std::make_unique<ps::MemberMemory>(shape, spins);
  } catch (const Unavailable& error) {
    log::warning(std::string("exchange through gRPC: ") + error.what());
    return nullptr;
  }
}

}  // namespace

PsSynchronizer::PsSynchronizer(Assembly& assembly, group::RendezvousClient& client, Setup setup)
    : assembly_(assembly),
      setup_(std::move(setup)),
      group_(client, setup_),
      sync_(assembly.spec().policy == spec::SyncPolicy::sync),
      memory_(make_memory(assembly, setup_)),
      own_(memory_ ? 0 : 2 * assembly.engine->layout().size()),
      gradients_(assembly.devices(), /*exclusive=*/false),
      devices_{replicas_of(assembly, sync_, setup_.rank), {}},
      sums_(static_cast<size_t>(gradients_.devices())),
      exchange_(
          compute::shard_ranges(assembly.spec().optimizer, assembly.engine->layout(),
                                setup_.shards),
          static_cast<uint32_t>(setup_.rank), assembly.spec().policy,
          [this](const ps::LinkEnd& end) { return connect(end); }, memory_.get(),
          assembly.spec().backup_workers > 0),
      progress_({sync_,
                 [this](uint64_t step, checkpoint::Position& position) {
                   return advance_to(step, position);
                 },
                 assembly.workload->whole_epochs()}) {
  take_memory();
}

// Each connection has its own memory: the host's stays at the same address, a GPU's does not.
void PsSynchronizer::take_memory() {
  const size_t size = assembly_.engine->layout().size();
  const compute::PlacedFloats own(own_);
  parameters_ = memory_ ? memory_->view().parameters() : own.part({0, size});
  devices_.sum = memory_ ? memory_->view().gradients() : own.part({size, 2 * size});
}

std::unique_ptr<ps::ShardLink> PsSynchronizer::connect(const ps::LinkEnd& end) const {
  const auto ps = static_cast<size_t>(end.ps);
  if (ps >= addresses_.size())
    throw Invalid("the rendezvous: expected the address of ps " + std::to_string(ps) + ", found " +
                      std::to_string(addresses_.size()) + " addresses",
                  kProtocol);
  return setup_.connect(end, addresses_[ps]);
}

ps::Exchange::Watch PsSynchronizer::watch() const {
  return {stop_, [this] {
            return group_.is_over(
                [this](const GroupView& view) { return ps::left_behind(view, generation_); });
          }};
}

bool PsSynchronizer::start(std::stop_token stop) {
  stop_ = stop;
  const auto formed = [](const GroupView& view) { return view.phase() != GroupView::FORMING; };
  group::Backoff backoff(milliseconds(20), milliseconds(500));
  while (const auto view = group_.wait(formed, stop)) {
    generation_ = view->generation();
    under_way_ = false;
    addresses_.assign(view->ps_addresses().begin(), view->ps_addresses().end());
    gradients_.release();
    exchange_.connect(generation_, ps::serving_of(*view, setup_.shards));
    take_memory();
    if (parameters_.is_on_host())
      gradients_.pin(std::array{parameters_.host(), devices_.sum.host()});
    const auto result = exchange_.align(parameters_, watch());
    gradients_.load(parameters_);
    if (result.outcome == ps::Exchange::Outcome::interrupted) return false;
    if (result.outcome == ps::Exchange::Outcome::ok) {
      progress_.aligned(*view, result, mutable_position());
      return true;
    }
    exchange_.close();
    std::this_thread::sleep_for(backoff.next());
  }
  return group_.finished();
}

bool PsSynchronizer::has_next() {
  const Workload& workload = *assembly_.workload;
  if (group_.finished() || workload.is_stopped(position())) return false;
  if (sync_) {
    if (workload.finished(position())) return false;
    work_ = work_of({devices_.node.begin});
    return true;
  }
  if (!progress_.ticket()) return false;
  work_ = work_of({});
  mutable_position().epoch = work_.epoch();
  return true;
}

Work PsSynchronizer::work_of(const Turn& turn) const {
  const Workload& workload = *assembly_.workload;
  return sync_ ? workload.part_of(position(), turn) : workload.ticket(*progress_.ticket(), turn);
}

compute::LossSums PsSynchronizer::compute_gradients() {
  gradients_.compute(
      {&devices_, 1}, [this](const Turn& turn) { return work_of(turn); }, sums_);
  compute::LossSums all;
  for (const compute::LossSums& sums : sums_) all += sums;
  return all;
}

Synchronizer::StepResult PsSynchronizer::step() {
  const WatchedWork watched(WatchedWork::Kind::computing, "taking a step");
  const Stopwatch computing;
  const double waited_before = assembly_.input_wait_seconds();
  const compute::LossSums sums = compute_gradients();
  if (setup_.report)
    setup_.report->add({computing.seconds(), assembly_.input_wait_seconds() - waited_before});
  std::optional<Spending> communicating(TimeUse::communication);
  auto exchanged =
      exchange_.step(position().step, work_.ticket, sums, devices_.sum, parameters_, watch());
  communicating.reset();
  if (exchanged.outcome == ps::Exchange::Outcome::interrupted) await_last_commit(exchanged);
  gradients_.load(parameters_);
  StepResult result;
  result.sums = exchanged.sums;
  uint64_t floats = 0;
  for (const ps::Exchange::Traffic& of_ps : traffic()) floats += of_ps.floats;
  const bool narrow = assembly_.spec().wire == spec::WireType::bfloat16;
  result.costs.bytes =
      (narrow ? 2 : sizeof(float)) * (floats - std::exchange(floats_told_, floats));
  switch (exchanged.outcome) {
    case ps::Exchange::Outcome::ok:
      break;
    case ps::Exchange::Outcome::interrupted:
      result.state = State::interrupted;
      return result;
    default:
      result.state = State::rejoin;
      return result;
  }
  progress_.stepped(exchanged, work_.epoch(), mutable_position());
  return result;
}

// Moves the position to `step`, which a ps has named. Returns the epoch of the last step on the
// way. A faulty ps could name a step so far away that counting would never reach it.
uint64_t PsSynchronizer::advance_to(uint64_t step, checkpoint::Position& position) const {
  const Workload& workload = *assembly_.workload;
  const uint64_t last = workload.total_steps(position);
  if (step > std::max(position.step, last))
    throw Invalid("expected a step of a ps up to " + std::to_string(last) +
                      ", the training's last one, found " + std::to_string(step),
                  kProtocol);
  uint64_t epoch = position.epoch;
  while (position.step < step) {
    epoch = position.epoch;
    workload.advance(position);
  }
  return epoch;
}

// Waits for the commit of the step under way. Without it rank 0 would leave without that step's
// loss, although its checkpoint contains the step if all others have pushed.
void PsSynchronizer::await_last_commit(ps::Exchange::Result& exchanged) {
  if (!sync_ || setup_.rank != 0) return;
  const auto until = Clock::now() + kLastCommit;
  const auto late = exchange_.wait({{}, [&] { return Clock::now() >= until; }});
  if (late.outcome == ps::Exchange::Outcome::ok) exchanged = late;
  under_way_ = late.outcome == ps::Exchange::Outcome::superseded;
}

void PsSynchronizer::read_weights(std::span<float>) {
  throw std::logic_error("parameter servers have no evaluation within the training");
}

std::unique_ptr<Snapshot> PsSynchronizer::snapshot() {
  const uint64_t bytes = sizeof(float) * assembly_.engine->layout().size() *
                         (1 + assembly_.optimizer->slot_names().size());
  const auto until = Clock::now() + kAgreement;
  for (;;) {
    const auto replies = setup_.control->snapshot(generation_, /*shard_0_first=*/!sync_, kSnapshot);
    std::vector<uint64_t> steps;
    for (const SnapshotReply& reply : replies) steps.push_back(reply.state().step());
    if (!sync_) {
      checkpoint::Position of_shards = ps::from_message(replies[0].position());
      of_shards.evaluations = position().evaluations;  // only members know the evaluations
      return std::make_unique<PsSnapshot>(*setup_.control, bytes, generation_, of_shards, steps);
    }
    if (const auto step = ps::common_step(replies, position().step)) {
      checkpoint::Position common = position();
      advance_to(*step, common);
      common.sums = ps::from_messages(replies[0].position().sums());
      return std::make_unique<PsSnapshot>(*setup_.control, bytes, generation_, common, steps);
    }
    // Only after a stop within a step: its commit is under way, and with backup workers we must
    // pass it on to the other shards.
    if (under_way_ && exchange_.poll()) under_way_ = false;
    if (Clock::now() >= until) {
      const auto [lowest, highest] = std::minmax_element(steps.begin(), steps.end());
      throw Unavailable("the shards do not agree on a step: from " + std::to_string(*lowest) +
                        " to " + std::to_string(*highest));
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
}

}  // namespace muster::loop
