#include "trainer/ps/serving/shard_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/text/shorten.h"
#include "common/threads/cpu_budget.h"
#include "trainer/checkpoint/start/begin_state.h"
#include "trainer/compute/engine.h"
#include "trainer/compute/graph.h"
#include "trainer/folder/generations.h"
#include "trainer/group/peer_registry.h"

namespace muster::ps {

namespace fs = std::filesystem;
using compute::Range;

ShardHost::ShardHost(spec::TrainingSpec spec, HostIdentity identity,
                     std::shared_ptr<compute::cuda::Gpu> gpu)
    : spec_(std::move(spec)), identity_(std::move(identity)), gpu_(std::move(gpu)) {
  if (gpu_) gpu_floats_ = std::make_shared<GpuFloats>(gpu_);
}

void ShardHost::on_answers(Deliver deliver) {
  const MutexLock lock(mutex_);
  deliver_ = std::move(deliver);
}

namespace {

constexpr std::chrono::milliseconds kComparison{2000};
constexpr int kMostDifferences = 3;  // see docs/internals/collective.md

void require_same(const std::string& what, const std::string& expected, const std::string& found) {
  if (expected != found)
    throw Invalid("expected " + what + " \"" + expected + "\", found \"" + found + "\"", kProtocol);
}

// Returns the number of threads that apply an update. The other shards may be on this machine too
// and apply their updates at the same time.
int update_threads(size_t floats, int shards) {
  constexpr size_t kWorthAThread = 64 << 10;
  const size_t worth = std::min<size_t>(floats / kWorthAThread, 64);
  return std::clamp(static_cast<int>(worth), 1, std::max(1, cpu_budget() / std::max(1, shards)));
}

// CUDA moves memory that does not fit into the GPU to the host.
void warn_if_too_large(const Shard::Shape& shape, size_t slots, size_t free) {
  const size_t versions = shape.policy == SyncPolicy::sync ? 3 : 2;
  const size_t bytes = shape.range.size() * sizeof(float) * (versions + 2 * slots + 1);
  if (bytes <= free) return;
  log::warning(fmt::format(
      "shard {} takes {} MB on its GPU, of which {} MB are free: the rest is moved to and from the "
      "host's memory, which is slow; use more ps, or psDevice cpu",
      shape.shard, bytes >> 20, free >> 20));
}

// Returns a folder below the storage; rank 0 has named it.
fs::path below(const fs::path& storage, const std::string& relative) {
  const fs::path path = fs::path(relative).lexically_normal();
  if (relative.empty() || path.is_absolute() || *path.begin() == "..")
    throw Invalid("expected a folder below the job's storage, found \"" + relative + "\"",
                  kProtocol);
  return storage / path;
}

}  // namespace

void ShardHost::require_job(const std::string& uid) const {
  if (!is_of(uid)) throw Invalid(group::of_another_job(uid), kProtocol);
}

void ShardHost::check(const OpenRequest& request) const {
  require_job(request.job_uid());
  require_same("version", identity_.version, request.version());
  require_same("training fingerprint", identity_.training_fingerprint,
               request.training_fingerprint());
  if (built_) require_same("layout fingerprint", built_->fingerprint, request.layout_fingerprint());
  if (request.members() == 0 || request.members() > Tickets::kMostAtOnce)
    throw Invalid("expected at least one member, found " + std::to_string(request.members()),
                  kProtocol);
  if (spec_.backup_workers > 0 && request.members() > kMostContributors)
    throw Invalid("expected at most " + std::to_string(kMostContributors) +
                      " members with backup workers, found " + std::to_string(request.members()),
                  kProtocol);
  if (static_cast<int>(request.shard()) != identity_.shard)
    throw Invalid("expected shard " + std::to_string(identity_.shard) + ", found " +
                      std::to_string(request.shard()),
                  kProtocol);
  if (!group::is_possible(request.position()))
    throw Invalid("expected a position that training can have reached, found step " +
                      std::to_string(request.position().step()) + ", epoch " +
                      std::to_string(request.position().epoch()) + " and batch " +
                      std::to_string(request.position().next_batch()),
                  kProtocol);
  // Rank 0 raises the generation by one. A ps with a much too high generation would be left out for
  // ever.
  const uint64_t last =
      (hosted_ ? hosted_->state().generation() : 0) + group::PeerRegistry::kMostAhead;
  if (request.generation() == 0 || request.generation() > std::min(last, folder::kLastGeneration))
    throw Invalid("expected a generation from 1 to " + std::to_string(last) + ", found " +
                      std::to_string(request.generation()),
                  kProtocol);
}

// The first opening tells us the data's shape, and with it the layout.
void ShardHost::build(const OpenRequest& request) {
  compute::ModelSpec model = spec_.model;
  model.input_shape.assign(request.input_shape().begin(), request.input_shape().end());
  model.label_count = request.label_count();
  const compute::ParameterLayout layout = compute::make_layout(model);
  require_same("layout fingerprint", layout.fingerprint(), request.layout_fingerprint());
  built_.reset(new Built{
      compute::Optimizer::create(spec_.optimizer, layout), request.layout_fingerprint(),
      compute::shard_ranges(spec_.optimizer, layout, identity_.shards).at(identity_.shard)});
  Shard::Shape shape;
  shape.shard = identity_.shard;
  shape.range = built_->range;
  shape.policy = spec_.policy;
  shape.shards = identity_.shards;
  shape.backup_workers = static_cast<uint32_t>(spec_.backup_workers);
  shape.max_staleness = static_cast<uint64_t>(spec_.max_staleness);
  shape.bfloat16 = spec_.wire == WireType::bfloat16;
  const compute::Optimizer& optimizer = *built_->optimizer;
  if (gpu_) {
    warn_if_too_large(shape, optimizer.slot_names().size(), gpu_->free_bytes());
    try {
      auto update =
          std::make_unique<GpuUpdate>(*gpu_, gpu_floats_, optimizer, shape.range, shape.bfloat16);
      hosted_.emplace(std::make_unique<Shard>(shape, optimizer, spec_.schedule, std::move(update)),
                      identity_.incarnation);
    } catch (const Unavailable& error) {
      throw DeviceError(error.what(), /*lost=*/false);
    }
  } else {
    const int threads = update_threads(shape.range.size(), identity_.shards);
    hosted_.emplace(std::make_unique<Shard>(shape, optimizer, spec_.schedule, threads),
                    identity_.incarnation);
  }
}

// Precondition: a generation was opened.
const ShardHost::Built& ShardHost::built() const {
  const MutexLock lock(mutex_);
  return *built_;
}

Shard::Content ShardHost::first_content(const Built& built, const OpenRequest& request) const {
  std::optional<checkpoint::Store::Found> from;
  if (request.content() == OpenRequest::RESTORE)
    from = checkpoint::Store::read_of_another_host(below(identity_.storage, request.checkpoint()));
  const size_t slots = built.optimizer->slot_names().size();
  Shard::Content content;
  content.parameters.resize(built.range.size());
  content.slots.assign(slots, compute::Floats(built.range.size()));
  const std::vector<std::span<float>> views(content.slots.begin(), content.slots.end());
  checkpoint::begin_state(from ? &*from : nullptr, spec_, *built.optimizer, built.range,
                          content.parameters, views);
  content.step = request.position().step();
  content.optimizer_t = request.position().optimizer_t();
  return content;
}

ShardState ShardHost::open(const OpenRequest& request) {
  MutexLock lock(mutex_);
  check(request);
  const auto ask = [&](const auto& work) MUSTER_REQUIRES(mutex_) {
    with_shard_locked(work, /*may_refuse=*/true);
    require_device_locked();
  };
  if (!hosted_) ask([&]() MUSTER_REQUIRES(mutex_) { build(request); });
  Shard::Content content;
  if (hosted_->loads(request)) {
    const Built& built = *built_;
    // A callback that waits for the lock would block gRPC's thread with all its streams.
    lock.unlock();
    content = first_content(built, request);
    lock.lock();
  }
  const auto load = [&](const OpenRequest&) { return std::move(content); };
  ShardState state;
  ask([&]() MUSTER_REQUIRES(mutex_) { state = hosted_->open(request, load, answers_); });
  deliver_locked();
  acknowledged_.notify_all();  // the second copy's answer is not needed any more
  return state;
}

SnapshotReply ShardHost::snapshot(const SnapshotRequest& request) {
  const MutexLock lock(mutex_);
  require_device_locked();
  if (!hosted_) throw Unavailable("expected a shard to copy, found it empty");
  SnapshotReply reply = hosted_->snapshot(request);
  feed_standby_locked();  // the second copy is asked for its digest
  return reply;
}

ReplicatedShard::Copy ShardHost::to_write(const WriteRequest& request) {
  const MutexLock lock(mutex_);
  require_device_locked();
  if (!hosted_) throw Unavailable("expected a snapshot to write, found an empty shard");
  const bool hurried =
      hurried_.generation() == request.generation() && hurried_.step() == request.step();
  limit_.set(hurried ? 0 : request.bytes_per_second());
  return hosted_->to_write(request);
}

void ShardHost::hurry(const HurryRequest& request) {
  const MutexLock lock(mutex_);
  hurried_ = request;
  limit_.lift();
}

WriteReply ShardHost::write(const WriteRequest& request) {
  if (!std::isfinite(request.bytes_per_second()) || request.bytes_per_second() < 0)
    throw Invalid("expected a speed of at least 0 bytes a second, found " +
                      std::to_string(request.bytes_per_second()),
                  kProtocol);
  const fs::path directory = below(identity_.storage, request.directory());
  const ReplicatedShard::Copy copy = to_write(request);
  const Built& built = this->built();
  checkpoint::State state{built.optimizer->layout(),
                          built.range,
                          *copy.image.parameters,
                          {},
                          built.optimizer->slot_names()};
  for (const auto& slot : copy.image.slots) state.slots.emplace_back(*slot);
  WriteReply reply;
  for (const auto& entry :
       checkpoint::write_state(directory, state, identity_.shard, identity_.shards, limit_)) {
    WrittenFile* file = reply.add_files();
    file->set_name(entry.name);
    file->set_bytes(entry.bytes);
    file->set_crc32c(entry.crc32c);
  }
  require_same_second_copy(copy);
  const MutexLock lock(mutex_);
  require_device_locked();  // values read from a failed GPU may be wrong
  return reply;
}

void ShardHost::require_device_locked() const {
  if (failure_) throw Unavailable("the GPU that keeps the shard has failed");
}

// Finds a flipped bit in the memory of one of the two processes, which would otherwise stay
// unnoticed. The second copy has had the time of writing to answer.
void ShardHost::require_same_second_copy(const ReplicatedShard::Copy& copy) {
  using Comparison = ReplicatedShard::Comparison;
  MutexLock lock(mutex_);
  if (!hosted_->is_compared(copy)) return;
  lock.unlock();
  const uint32_t digest = copy.image.digest();
  lock.lock();
  Comparison comparison = Comparison::pending;
  acknowledged_.wait_for(lock, kComparison, [&]() MUSTER_REQUIRES(mutex_) {
    comparison = hosted_->compare(copy, digest);
    return comparison != Comparison::pending;
  });
  if (comparison == Comparison::over) return;
  if (comparison == Comparison::pending) {
    log::info(
        fmt::format("{} were not compared at step {}: the second one has not answered in {} s",
                    the_copies(), copy.step, kComparison.count() / 1000));
    return;
  }
  const std::string text = fmt::format(
      "{} differ at step {}: the memory or the processor of one of their machines may be faulty",
      the_copies(), copy.step);
  log::warning(text + "; training goes back to a checkpoint", {{"generation", copy.generation}});
  throw Unavailable(text);
}

ShardState ShardHost::state() const {
  const MutexLock lock(mutex_);
  return hosted_ ? hosted_->state() : ShardState();
}

std::string ShardHost::the_copies() const {
  return fmt::format("the two copies of shard {}, of ps {} and ps {},", identity_.shard,
                     identity_.shard, (identity_.shard + 1) % identity_.shards);
}

void ShardHost::require_faultless() const {
  const MutexLock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  const int times = hosted_ ? hosted_->differences_in_a_row() : 0;
  if (times < kMostDifferences) return;
  throw DeviceError(
      fmt::format("{} differed in {} comparisons in a row: the memory or the processor of one of "
                  "their machines is faulty",
                  the_copies(), times),
      /*lost=*/true);  // as of a GPU: exit code 71
}

Shard::Counts ShardHost::counts() const {
  const MutexLock lock(mutex_);
  return hosted_ ? hosted_->shard().counts() : Shard::Counts{};
}

std::optional<size_t> ShardHost::size() const {
  const MutexLock lock(mutex_);
  if (!hosted_) return std::nullopt;
  return hosted_->shard().shape().range.size();
}

std::optional<MemberMailbox::Place> ShardHost::place() const {
  const MutexLock lock(mutex_);
  if (!hosted_) return std::nullopt;
  MemberMailbox::Place place;
  place.shape = {built_->optimizer->layout().size(), static_cast<size_t>(identity_.shards)};
  place.shard = static_cast<size_t>(identity_.shard);
  place.range = hosted_->shard().shape().range;
  place.bfloat16 = spec_.wire == WireType::bfloat16;
  place.gpu = gpu_.get();
  return place;
}

std::string ShardHost::objection(const ExchangeHello& hello) const {
  const MutexLock lock(mutex_);
  try {
    require_job(hello.job_uid());
    require_same("version", identity_.version, hello.version());
    require_same("floats sent as", spec::name_of(spec_.wire), hello.wire());
    if (built_) require_same("layout fingerprint", built_->fingerprint, hello.layout_fingerprint());
  } catch (const Invalid& error) {
    return error.what();
  }
  return "";
}

void ShardHost::deliver_locked() {
  if (deliver_ && hosted_ && !answers_.empty())
    with_shard_locked([&]() MUSTER_REQUIRES(mutex_) { deliver_(hosted_->shard(), answers_); });
  answers_.clear();
  feed_standby_locked();
}

void ShardHost::feed_standby_locked() {
  if (!send_to_standby_ || !hosted_) return;
  while (const auto message = hosted_->next_forward()) send_to_standby_(*message);
}

// Returns false if the GPU fails or has failed before: the shard is then unreadable, and only a new
// process can use the GPU again. With `may_refuse`, an Unavailable of `work` is passed to the
// caller; without it, Unavailable means that the GPU has too little memory.
template <class Work>
bool ShardHost::with_shard_locked(const Work& work, bool may_refuse) {
  if (failure_) return false;
  try {
    work();
    return true;
  } catch (const DeviceError&) {
    failure_ = std::current_exception();
  } catch (const Unavailable&) {
    if (may_refuse || !gpu_) throw;
    failure_ = std::current_exception();
  }
  answers_.clear();
  return false;
}

// Returns buffers that the device of the shard can address.
Shard::Buffers ShardHost::near_locked(uint64_t session, const Shard::Buffers& buffers) {
  if (!gpu_ || !buffers.gradients.is_on_host()) return buffers;
  const std::span<const float> from = buffers.gradients.host();
  const auto at = near_.try_emplace(session, *gpu_, static_cast<int64_t>(from.size())).first;
  gpu_->put(at->second.data(), from.data(), from.size_bytes()).wait();
  return {{compute::Place::gpu, at->second.data(), from.size()}, {}};
}

bool ShardHost::push(uint64_t session, const PushHeader& header, const Shard::Buffers& buffers) {
  const MutexLock lock(mutex_);
  if (!hosted_ || buffers.gradients.size() != hosted_->shard().shape().range.size()) return false;
  const uint64_t conflicting = hosted_->shard().counts().conflicting;
  if (!with_shard_locked([&]() MUSTER_REQUIRES(mutex_) {
        hosted_->shard().push(session, header, near_locked(session, buffers), answers_);
      }))
    return false;
  if (hosted_->shard().counts().conflicting > conflicting)
    log::warning(
        "member " + std::to_string(header.rank) + " has sent its push of step " +
            std::to_string(header.step) +
            " again with other content: expected the content of the first push, which counts",
        {{"shard", identity_.shard}, {"generation", header.generation}});
  deliver_locked();
  return true;
}

bool ShardHost::pull(uint64_t session, const PushHeader& header) {
  const MutexLock lock(mutex_);
  if (!hosted_) return false;
  if (!with_shard_locked(
          [&]() MUSTER_REQUIRES(mutex_) { hosted_->shard().pull(session, header, answers_); }))
    return false;
  deliver_locked();
  return true;
}

void ShardHost::name_standby(uint64_t generation, uint64_t incarnation) {
  const MutexLock lock(mutex_);
  if (hosted_) hosted_->name_standby(generation, incarnation);
}

ShardHost::Standby ShardHost::standby() const {
  const MutexLock lock(mutex_);
  if (!hosted_) return {};
  return {hosted_->feed().standby(), hosted_->feed().session()};
}

void ShardHost::greet_standby(SendToStandby send) {
  const MutexLock lock(mutex_);
  if (!hosted_) return;
  send_to_standby_ = std::move(send);
  hosted_->shard().log().on_added([this]() MUSTER_REQUIRES(mutex_) { feed_standby_locked(); });
  send_to_standby_(hosted_->greet());
}

bool ShardHost::acknowledged(const Acknowledgement& reply) {
  const MutexLock lock(mutex_);
  const bool of_use = hosted_ && hosted_->acknowledged(reply, answers_);
  deliver_locked();
  acknowledged_.notify_all();
  return of_use;
}

void ShardHost::cut_standby() {
  const MutexLock lock(mutex_);
  send_to_standby_ = {};
  if (hosted_) hosted_->cut(answers_);
  deliver_locked();
  acknowledged_.notify_all();
}

void ShardHost::lose_standby() {
  const MutexLock lock(mutex_);
  if (hosted_) hosted_->lose_standby();
}

Acknowledgement ShardHost::follow(const ForwardHello& greeting, const Forward& message,
                                  std::span<const float> values) {
  const auto reject = [](const std::string& why) {
    Acknowledgement reply;
    reply.set_status(Acknowledgement::REJECTED);
    reply.set_message(shorten(why, group::kMostTold));
    return reply;
  };
  const MutexLock lock(mutex_);
  try {
    if (message.has_hello() || message.has_state()) check(greeting.opening());
    if (!hosted_) build(greeting.opening());
    const Acknowledgement reply = hosted_->follow(greeting, message, values, answers_);
    deliver_locked();
    return reply;
  } catch (const Invalid& error) {
    return reject(error.what());
  } catch (const std::exception& error) {  // no threads or memory: the sender tries again
    return reject(error.what());
  }
}

size_t ShardHost::most_forwarded() const {
  const MutexLock lock(mutex_);
  if (!hosted_) return 0;
  return hosted_->shard().shape().range.size() * (2 + built_->optimizer->slot_names().size());
}

void ShardHost::detach(uint64_t session) {
  const MutexLock lock(mutex_);
  if (hosted_)
    with_shard_locked([&]()
                          MUSTER_REQUIRES(mutex_) { hosted_->shard().detach(session, answers_); });
  near_.erase(session);
  deliver_locked();
}

}  // namespace muster::ps
