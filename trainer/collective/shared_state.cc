#include "trainer/collective/shared_state.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

#include "common/error.h"
#include "common/random.h"
#include "common/system/shared_memory.h"

namespace muster::collective {

namespace {

constexpr char kName[] = "muster-collective";
constexpr uint64_t kMagic = 0x3154534d55545355;
constexpr size_t kPage = 4096;

// The bits of the state's word: fenced, the number of updated slices, the number of contributions,
// the step.
constexpr uint64_t kFenced = 1;
constexpr int kUpdatedAt = 1;
constexpr int kContributedAt = 13;
constexpr int kStepAt = 25;
constexpr uint64_t kCount = 0xfff;

uint64_t updated(uint64_t word) {
  return word >> kUpdatedAt & kCount;
}
uint64_t contributed(uint64_t word) {
  return word >> kContributedAt & kCount;
}
uint64_t step_of(uint64_t word) {
  return word >> kStepAt;
}
uint64_t step_word(uint64_t step) {
  return step << kStepAt;
}

// The bits of a member's word: fenced, the number of tiles of its slice it has begun (one more than
// there are: the slice is done), the step modulo 2^32.
constexpr int kTilesAt = 1;
constexpr int kTileStepAt = 32;
constexpr uint64_t kTiles = 0x7fffffff;

uint64_t progress(uint64_t step, size_t tiles) {
  return step << kTileStepAt | static_cast<uint64_t>(tiles) << kTilesAt;
}
bool is_of(uint64_t word, uint64_t step) {
  return word >> kTileStepAt == (step & 0xffffffff);
}
size_t begun(uint64_t word) {
  return word >> kTilesAt & kTiles;
}

std::atomic_ref<uint64_t> at(uint64_t& word) {
  return std::atomic_ref<uint64_t>(word);
}

size_t tiles_of(size_t floats) {
  return (floats + SharedState::kTile - 1) / SharedState::kTile;
}

size_t whole_pages(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

size_t SharedState::Shape::first_tile(int member) const {
  if (slices.empty())
    return tiles_of(floats) * static_cast<size_t>(member) / static_cast<size_t>(members);
  size_t before = 0;
  for (const compute::Range& slice : std::span(slices).first(static_cast<size_t>(member)))
    before += tiles_of(slice.size());
  return before;
}

compute::Range SharedState::Shape::tile(size_t index) const {
  compute::Range all{0, floats};
  for (const compute::Range& slice : slices) {
    all = slice;
    if (index < tiles_of(slice.size())) break;
    index -= tiles_of(slice.size());
  }
  const size_t begin = all.begin + index * kTile;
  return {begin, std::min(all.end, begin + kTile)};
}

struct SharedState::Header {
  uint64_t magic, nonce, floats, tensors;
  uint32_t slots, members, replicas, rounded, spins;
  alignas(128) uint64_t word;
  alignas(128) Doorbell bell;
  Note note;
};

struct SharedState::Seat {
  alignas(128) uint64_t word;
  alignas(128) ComputingTime time;
};

SharedState::Places::Places(const Shape& shape) {
  const auto members = static_cast<size_t>(shape.members);
  seats = sizeof(Header);
  sums = seats + members * sizeof(Seat);
  ratios = sums + static_cast<size_t>(shape.replicas) * sizeof(compute::LossSums);
  undo = whole_pages(ratios + shape.tensors * sizeof(float));
  undo_size = (1 + shape.slots) * kTile * sizeof(float);  // size for one tile; each member has two
  parameters = whole_pages(undo + members * 2 * undo_size);
  buffer_size = whole_pages(shape.floats * sizeof(float));
  size = parameters + (1 + shape.slots + shape.nodes().size()) * buffer_size;
}

SharedState::SharedState(const Shape& shape, Descriptor memory)
    : shape_(shape),
      places_(shape),
      memory_(std::move(memory)),
      base_(map_shared_memory(memory_, places_.size)) {}

SharedState::~SharedState() {
  munmap(base_, places_.size);
}

std::unique_ptr<SharedState> SharedState::make(const Shape& shape, uint64_t step, uint32_t spins) {
  std::unique_ptr<SharedState> state(
      new SharedState(shape, make_shared_memory(kName, Places(shape).size)));
  Header& header = state->header();
  header.magic = kMagic;
  header.nonce = random_number();
  header.floats = shape.floats;
  header.tensors = shape.tensors;
  header.slots = static_cast<uint32_t>(shape.slots);
  header.members = static_cast<uint32_t>(shape.members);
  header.replicas = static_cast<uint32_t>(shape.replicas);
  header.rounded = shape.rounded ? 1 : 0;
  header.spins = spins;
  header.word = step_word(step);
  for (int member = 0; member < shape.members; ++member)
    state->seat(member).word = progress(step - 1, 0);
  return state;
}

std::unique_ptr<SharedState> SharedState::open(const Shape& shape, const Offer& offer) {
  Descriptor memory = open_shared_memory(kName, offer.pid, offer.fd, Places(shape).size);
  std::unique_ptr<SharedState> state;
  try {
    state.reset(new SharedState(shape, std::move(memory)));
  } catch (const Unavailable& error) {
    throw Invalid(error.what());
  }
  const Header& header = state->header();
  if (header.magic != kMagic || header.nonce != offer.nonce || header.floats != shape.floats ||
      header.tensors != shape.tensors || header.slots != shape.slots ||
      header.members != static_cast<uint32_t>(shape.members) ||
      header.replicas != static_cast<uint32_t>(shape.replicas) ||
      header.rounded != (shape.rounded ? 1u : 0u))
    throw Invalid("it is another group's, or of another generation");
  return state;
}

SharedState::Offer SharedState::offer() const {
  return {static_cast<uint32_t>(getpid()), static_cast<uint32_t>(memory_.get()), header().nonce};
}

SharedState::Header& SharedState::header() const {
  return *reinterpret_cast<Header*>(base_);
}

SharedState::Seat& SharedState::seat(int member) const {
  return reinterpret_cast<Seat*>(base_ + places_.seats)[member];
}

Doorbell& SharedState::bell() const {
  return header().bell;
}

uint32_t SharedState::spins() const {
  return header().spins;
}

std::span<float> SharedState::buffer(size_t index) const {
  return {reinterpret_cast<float*>(base_ + places_.parameters + index * places_.buffer_size),
          shape_.floats};
}

std::span<float> SharedState::parameters() const {
  return buffer(0);
}

std::span<float> SharedState::slot(size_t index) const {
  return buffer(1 + index);
}

std::span<float> SharedState::sum(size_t index) const {
  return buffer(1 + shape_.slots + index);
}

std::span<float> SharedState::ratios() const {
  return {reinterpret_cast<float*>(base_ + places_.ratios), shape_.tensors};
}

float* SharedState::undo(int member, size_t parity) const {
  const size_t index = 2 * static_cast<size_t>(member) + parity;
  return reinterpret_cast<float*>(base_ + places_.undo + index * places_.undo_size);
}

void SharedState::set_sums(int replica, const compute::LossSums& sums) const {
  reinterpret_cast<compute::LossSums*>(base_ + places_.sums)[replica] = sums;
}

void SharedState::set_time(int member, const ComputingTime& time) const {
  seat(member).time = time;
}

ComputingTime SharedState::time(int member) const {
  return seat(member).time;
}

void SharedState::set_note(const Note& note) const {
  header().note = note;
}

Note SharedState::note() const {
  return header().note;
}

compute::LossSums SharedState::sums() const {
  compute::LossSums all;
  for (int replica = 0; replica < shape_.replicas; ++replica) {
    const compute::LossSums sums =
        reinterpret_cast<const compute::LossSums*>(base_ + places_.sums)[replica];
    if (sums.plausible()) all += sums;
  }
  return all;
}

bool SharedState::contribute(uint64_t step) const {
  const auto word = at(header().word);
  uint64_t old = word.load(std::memory_order_relaxed);
  do {
    if ((old & kFenced) != 0 || step_of(old) != step) return false;
  } while (!word.compare_exchange_weak(old, old + (uint64_t{1} << kContributedAt),
                                       std::memory_order_acq_rel, std::memory_order_relaxed));
  if (contributed(old) + 1 == static_cast<uint64_t>(shape_.members)) ring(bell());
  return true;
}

bool SharedState::all_contributed(uint64_t step) const {
  const uint64_t word = at(header().word).load(std::memory_order_acquire);
  return step_of(word) > step ||
         (step_of(word) == step && contributed(word) == static_cast<uint64_t>(shape_.members));
}

bool SharedState::begin_tile(uint64_t step, int member, size_t tile) const {
  const compute::Range range = shape_.tile(tile);
  const size_t number = tile - shape_.first_tile(member);
  float* log = undo(member, number % 2);
  for (size_t i = 0; i < 1 + shape_.slots; ++i)
    std::memcpy(log + i * kTile, buffer(i).data() + range.begin, range.size() * sizeof(float));
  const auto word = at(seat(member).word);
  uint64_t old = word.load(std::memory_order_relaxed);
  return (old & kFenced) == 0 &&
         word.compare_exchange_strong(old, progress(step, number + 1), std::memory_order_acq_rel,
                                      std::memory_order_relaxed);
}

bool SharedState::finish_slice(uint64_t step, int member) const {
  const size_t tiles = shape_.first_tile(member + 1) - shape_.first_tile(member);
  const auto seated = at(seat(member).word);
  uint64_t old = seated.load(std::memory_order_relaxed);
  if ((old & kFenced) != 0 ||
      !seated.compare_exchange_strong(old, progress(step, tiles + 1), std::memory_order_acq_rel,
                                      std::memory_order_relaxed))
    return false;
  const auto word = at(header().word);
  old = word.load(std::memory_order_relaxed);
  bool last = false;
  do {
    if ((old & kFenced) != 0) return false;
    last = updated(old) + 1 == static_cast<uint64_t>(shape_.members);
  } while (!word.compare_exchange_weak(
      old, last ? step_word(step + 1) : old + (uint64_t{1} << kUpdatedAt),
      std::memory_order_acq_rel, std::memory_order_relaxed));
  if (last) ring(bell());
  return true;
}

bool SharedState::done(uint64_t step) const {
  return step_of(at(header().word).load(std::memory_order_acquire)) > step;
}

bool SharedState::fenced() const {
  return (at(header().word).load(std::memory_order_acquire) & kFenced) != 0;
}

void SharedState::wake() const {
  ring(bell());
}

void SharedState::fence() const {
  at(header().word).fetch_or(kFenced, std::memory_order_acq_rel);
  for (int member = 0; member < shape_.members; ++member)
    at(seat(member).word).fetch_or(kFenced, std::memory_order_acq_rel);
  ring(bell());
}

bool SharedState::must_complete() const {
  return contributed(at(header().word).load(std::memory_order_acquire)) ==
         static_cast<uint64_t>(shape_.members);
}

uint64_t SharedState::settled_step() const {
  const uint64_t step = step_of(at(header().word).load(std::memory_order_acquire));
  return must_complete() ? step + 1 : step;
}

std::vector<size_t> SharedState::extract(std::span<float> parameters,
                                         std::span<const std::span<float>> slots) const {
  const auto copy = [&](size_t tile, const std::function<const float*(size_t)>& from) {
    const compute::Range range = shape_.tile(tile);
    for (size_t i = 0; i < 1 + shape_.slots; ++i) {
      float* const to = i == 0 ? parameters.data() : slots[i - 1].data();
      std::memcpy(to + range.begin, from(i), range.size() * sizeof(float));
    }
  };
  const bool complete = must_complete();
  const uint64_t step = settled_step() - 1;  // the step to complete
  std::vector<size_t> old;
  for (int member = 0; member < shape_.members; ++member) {
    const uint64_t word = at(seat(member).word).load(std::memory_order_acquire);
    const size_t first = shape_.first_tile(member);
    const size_t end = shape_.first_tile(member + 1);
    const size_t next = is_of(word, step) ? begun(word) : 0;
    for (size_t tile = first; tile < end; ++tile) {
      const size_t number = tile - first + 1;
      if (complete && number == next)
        copy(tile, [&](size_t i) { return undo(member, (number - 1) % 2) + i * kTile; });
      else
        copy(tile, [&](size_t i) { return buffer(i).data() + shape_.tile(tile).begin; });
      if (complete && number >= next) old.push_back(tile);
    }
  }
  return old;
}

}  // namespace muster::collective
