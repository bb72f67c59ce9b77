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

// The logical replicas that a process computes: `count` replicas from `first` on. In all, `of`
// logical replicas compute the batches of a step.
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
// replicas, `accumulation` batches of each in turn. An epoch has one shard of samples for all
// replicas (by record), or one shard for each (by file). By file, an epoch ends with the last batch
// of the largest shard; batches beyond the end of a smaller shard are empty, so that each sample is
// used exactly once.
class Shards {
 public:
  static Shards by_record(uint64_t samples, const BatchRule& rule);
  // Replica r has files r, r + of, r + 2 of and so on; at least one file for each replica.
  static Shards by_file(const std::vector<uint64_t>& samples_of_files, const Replicas& replicas,
                        const BatchRule& rule);

  // Returns the number after the last batch with rows; 0 if no batch has rows.
  uint64_t batches_per_epoch() const { return batches_per_epoch_; }
  uint64_t samples() const;  // number of samples in all shards

  // A shard that this process holds.
  struct Held {
    size_t shard = 0;      // number among all shards
    uint64_t begin = 0;    // the shard's first sample in the process's data set
    uint64_t samples = 0;  // number of samples, which have another order in each epoch
  };
  const std::vector<Held>& held() const { return held_; }

  struct Place {
    size_t held = 0;     // index in held()
    uint64_t begin = 0;  // position in the shard's order
    int64_t rows = 0;    // 0 beyond the shard's end
  };
  // Throws Invalid for a batch of a shard that this process does not hold.
  Place place(uint64_t batch) const;
  int64_t most_rows() const { return rule_.rows; }

 private:
  Shards(std::vector<uint64_t> sizes, const Replicas& replicas, const BatchRule& rule);
  uint64_t batches_of(uint64_t samples) const;

  std::vector<uint64_t> sizes_;  // sizes of all shards
  BatchRule rule_;
  std::vector<Held> held_;
  uint64_t batches_per_epoch_ = 0;
};

}  // namespace muster::data
