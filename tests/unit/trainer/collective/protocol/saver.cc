#include "tests/unit/trainer/collective/protocol/saver.h"

#include "common/error.h"

namespace muster::collective::protocol {

void Saver::begin(uint64_t generation, const State& state, bool final) {
  SimulatedStorage::Folder folder;
  folder.generation = generation;
  folder.position = state.position;
  folder.final = final;
  folder.files[0] = {state.position.step, state.buffers[0], {state.buffers[1]}};
  world_.books().check_folder(folder);
  task_ = std::move(folder);
  next_ = Next::find;
  result_ = Result::none;
}

void Saver::end(Result result) {
  result_ = result;
  task_.reset();
}

void Saver::act() {
  try {
    step();
  } catch (const Unavailable&) {
    // After the renaming it is published, whatever else fails.
    end(next_ == Next::prune ? Result::saved : Result::failed);
  }
}

void Saver::step() {
  SimulatedStorage& storage = world_.storage();
  switch (next_) {
    case Next::find: {
      const auto* there = storage.find(task_->position.step, task_->generation);
      next_ = Next::begin;
      if (there) end(task_->final && !there->final ? Result::name_taken : Result::saved);
      return;
    }
    case Next::begin:
      temporary_ = storage.begin();
      next_ = Next::write;
      return;
    case Next::write:
      storage.write(temporary_, 0, task_->files.at(0));
      next_ = Next::check;
      return;
    case Next::check:
      storage.require_newest(task_->generation);
      next_ = Next::publish;
      return;
    case Next::publish:
      storage.publish(temporary_, *task_);
      world_.published(task_->generation);
      world_.tell(id_, "published step", task_->position.step);
      next_ = Next::prune;
      return;
    case Next::prune:
      storage.prune(1);
      return end(Result::saved);
  }
}

}  // namespace muster::collective::protocol
