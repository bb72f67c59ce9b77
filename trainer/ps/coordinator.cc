#include "trainer/ps/coordinator.h"

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/log.h"
#include "trainer/group/backoff.h"
#include "trainer/group/generations.h"
#include "trainer/ps/recovery.h"
#include "trainer/ps/shard_host.h"

namespace muster::ps {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {
constexpr milliseconds kGlance{200};
constexpr milliseconds kOpening{120000};
constexpr milliseconds kRemind{30000};
}  // namespace

Coordinator::Coordinator(group::RendezvousServer& rendezvous, Control& control,
                         const checkpoint::Store& store, Setup setup)
    : rendezvous_(rendezvous), control_(control), store_(store), setup_(std::move(setup)) {
  thread_ = std::thread([this] { run(); });
}

Coordinator::~Coordinator() {
  closing_ = true;
  control_.cancel();
  thread_.join();
}

void Coordinator::rethrow_failure() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

// Until all are there; returns who they are, and what they hold.
std::vector<uint64_t> Coordinator::wait_for_shards(std::vector<ShardState>& states) {
  auto remind = Clock::now();
  while (!closing_) {
    std::vector<uint64_t> incarnations;
    std::string missing;
    states.clear();
    rendezvous_.inspect([&](const group::Roster& roster) {
      for (int i = 0; i < setup_.shards; ++i) {
        const group::Roster::Peer* shard = roster.shard(i);
        if (!shard) continue;
        incarnations.push_back(shard->hello.incarnation());
        states.push_back(shard->shard);
      }
      missing = roster.missing();
    });
    if (static_cast<int>(states.size()) == setup_.shards) return incarnations;
    if (Clock::now() >= remind) {
      log::info("waiting for " + missing);
      remind = Clock::now() + kRemind;
    }
    rendezvous_.wait_for_change(kGlance);
  }
  return {};
}

void Coordinator::open(const std::vector<ShardState>& states) {
  const auto newest = store_.newest();
  Opening opening = decide_opening(states, setup_.sync, newest.has_value());
  OpenRequest request = setup_.request;
  request.set_content(opening.content);
  PositionMessage position;
  std::string from = "the beginning";
  if (opening.content == OpenRequest::RESTORE) {
    position = to_message(setup_.resume_at(*newest));
    request.set_checkpoint("checkpoints/" + newest->directory.filename().string());
    from = newest->directory.filename();
  } else if (opening.content == OpenRequest::KEEP) {
    position = states[0].base();
    from = "what the shards hold";
  }
  *request.mutable_position() = position;
  const uint64_t generation = group::open_generation(setup_.storage, opening.above);
  request.set_generation(generation);
  control_.open(request, kOpening);
  rendezvous_.update([&](GroupView& view) {
    view.set_generation(generation);
    view.set_phase(GroupView::RUNNING);
    *view.mutable_base() = position;
  });
  log::info(
      "generation " + std::to_string(generation) + " opened from " + from + ": " + opening.reason,
      {{"generation", generation}, {"step", position.step()}});
}

bool Coordinator::same_shards(const std::vector<uint64_t>& incarnations) const {
  bool same = true;
  rendezvous_.inspect([&](const group::Roster& roster) {
    for (int i = 0; i < setup_.shards; ++i) {
      const group::Roster::Peer* shard = roster.shard(i);
      // One that only lost its stream to us, or is on its way back, may hold what it held.
      if (shard && shard->hello.incarnation() != incarnations[static_cast<size_t>(i)]) same = false;
    }
  });
  return same;
}

// While the generation lives.
void Coordinator::watch(const std::vector<uint64_t>& incarnations) {
  bool asked = false;
  while (!closing_ && same_shards(incarnations)) {
    bool leaving = false;
    rendezvous_.inspect([&](const group::Roster& roster) { leaving = roster.shard_leaving(); });
    if (leaving && !asked && setup_.shard_leaving) setup_.shard_leaving();
    asked = leaving;
    rendezvous_.wait_for_change(kGlance);
  }
}

void Coordinator::run() {
  group::Backoff backoff;
  while (!closing_) {
    std::vector<ShardState> states;
    const auto incarnations = wait_for_shards(states);
    if (closing_) return;
    try {
      open(states);
      backoff.reset();
      watch(incarnations);
      if (closing_) return;
      log::info("a shard came back: opening the next generation");
      rendezvous_.update([](GroupView& view) {
        if (view.phase() == GroupView::RUNNING) view.set_phase(GroupView::FORMING);
      });
    } catch (const WriteError&) {
      // Ours alone to report: where we run next may be able to write.
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      return;
    } catch (const Unavailable& error) {
      log::warning(std::string("no generation could be opened: ") + error.what());
      std::this_thread::sleep_for(backoff.next());
    } catch (const Invalid& error) {
      {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
      }
      fail(error.exit_code(), error.what());
      return;
    }
  }
}

void Coordinator::fail(int exit_code, const std::string& message) {
  rendezvous_.update([&](GroupView& view) {
    view.set_phase(GroupView::FAILED);
    view.set_exit_code(static_cast<uint32_t>(exit_code));
    view.set_message(message);
  });
}

}  // namespace muster::ps
