#include "tests/unit/trainer/simulation/saver.h"

#include "common/error.h"

namespace muster::simulation {

void Saver::begin(SimulatedStorage::Folder folder) {
  folder_ = std::move(folder);
  next_ = Next::find;
  result_ = Result::none;
}

void Saver::end(Result result) {
  result_ = result;
  folder_.reset();
}

void Saver::act() {
  try {
    step();
  } catch (const Unavailable&) {
    // Once renamed, the checkpoint is published, whatever fails afterwards.
    end(next_ == Next::prune ? Result::saved : Result::failed);
  }
}

void Saver::step() {
  SimulatedStorage& storage = world_.storage();
  switch (next_) {
    case Next::find: {
      const auto* there = storage.find(folder_->position.step, folder_->generation);
      next_ = Next::begin;
      if (there) end(folder_->final && !there->final ? Result::name_taken : Result::saved);
      return;
    }
    case Next::begin:
      temporary_ = storage.begin();
      next_ = Next::write;
      return;
    case Next::write:
      if (write(*folder_, temporary_)) next_ = Next::check;
      return;
    case Next::check:
      storage.require_newest(folder_->generation);
      next_ = Next::publish;
      return;
    case Next::publish:
      storage.publish(temporary_, *folder_);
      world_.tell(id_, "published step", folder_->position.step);
      next_ = Next::prune;
      return;
    case Next::prune:
      storage.prune(1);
      return end(Result::saved);
  }
}

}  // namespace muster::simulation
