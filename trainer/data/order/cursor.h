#pragma once

#include <cstdint>

namespace muster::data {

// The batches that one of several readers takes in each step of an epoch: `pieces` times `batches`
// consecutive batches.
struct Share {
  uint64_t stride = 1;    // batches of a step for all readers together
  uint64_t first = 0;     // our first batch, counted from the step's first
  uint64_t batches = 1;   // batches in a piece
  uint64_t pieces = 1;    // at least 1
  uint64_t distance = 1;  // distance between the first batches of two pieces
  bool operator==(const Share&) const = default;
};

// The position of a reader of batches. After its share of a step comes its share of the next step,
// and so on to the epoch's end. An epoch's last step may go beyond that end.
struct Cursor {
  uint64_t epoch = 0;
  uint64_t step = 0;  // the step's first batch, of any reader
  Share share;
  uint64_t taken = 0;  // batches of the share taken in this step

  uint64_t batch() const {
    return step + share.first + taken / share.batches * share.distance + taken % share.batches;
  }
  Cursor next(uint64_t batches_per_epoch) const;
  bool operator==(const Cursor&) const = default;
};

}  // namespace muster::data
