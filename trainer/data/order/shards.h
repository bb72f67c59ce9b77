#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::data {

template <std::integral Integer>
constexpr Integer quotient_up(Integer a, Integer b) {
  return (a + b - 1) / b;
}

// The logical replicas that a process computes: `count` from `first` on. `of` logical replicas
// compute a step's batches together.
struct Replicas {
  int first = 0;
  int count = 1;
  int of = 1;
};

struct BatchRule {
  int64_t rows = 32;
  int accumulation = 1;  // consecutive batches of one replica in a step
  bool drop_remainder = false;
};

// The samples of each batch of an epoch, from sizes alone. Batches are numbered through the logical
// replicas, `accumulation` of each in turn. An epoch has one shard of samples for all replicas (by
// record), or one for each (by file). By file, it ends with the batches of the largest shard, and
// the batches of the others are empty meanwhile, so that each sample is used exactly once.
class Shards {
 public:
  static Shards by_record(uint64_t samples, const BatchRule& rule);
  // Replica r has files r, r + of, r + 2 of and so on; at least one file for each replica.
  static Shards by_file(const std::vector<uint64_t>& samples_of_files, const Replicas& replicas,
                        const BatchRule& rule);

  // Returns the number after the last batch that has rows; 0 if none has.
  uint64_t batches_per_epoch() const { return batches_per_epoch_; }
  uint64_t samples() const;  // of all shards

  // A shard that this process holds.
  struct Held {
    size_t shard = 0;      // of all
    uint64_t begin = 0;    // its first sample in the process's data set
    uint64_t samples = 0;  // each epoch has them in another order
  };
  const std::vector<Held>& held() const { return held_; }

  struct Place {
    size_t held = 0;     // of held()
    uint64_t begin = 0;  // position in its order
    int64_t rows = 0;    // 0 beyond its end
  };
  // Throws Invalid for a batch of a shard that this process does not hold.
  Place place(uint64_t batch) const;
  int64_t most_rows() const { return rule_.rows; }

 private:
  Shards(std::vector<uint64_t> sizes, const Replicas& replicas, const BatchRule& rule);
  uint64_t batches_of(uint64_t samples) const;

  std::vector<uint64_t> sizes_;  // of all shards
  BatchRule rule_;
  std::vector<Held> held_;
  uint64_t batches_per_epoch_ = 0;
};

}  // namespace muster::data
