// Replays what TensorFlow's parameter servers did; tests/fixtures/tensorflow/README.md says what
// the files mean.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trainer/compute/engine.h"
#include "trainer/ps/shard/shard.h"

namespace muster::ps {
namespace {

using Json = nlohmann::json;

Json read(const std::string& name) {
  const auto folder = std::filesystem::path(MUSTER_SOURCE_DIR) / "tests/fixtures/tensorflow";
  std::ifstream in(folder / (name + ".json"));
  return Json::parse(in);
}

compute::ModelSpec model_of(const Json& json) {
  compute::ModelSpec model;
  model.name = json.at("name");
  model.input_shape = json.at("input_shape").get<std::vector<int64_t>>();
  model.label_count = json.at("label_count");
  model.loss = compute::SoftmaxCrossEntropy{};
  compute::Dense hidden;
  hidden.units = json.at("hidden");
  hidden.activation = compute::Activation::relu;
  compute::Dense logits;
  logits.units = json.at("label_count");
  logits.activation = compute::Activation::linear;
  model.layers = {{"hidden", hidden, {}, true}, {"logits", logits, {}, true}};
  return model;
}

// The shards and members of one case, and the order in which they do things.
class Replay {
 public:
  Replay(const Json& json, int shards)
      : json_(json),
        sync_(json.at("policy") == "sync"),
        engine_(compute::Engine::create(model_of(json), options())),
        optimizer_(compute::Optimizer::create(sgd(), engine_->layout())) {
    schedule_.learning_rate = json.at("optimizer").at("learning_rate");
    members_.resize(json.at("members"));
    const std::vector<float> initial = whole(json.at("parameters"));
    ranges_ = engine_->layout().partition(shards);
    for (int shard = 0; shard < shards; ++shard) add_shard(shard, initial);
    for (Member& member : members_) member.parameters = initial;
  }

  // Makes one update after the other and compares each with TensorFlow's.
  void run() {
    for (const Json& entry : json_.at("order")) {
      if (!sync_) {
        turn(entry.get<uint32_t>());
        continue;
      }
      for (const Json& rank : entry) push(rank.get<uint32_t>());
      compare();
    }
    EXPECT_EQ(compared_, json_.at("after").size());
  }
  const Shard& shard(size_t index) const { return shards_[index]; }

 private:
  struct Member {
    std::vector<float> parameters;
    std::vector<float> gradients;
    compute::LossSums sums;
    uint64_t step = 0;
    uint64_t sequence = 0;
    uint64_t ticket = 0;
    size_t number = 0;  // of its next batch
    bool holds = false;
  };

  compute::EngineOptions options() const {
    compute::EngineOptions options;
    options.max_rows = json_.at("batch_size");
    options.threads = 1;
    return options;
  }
  compute::Sgd sgd() const {
    compute::Sgd sgd;
    sgd.momentum = json_.at("optimizer").value("momentum", 0.0f);
    return sgd;
  }

  std::vector<float> whole(const Json& tensors) const {
    std::vector<float> values(engine_->layout().size());
    for (const auto& [name, numbers] : tensors.items()) {
      const compute::ParameterTensor& tensor = engine_->layout().find(name);
      EXPECT_EQ(numbers.size(), tensor.count);
      for (size_t i = 0; i < tensor.count; ++i) values[tensor.offset + i] = numbers[i];
    }
    return values;
  }

  void add_shard(int index, const std::vector<float>& initial) {
    Shard::Shape shape;
    shape.shard = index;
    shape.range = ranges_[static_cast<size_t>(index)];
    shape.policy = sync_ ? SyncPolicy::sync : SyncPolicy::async;
    shape.shards = static_cast<int>(ranges_.size());
    shape.backup_workers = json_.at("backup_workers");
    shards_.emplace_back(shape, *optimizer_, schedule_);
    Shard::Content content;
    content.parameters = cut(initial, shape.range);
    content.slots.assign(optimizer_->slot_names().size(), compute::Floats(shape.range.size()));
    shards_.back().load(std::move(content));
    Shard::Answers none;
    shards_.back().begin(1, static_cast<int>(members_.size()), Tickets(0, 1000, {}), none);
  }

  static compute::Floats cut(const std::vector<float>& from, compute::Range range) {
    return {from.begin() + static_cast<ptrdiff_t>(range.begin),
            from.begin() + static_cast<ptrdiff_t>(range.end)};
  }

