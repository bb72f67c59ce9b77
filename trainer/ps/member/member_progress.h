#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "proto/muster/rendezvous.pb.h"
#include "trainer/checkpoint/files/manifest.h"
#include "trainer/ps/member/exchange.h"

namespace muster::ps {

// Decides of which position a member's parameters are, and what the loss sums up to it are: in one
// generation after the other, and when an answer of the shards was lost.
class MemberProgress {
 public:
  struct Setup {
    bool sync = true;
    // Sync: moves the position to a step, and returns the epoch of the last step on the way.
    std::function<uint64_t(uint64_t step, checkpoint::Position& position)> advance;
    uint64_t whole_epochs = 0;  // async: the epochs of the whole training
  };

  explicit MemberProgress(Setup setup) : setup_(std::move(setup)) {}

  // `result` is that of Exchange::align() in the generation of `view`. `position` is the position
  // before, of any generation.
  void aligned(const GroupView& view, const Exchange::Result& result,
               checkpoint::Position& position);
  // `result` is that of Exchange::step() with work of `epoch`.
  void stepped(const Exchange::Result& result, uint64_t epoch, checkpoint::Position& position);

  // Async: the number of the next work; nothing if there is none.
  std::optional<uint64_t> ticket() const { return ticket_; }

 private:
  void go_on(const Exchange::Result& result, checkpoint::Position& position);

  const Setup setup_;
  uint64_t generation_ = 0;  // of the position
  std::optional<uint64_t> ticket_;
};

}  // namespace muster::ps
