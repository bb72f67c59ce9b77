#include "trainer/loop/batches/feed.h"

#include <algorithm>
#include <utility>

namespace muster::loop {

namespace {

constexpr uint64_t kPiecesAhead = 4;
constexpr uint64_t kMostAhead = 1024;  // most batches copied ahead

}  // namespace

Feed::Feed(const data::Dataset& dataset, const data::Shards& shards, const Options& options)
    : options_(options),
      dataset_(dataset),
      rows_(static_cast<uint64_t>(shards.most_rows())),
      effort_(options.augment.empty() ? dataset.effort() : data::Effort::work),
      batches_per_epoch_(shards.batches_per_epoch()),
      batcher_(dataset, shards, options.shuffle, options.seed, options.augment),
      buffer_(dataset, shards.most_rows(),
              effort_ == data::Effort::work ? data::BatchBuffer::Features::copied
                                            : data::BatchBuffer::Features::in_place,
              effort_ == data::Effort::work && !options.in_turn ? options.threads : 1) {
  if (effort_ == data::Effort::none || !options.in_turn) return;
  const auto prefetch = static_cast<uint64_t>(options.prefetch);
  const int threads = effort_ == data::Effort::work ? options.threads : 1;
  // One thread makes a whole batch; with two batches for each thread, no thread waits for another.
  const uint64_t enough = std::max(kPiecesAhead * static_cast<uint64_t>(options.accumulation),
                                   2 * static_cast<uint64_t>(threads));
  const uint64_t ahead = prefetch == 0 ? enough : data::quotient_up(prefetch, rows_);
  pipeline_ =
      std::make_unique<data::Pipeline>(std::move(batcher_), std::min(ahead, kMostAhead), threads);
}

void Feed::connect(compute::Engine& engine) {
  const auto serve = [&](std::span<const std::byte> memory, compute::Content content) {
    if (!memory.empty()) served_.push_back(engine.serve(memory, content));
  };
  if (effort_ == data::Effort::none) serve(dataset_.stored(), compute::Content::constant);
  if (pipeline_)
    for (const auto memory : pipeline_->memory()) serve(memory, compute::Content::changing);
  engine_ = &engine;
  engine.set_meanwhile([this] {
    if (const compute::Batch* next = ahead()) engine_->prepare(*next);
  });
}

const compute::Batch& Feed::batch(const Work& work, int i) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  data::Cursor at = work.at;
  at.taken += static_cast<uint64_t>(i);
  const compute::Batch* prepared = std::exchange(ahead_, nullptr);
  if (prepared != nullptr && given_->next(batches_per_epoch_) != at) {
    // The batch's memory is reused, so the engine must not read it any more.
    engine_->prepare({});
    prepared = nullptr;
  }
  given_.reset();
  const compute::Batch& batch = prepared != nullptr ? *prepared : next(at, work);
  given_ = at;
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin);
  waited_.store(waited_.load(kRelaxed) + took.count(), kRelaxed);
  return batch;
}

// Returns null if the batch is not ready, or if it is not known which one will be next.
const compute::Batch* Feed::ahead() {
  if (ahead_ != nullptr || !options_.in_turn || !given_) return ahead_;
  const data::Cursor at = given_->next(batches_per_epoch_);
  if (pipeline_)
    ahead_ = pipeline_->take_if_ready(at);
  else if (effort_ == data::Effort::none)
    ahead_ = &batcher_.fill(buffer_, at.epoch, at.batch());
  return ahead_;
}

const compute::Batch& Feed::next(const data::Cursor& at, const Work& work) {
  if (pipeline_) return pipeline_->take(at);
  if (effort_ != data::Effort::none)
    batcher_.will_need(at.epoch, at.batch() + pieces_ahead(work) * at.share.stride);
  return batcher_.fill(buffer_, at.epoch, at.batch());
}

uint64_t Feed::pieces_ahead(const Work& work) const {
  if (options_.prefetch == 0) return kPiecesAhead;
  return data::quotient_up(static_cast<uint64_t>(options_.prefetch), work.at.share.batches * rows_);
}

}  // namespace muster::loop