  PushHeader header(uint32_t rank) {
    PushHeader header;
    header.generation = 1;
    header.rank = rank;
    header.sequence = ++members_[rank].sequence;
    header.step = members_[rank].step;
    header.ticket = members_[rank].ticket;
    header.sums = members_[rank].sums;
    return header;
  }

  void compute(uint32_t rank) {
    Member& member = members_[rank];
    const Json& json = json_.at("batches").at(rank).at(member.number++);
    const std::vector<float> features = json.at("features");
    const std::vector<int32_t> labels = json.at("labels");
    std::vector<const void*> rows;
    for (size_t i = 0; i < labels.size(); ++i)
      rows.push_back(&features[i * features.size() / labels.size()]);
    compute::Batch batch;
    batch.rows = static_cast<int64_t>(labels.size());
    batch.features = rows;
    batch.labels = labels;
    engine_->parameters().write({0, member.parameters.size()}, member.parameters).wait();
    member.sums = engine_->compute_gradients(batch);
    member.gradients.resize(engine_->gradients().size());
    engine_->gradients().read({0, member.gradients.size()}, member.gradients).wait();
  }

  void push(uint32_t rank) {
    compute(rank);
    send(rank);
  }

  void send(uint32_t rank) {
    const PushHeader with = header(rank);
    for (size_t shard = 0; shard < shards_.size(); ++shard) {
      Shard::Answers answers;
      memories_.push_back(cut(members_[rank].gradients, ranges_[shard]));
      shards_[shard].push(rank + 1, with, {memories_.back(), {}}, answers);
      for (const auto& answer : answers) receive(shard, answer);
    }
  }

  void receive(size_t shard, const Shard::Answer& answer) {
    Member& member = members_[answer.session - 1];
    EXPECT_EQ(answer.header.status, Status::ok);
    const auto values = shards_[shard].parameters();
    std::copy(values.begin(), values.end(),
              member.parameters.begin() + static_cast<ptrdiff_t>(ranges_[shard].begin));
    if (shard > 0) return;
    member.step = answer.header.step;
    member.ticket = answer.header.ticket.value_or(0);
  }

  // Async: takes parameters and computes, or pushes.
  void turn(uint32_t rank) {
    Member& member = members_[rank];
    member.holds = !member.holds;
    if (!member.holds) {
      send(rank);
      return compare();
    }
    const PushHeader with = header(rank);
    for (size_t shard = 0; shard < shards_.size(); ++shard) {
      Shard::Answers answers;
      shards_[shard].pull(rank + 1, with, answers);
      for (const auto& answer : answers) receive(shard, answer);
    }
    compute(rank);
  }

  void compare() {
    const std::vector<float> expected = whole(json_.at("after").at(compared_));
    for (size_t shard = 0; shard < shards_.size(); ++shard)
      for (size_t i = 0; i < ranges_[shard].size(); ++i)
        EXPECT_NEAR(shards_[shard].parameters()[i], expected[ranges_[shard].begin + i], 2e-6)
            << "after update " << compared_ << ", float " << ranges_[shard].begin + i;
    ++compared_;
  }

  const Json json_;
  const bool sync_;
  const std::unique_ptr<compute::Engine> engine_;
  const std::unique_ptr<compute::Optimizer> optimizer_;
  compute::Schedule schedule_;
  std::vector<Member> members_;
  std::vector<compute::Range> ranges_;
  std::deque<Shard> shards_;
  std::deque<compute::Floats> memories_;  // of the sessions
  size_t compared_ = 0;
};

TEST(TensorFlow, SyncIsWhatSyncReplicasOptimizerComesTo) {
  for (const int shards : {1, 2}) Replay(read("sync"), shards).run();
}

TEST(TensorFlow, WithABackupWorkerItIsWhatSyncReplicasOptimizerComesTo) {
  Replay replay(read("backup"), 1);
  replay.run();
  // Each step had a late push.
  EXPECT_EQ(replay.shard(0).counts().stale, 4u);
  EXPECT_EQ(replay.shard(0).counts().left_out, 4u);
}

TEST(TensorFlow, AsyncIsWhatParameterServersComeToInTheSameOrder) {
  for (const char* name : {"async", "async-momentum"})
    for (const int shards : {1, 2}) Replay(read(name), shards).run();
}

}  // namespace
}  // namespace muster::ps
