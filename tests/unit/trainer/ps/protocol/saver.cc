#include "tests/unit/trainer/ps/protocol/saver.h"

namespace muster::ps::protocol {

void Saver::begin(Task task) {
  task_ = std::move(task);
  next_ = Next::find;
  result_ = Result::none;
}

bool Saver::ready() const {
  return task_ && (next_ != Next::wait || calls_.answered());
}

void Saver::act() {
  try {
    step();
  } catch (const Unavailable&) {
    calls_.cancel();
    task_.reset();
    // Once renamed, the checkpoint is published, whatever fails afterwards.
    result_ = next_ == Next::prune ? Result::saved : Result::failed;
  }
}

void Saver::step() {
  SimulatedStorage& storage = world_.storage();
  switch (next_) {
    case Next::find: {
      const auto* there = storage.find(task_->manifest.position.step, task_->manifest.generation);
      next_ = Next::begin;
      if (!there) return;
      result_ = task_->manifest.final && !there->final ? Result::name_taken : Result::saved;
      task_.reset();
      return;
    }
    case Next::begin:
      temporary_ = storage.begin();
      next_ = Next::write;
      return;
    case Next::write: {
      std::vector<WriteRequest> requests(task_->shard_steps.size());
      for (size_t shard = 0; shard < requests.size(); ++shard) {
        requests[shard].set_generation(task_->manifest.generation);
        requests[shard].set_step(task_->shard_steps[shard]);
        requests[shard].set_directory(temporary_);
        requests[shard].set_shard(static_cast<uint32_t>(shard));
      }
      calls_.start(requests, task_->serving);
      next_ = Next::wait;
      return;
    }
    case Next::wait:
      calls_.take<WriteReply>();
      next_ = Next::check;
      return;
    case Next::check:
      storage.require_newest(task_->manifest.generation);
      next_ = Next::publish;
      return;
    case Next::publish:
      storage.publish(temporary_, task_->manifest);
      world_.tell(id_, "published step", task_->manifest.position.step);
      next_ = Next::prune;
      return;
    case Next::prune:
      storage.prune(1);
      task_.reset();
      result_ = Result::saved;
      return;
  }
}

}  // namespace muster::ps::protocol
