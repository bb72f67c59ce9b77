#pragma once

#include <algorithm>

#include "proto/muster/rendezvous.pb.h"
#include "trainer/checkpoint/files/manifest.h"
#include "trainer/compute/loss_sums.h"

namespace muster::group {

// Conversions of training positions to and from the messages of rendezvous.proto.

// Copy the sums to and from any message that has the fields, without zero terms at the end.
template <class Message>
void set_sums(Message& message, const compute::LossSums& sums) {
  message.set_rows(sums.rows);
  message.set_loss(sums.loss);
  message.set_weight(sums.weight);
  const auto end =
      std::find_if(sums.terms.rbegin(), sums.terms.rend(), [](double term) { return term != 0; });
  message.mutable_terms()->Assign(sums.terms.begin(), end.base());
}

template <class Message>
compute::LossSums get_sums(const Message& message) {
  compute::LossSums sums;
  sums.rows = message.rows();
  sums.loss = message.loss();
  sums.weight = message.weight();
  const auto terms = std::min<size_t>(static_cast<size_t>(message.terms_size()), sums.terms.size());
  std::copy_n(message.terms().begin(), terms, sums.terms.begin());
  return sums;
}

using EpochSumsMessages = google::protobuf::RepeatedPtrField<EpochSumsMessage>;
checkpoint::EpochSums from_messages(const EpochSumsMessages& messages);
void to_messages(const checkpoint::EpochSums& sums, EpochSumsMessages& messages);

checkpoint::Evaluations from_message(const EvaluationsMessage& message);
EvaluationsMessage to_message(const checkpoint::Evaluations& evaluations);

// Whether sums and positions from a peer are possible: the sums are plausible, and each number is
// far below the largest one, so that counting can continue from it.
constexpr uint64_t kMostCounted = uint64_t{1} << 62;
bool is_possible(const EpochSumsMessages& messages);
bool is_possible(const PositionMessage& message);

checkpoint::Position from_message(const PositionMessage& message);
PositionMessage to_message(const checkpoint::Position& position);

}  // namespace muster::group
