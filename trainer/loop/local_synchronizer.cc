#include "trainer/loop/local_synchronizer.h"

#include "trainer/ps/initial_parameters.h"

namespace muster::loop {

namespace {

class LocalSnapshot : public Snapshot {
 public:
  LocalSnapshot(const Assembly& assembly, const std::vector<compute::Floats>& slots,
                checkpoint::Position position)
      : layout_(assembly.engine->layout()),
        slot_names_(assembly.optimizer->slot_names()),
        slots_(slots),
        position_(std::move(position)) {
    const auto parameters = assembly.engine->parameters();
    parameters_.assign(parameters.begin(), parameters.end());
  }

  const checkpoint::Position& position() const override { return position_; }

  void write(const std::filesystem::path& directory, checkpoint::Manifest& manifest) override {
    const compute::Range whole{0, layout_.size()};
    const auto add = [&](std::string_view kind, std::span<const checkpoint::TensorPiece> pieces) {
      manifest.files.push_back(checkpoint::write_safetensors(
          directory / checkpoint::shard_file_name(kind, 0, 1), pieces, {}));
    };
    add("model", checkpoint::pieces_of(layout_, whole, parameters_, ""));
    std::vector<checkpoint::TensorPiece> pieces;
    for (size_t i = 0; i < slots_.size(); ++i)
      for (auto& piece : checkpoint::pieces_of(layout_, whole, slots_[i], slot_names_[i] + "/"))
        pieces.push_back(std::move(piece));
    if (!slots_.empty()) add("optimizer", pieces);
    manifest.position = position_;
    manifest.shard_steps = {position_.step};
  }

 private:
  const compute::ParameterLayout& layout_;
  const std::vector<std::string>& slot_names_;
  compute::Floats parameters_;
  std::vector<compute::Floats> slots_;
  checkpoint::Position position_;
};

}  // namespace

LocalSynchronizer::LocalSynchronizer(Assembly& assembly, const checkpoint::Store::Found* from,
                                     uint64_t generation)
    : assembly_(assembly), gradients_(*assembly.engine), generation_(generation) {
  const compute::ParameterLayout& layout = assembly.engine->layout();
  const compute::Range whole{0, layout.size()};
  const auto& names = assembly.optimizer->slot_names();
  slots_.assign(names.size(), compute::Floats(layout.size(), 0.0f));
  slot_views_.assign(slots_.begin(), slots_.end());
  if (!from) {
    ps::fill_initial_parameters(assembly.spec(), layout, assembly.engine->parameters());
    return;
  }
  checkpoint::Store::load(*from, layout, whole, assembly.engine->parameters(), "");
  for (size_t i = 0; i < names.size(); ++i)
    checkpoint::Store::load(*from, layout, whole, slots_[i], names[i] + "/");
  position_ = from->manifest.position;
}

std::optional<Work> LocalSynchronizer::next() {
  if (assembly_.workload->finished(position_)) return std::nullopt;
  return assembly_.workload->part_of(position_, 0);
}

Synchronizer::StepResult LocalSynchronizer::step(const Work& work, Feed& feed, std::stop_token) {
  compute::UpdateArguments update;
  update.learning_rate = static_cast<float>(assembly_.spec().schedule.at(position_.step));
  update.t = position_.optimizer_t + 1;
  StepResult result;
  if (work.batches == 1) {
    result.sums =
        assembly_.engine->train(feed.batch(work), *assembly_.optimizer, update, slot_views_);
  } else {
    result.sums = gradients_.compute(work, feed);
    update.inverse_rows = 1.0f / static_cast<float>(result.sums.rows);
    assembly_.optimizer->apply({0, assembly_.engine->layout().size()}, update,
                               assembly_.engine->parameters(), gradients_.values(), slot_views_);
  }
  position_.sums.add(work.epoch, result.sums);
  assembly_.workload->advance(position_);
  return result;
}

std::unique_ptr<Snapshot> LocalSynchronizer::snapshot() {
  return std::make_unique<LocalSnapshot>(assembly_, slots_, position_);
}

}  // namespace muster::loop
