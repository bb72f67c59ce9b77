#include "trainer/ps/shard_host.h"

#include <algorithm>

#include "common/cpu_budget.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "trainer/ps/initial_parameters.h"

namespace muster::ps {

namespace fs = std::filesystem;
using compute::Range;

checkpoint::Position from_message(const PositionMessage& message) {
  checkpoint::Position position;
  position.step = message.step();
  position.epoch = message.epoch();
  position.next_batch = message.next_batch();
  position.optimizer_t = message.optimizer_t();
  position.outstanding.assign(message.outstanding().begin(), message.outstanding().end());
  return position;
}

PositionMessage to_message(const checkpoint::Position& position) {
  PositionMessage message;
  message.set_step(position.step);
  message.set_epoch(position.epoch);
  message.set_next_batch(position.next_batch);
  message.set_optimizer_t(position.optimizer_t);
  message.mutable_outstanding()->Add(position.outstanding.begin(), position.outstanding.end());
  return message;
}

ShardHost::ShardHost(spec::TrainingSpec spec, HostIdentity identity)
    : spec_(std::move(spec)), identity_(std::move(identity)) {}

void ShardHost::on_answers(Deliver deliver) {
  deliver_ = std::move(deliver);
}

namespace {

void require_same(const std::string& what, const std::string& expected, const std::string& found) {
  if (expected != found)
    throw Invalid("expected " + what + " \"" + expected + "\", found \"" + found + "\"", kProtocol);
}

// Room for a whole layout, to cut our range from.
std::vector<float> cut(const std::vector<float>& whole, Range range) {
  return {whole.begin() + static_cast<ptrdiff_t>(range.begin),
          whole.begin() + static_cast<ptrdiff_t>(range.end)};
}

// To apply an update with. The other shards may be on this machine too, and apply at the same time.
int update_threads(size_t floats, int shards) {
  constexpr size_t kWorthAThread = 64 << 10;
  const size_t worth = std::min<size_t>(floats / kWorthAThread, 64);
  return std::clamp(static_cast<int>(worth), 1, std::max(1, cpu_budget() / std::max(1, shards)));
}

// A folder below the storage, as rank 0 names it.
fs::path below(const fs::path& storage, const std::string& relative) {
  const fs::path path = fs::path(relative).lexically_normal();
  if (relative.empty() || path.is_absolute() || *path.begin() == "..")
    throw Invalid("expected a folder below the job's storage, found \"" + relative + "\"",
                  kProtocol);
  return storage / path;
}

}  // namespace

void ShardHost::check(const OpenRequest& request) const {
  require_same("job uid", identity_.job_uid, request.job_uid());
  require_same("version", identity_.version, request.version());
  require_same("training fingerprint", identity_.training_fingerprint,
               request.training_fingerprint());
  if (layout_)
    require_same("layout fingerprint", layout_fingerprint_, request.layout_fingerprint());
  if (request.members() == 0 || request.members() > (1u << 20))
    throw Invalid("expected at least one member, found " + std::to_string(request.members()),
                  kProtocol);
}

// The first opening tells us the data's shape, and with it the layout.
void ShardHost::build(const OpenRequest& request) {
  spec_.model.input_shape.assign(request.input_shape().begin(), request.input_shape().end());
  spec_.model.label_count = request.label_count();
  compute::ParameterLayout layout = compute::make_layout(spec_.model);
  require_same("layout fingerprint", layout.fingerprint(), request.layout_fingerprint());
  layout_.emplace(std::move(layout));
  layout_fingerprint_ = request.layout_fingerprint();
  optimizer_ = compute::Optimizer::create(spec_.optimizer, *layout_);
  Shard::Shape shape;
  shape.shard = identity_.shard;
  shape.range = layout_->partition(identity_.shards).at(identity_.shard);
  shape.policy =
      spec_.policy == spec::SyncPolicy::sync ? Shard::Policy::sync : Shard::Policy::async;
  shard_ = std::make_unique<Shard>(shape, *optimizer_, spec_.schedule,
                                   update_threads(shape.range.size(), identity_.shards));
}

Shard::Content ShardHost::initial(const OpenRequest& request) const {
  std::vector<float> whole(layout_->size());
  fill_initial_parameters(spec_, *layout_, whole);
  const Range range = shard_->shape().range;
  Shard::Content content;
  content.parameters = cut(whole, range);
  content.slots.assign(optimizer_->slot_names().size(), std::vector<float>(range.size(), 0.0f));
  content.step = request.position().step();
  content.optimizer_t = request.position().optimizer_t();
  return content;
}

Shard::Content ShardHost::restored(const OpenRequest& request) const {
  const Range range = shard_->shape().range;
  checkpoint::Store::Found found;
  found.directory = below(identity_.storage, request.checkpoint());
  found.manifest = checkpoint::Store::read_manifest(found.directory);
  Shard::Content content;
  content.parameters.resize(range.size());
  checkpoint::Store::load(found, *layout_, range, content.parameters, "");
  for (const std::string& slot : optimizer_->slot_names()) {
    content.slots.emplace_back(range.size(), 0.0f);
    checkpoint::Store::load(found, *layout_, range, content.slots.back(), slot + "/");
  }
  content.step = request.position().step();
  content.optimizer_t = request.position().optimizer_t();
  return content;
}

ShardState ShardHost::open(const OpenRequest& request) {
  std::unique_lock lock(mutex_);
  check(request);
  if (shard_ && request.generation() < shard_->generation())
    throw Unavailable("generation " + std::to_string(request.generation()) +
                      " was superseded by generation " + std::to_string(shard_->generation()));
  if (!shard_) build(request);
  if (request.content() == OpenRequest::KEEP) {
    if (shard_->generation() == 0) throw Unavailable("expected a shard to keep, found it empty");
  } else {
    shard_->load(request.content() == OpenRequest::RESTORE ? restored(request) : initial(request));
    base_ = from_message(request.position());
  }
  tickets_per_epoch_ = request.tickets_per_epoch();
  Tickets tickets(base_.epoch * tickets_per_epoch_ + base_.next_batch, request.total_tickets(),
                  base_.outstanding);
  if (request.content() == OpenRequest::KEEP) {
    tickets = shard_->tickets();
    tickets.release_all();
  }
  shard_->begin(request.generation(), static_cast<int>(request.members()), std::move(tickets),
                answers_);
  deliver_locked();
  return state_locked();
}

SnapshotReply ShardHost::snapshot(const SnapshotRequest& request) {
  const std::lock_guard copy_lock(copy_mutex_);
  const std::lock_guard lock(mutex_);
  if (!shard_ || shard_->generation() != request.generation())
    throw Unavailable("expected generation " + std::to_string(shard_ ? shard_->generation() : 0) +
                      ", found " + std::to_string(request.generation()));
  copy_.generation = shard_->generation();
  copy_.step = shard_->step();
  copy_.parameters.assign(shard_->parameters().begin(), shard_->parameters().end());
  copy_.slots = shard_->slots();
  SnapshotReply reply;
  *reply.mutable_state() = state_locked();
  checkpoint::Position position = base_;
  position.step = shard_->step();
  position.optimizer_t = shard_->optimizer_t();
  if (shard_->shape().policy == Shard::Policy::async && tickets_per_epoch_ > 0) {
    position.epoch = shard_->tickets().next() / tickets_per_epoch_;
    position.next_batch = shard_->tickets().next() % tickets_per_epoch_;
    position.outstanding = shard_->tickets().outstanding();
  }
  *reply.mutable_position() = to_message(position);
  return reply;
}

WriteReply ShardHost::write(const WriteRequest& request) {
  const fs::path directory = below(identity_.storage, request.directory());
  const std::lock_guard lock(copy_mutex_);
  if (copy_.generation != request.generation() || copy_.step != request.step())
    throw Unavailable("expected the snapshot of step " + std::to_string(copy_.step) + ", found " +
                      std::to_string(request.step()));
  const Range range = shard_->shape().range;
  WriteReply reply;
  const auto add = [&](std::string_view kind, const std::vector<checkpoint::TensorPiece>& pieces) {
    const auto path =
        directory / checkpoint::shard_file_name(kind, identity_.shard, identity_.shards);
    const auto entry = checkpoint::write_safetensors(path, pieces, {});
    WrittenFile* file = reply.add_files();
    file->set_name(entry.name);
    file->set_bytes(entry.bytes);
    file->set_crc32c(entry.crc32c);
  };
  add("model", checkpoint::pieces_of(*layout_, range, copy_.parameters, ""));
  std::vector<checkpoint::TensorPiece> slots;
  for (size_t i = 0; i < copy_.slots.size(); ++i)
    for (auto& piece :
         checkpoint::pieces_of(*layout_, range, copy_.slots[i], optimizer_->slot_names()[i] + "/"))
      slots.push_back(std::move(piece));
  if (!copy_.slots.empty()) add("optimizer", slots);
  return reply;
}

ShardState ShardHost::state_locked() const {
  ShardState state;
  if (!shard_ || shard_->generation() == 0) return state;
  state.set_generation(shard_->generation());
  state.set_step(shard_->step());
  *state.mutable_base() = to_message(base_);
  return state;
}

ShardState ShardHost::state() const {
  const std::lock_guard lock(mutex_);
  return state_locked();
}

Shard::Counts ShardHost::counts() const {
  const std::lock_guard lock(mutex_);
  return shard_ ? shard_->counts() : Shard::Counts{};
}

std::optional<size_t> ShardHost::size() const {
  const std::lock_guard lock(mutex_);
  if (!shard_) return std::nullopt;
  return shard_->shape().range.size();
}

std::optional<MemberMailbox::Place> ShardHost::place() const {
  const std::lock_guard lock(mutex_);
  if (!shard_) return std::nullopt;
  MemberMailbox::Place place;
  place.shape = {layout_->size(), static_cast<size_t>(identity_.shards)};
  place.shard = static_cast<size_t>(identity_.shard);
  place.range = shard_->shape().range;
  return place;
}

std::string ShardHost::objection(const ExchangeHello& hello) const {
  const std::lock_guard lock(mutex_);
  try {
    require_same("job uid", identity_.job_uid, hello.job_uid());
    require_same("version", identity_.version, hello.version());
    if (layout_)
      require_same("layout fingerprint", layout_fingerprint_, hello.layout_fingerprint());
  } catch (const Invalid& error) {
    return error.what();
  }
  return "";
}

void ShardHost::deliver_locked() {
  if (deliver_ && shard_ && !answers_.empty()) deliver_(*shard_, answers_);
  answers_.clear();
}

bool ShardHost::push(uint64_t session, const PushHeader& header, const Shard::Buffers& buffers) {
  const std::lock_guard lock(mutex_);
  if (!shard_ || buffers.gradients.size() != shard_->shape().range.size()) return false;
  shard_->push(session, header, buffers, answers_);
  deliver_locked();
  return true;
}

bool ShardHost::pull(uint64_t session, const PushHeader& header) {
  const std::lock_guard lock(mutex_);
  if (!shard_) return false;
  shard_->pull(session, header, answers_);
  deliver_locked();
  return true;
}

void ShardHost::detach(uint64_t session) {
  const std::lock_guard lock(mutex_);
  if (shard_) shard_->detach(session, answers_);
  deliver_locked();
}

}  // namespace muster::ps
