#include "trainer/loop/batches/workload.h"

#include <algorithm>

#include "common/error.h"
#include "trainer/loop/batches/stopping.h"

namespace muster::loop {

using data::quotient_up;

data::BatchRule batch_rule(const spec::TrainingSpec& spec) {
  return {spec.batch_size, spec.gradient_accumulation, spec.data.drop_remainder};
}

Workload::Workload(const spec::TrainingSpec& spec, uint64_t samples, int members, bool distributed)
    : Workload(spec, data::Shards::by_record(samples, batch_rule(spec)), members, distributed) {}

Workload::Workload(const spec::TrainingSpec& spec, const data::Shards& shards, int members,
                   bool distributed)
    : samples_(shards.samples()),
      batches_per_epoch_(shards.batches_per_epoch()),
      members_(static_cast<uint64_t>(members)),
      accumulation_(static_cast<uint64_t>(spec.gradient_accumulation)),
      epochs_(spec.epochs),
      steps_(spec.steps),
      async_(spec.policy != spec::SyncPolicy::sync && distributed),
      batches_per_ticket_(accumulation_ * (async_ ? static_cast<uint64_t>(spec.devices) : 1)),
      early_stopping_(spec.early_stopping) {
  const bool nothing = batches_per_epoch_ == 0 || steps_.value_or(epochs_.value_or(0)) == 0;
  if (nothing)
    throw Invalid("training: expected at least one step, found none: " + std::to_string(samples_) +
                  " samples in batches of " + std::to_string(spec.batch_size) +
                  (spec.data.drop_remainder ? " without the remainder" : ""));
}

uint64_t Workload::steps_per_epoch() const {
  return async_ ? tickets_per_epoch() : quotient_up(batches_per_epoch_, members_ * accumulation_);
}

uint64_t Workload::total_steps(const checkpoint::Position& position) const {
  if (steps_) return *steps_;
  if (async_) return total_tickets();
  if (position.epoch >= *epochs_) return position.step;
  const uint64_t left = batches_per_epoch_ - std::min(position.next_batch, batches_per_epoch_);
  return position.step + quotient_up(left, members_ * accumulation_) +
         (*epochs_ - position.epoch - 1) * steps_per_epoch();
}

bool Workload::is_stopped(const checkpoint::Position& position) const {
  return position.evaluations.reached ||
         checkpoint::is_stopped(position.evaluations, early_stopping_);
}

bool Workload::finished(const checkpoint::Position& position) const {
  if (is_stopped(position)) return true;
  if (async_)
    return position.epoch * tickets_per_epoch() + position.next_batch >= total_tickets() &&
           position.outstanding.empty();
  return steps_ ? position.step >= *steps_ : position.epoch >= *epochs_;
}

checkpoint::Position Workload::within_epoch(checkpoint::Position position) const {
  if (async_ || position.next_batch < batches_per_epoch_) return position;
  ++position.epoch;
  position.next_batch = 0;
  return position;
}

void Workload::advance(checkpoint::Position& position) const {
  ++position.step;
  ++position.optimizer_t;
  position.next_batch += members_ * accumulation_;
  position = within_epoch(std::move(position));
}

Work Workload::work(uint64_t ticket, uint64_t epoch, uint64_t first_batch, const Turn& turn) const {
  Work work;
  work.ticket = ticket;
  work.at.epoch = epoch;
  work.at.step = first_batch;
  work.at.taken = static_cast<uint64_t>(turn.taken) * accumulation_;
  data::Share& share = work.at.share;
  share.stride = members_ * accumulation_;
  share.first = static_cast<uint64_t>(turn.first) * accumulation_;
  share.batches = accumulation_;
  share.pieces = static_cast<uint64_t>(turn.count);
  share.distance = static_cast<uint64_t>(turn.distance) * accumulation_;
  return work;
}

Work Workload::part_of(const checkpoint::Position& position, const Turn& turn) const {
  const uint64_t ticket =
      position.epoch * tickets_per_epoch() + position.next_batch / batches_per_ticket_;
  return work(ticket, position.epoch, position.next_batch, turn);
}

uint64_t Workload::tickets_per_epoch() const {
  return quotient_up(batches_per_epoch_, batches_per_ticket_);
}

uint64_t Workload::total_tickets() const {
  return steps_ ? *steps_ : *epochs_ * tickets_per_epoch();
}

uint64_t Workload::whole_epochs() const {
  return total_tickets() / tickets_per_epoch();
}

Work Workload::ticket(uint64_t number, const Turn& turn) const {
  return work(number, number / tickets_per_epoch(),
              number % tickets_per_epoch() * batches_per_ticket_, turn);
}

}  // namespace muster::loop
