#include "trainer/collective/wire_group.h"

#include <algorithm>
#include <cstring>

namespace muster::collective {

namespace {

constexpr size_t kBlock = 8192;  // floats that are added up together
// How long the caller may be away before ahead_ receives. Much shorter than the time after which a
// connection breaks because one side does not read.
constexpr std::chrono::milliseconds kAway{300};

// The kinds of frames. A frame's index is a bucket; with kState, a buffer.
enum Kind : uint32_t { kHeader, kNodes, kSum, kState, kDigest };

// A digest is sent twice if not all digests are equal.
constexpr size_t kDigests = 2;

iovec bytes_of(std::span<float> floats) {
  return {floats.data(), floats.size_bytes()};
}

}  // namespace

WireGroup::WireGroup(const GroupShape& shape, int member, size_t floats, const std::string& host,
                     const group::Identity& identity, const group::PortRange& ports, size_t bucket)
    : shape_(shape),
      member_(member),
      sum_(floats, shape.rounded),
      tree_(shape.nodes(), kBlock, shape.rounded),
      peers_(static_cast<size_t>(shape.members)),
      headers_(peers_.size()),
      connections_(member, shape.members, host, ports, identity) {
  plan_buckets(floats, bucket);
  own_.assign(shape.nodes_of(member).size(), WireFloats(floats, shape.rounded));
  nodes_.resize(shape.nodes().size());
  for (int other = 0; other < shape.members; ++other) {
    const auto replicas = static_cast<size_t>(shape.replicas_of(other).size());
    Peer& peer = peers_[static_cast<size_t>(other)];
    for (std::vector<std::byte>& header : peer.step_headers)
      header.resize(sizeof(Header) + replicas * sizeof(compute::LossSums));
    if (other == member) continue;
    others_.push_back(other);
    peer.nodes.assign(shape.nodes_of(other).size(), WireFloats(own_size_, shape.rounded));
  }
  connections_.on_frame([this](int peer, Connections::Frame frame)
                            MUSTER_REQUIRES(driving_) { return destination(peer, frame); },
                        [this](int peer, Connections::Frame frame)
                            MUSTER_REQUIRES(driving_) { received(peer, frame); });
  ahead_ = std::jthread([this](const std::stop_token& stop) { run_ahead(stop); });
}

void WireGroup::plan_buckets(size_t floats, size_t most) {
  const size_t count = (floats + most - 1) / most;
  constexpr size_t kGrain = compute::ParameterLayout::kAlignment;
  const size_t grains = (floats + kGrain - 1) / kGrain;
  for (size_t bucket = 0; bucket < count; ++bucket)
    buckets_.push_back({std::min(floats, grains * bucket / count * kGrain),
                        std::min(floats, grains * (bucket + 1) / count * kGrain)});
  for (size_t bucket = 0; bucket < count; ++bucket) {
    own_at_.push_back(own_size_);
    own_size_ += part(bucket, member_).size();
  }
}

// Returns the part of a bucket that `member` adds up.
compute::Range WireGroup::part(size_t bucket, int member) const {
  const compute::Range whole = buckets_[bucket];
  constexpr size_t kGrain = compute::ParameterLayout::kAlignment;
  const size_t grains = (whole.size() + kGrain - 1) / kGrain;
  const auto border = [&](int m) {
    return std::min(whole.end, whole.begin + grains * static_cast<size_t>(m) /
                                                 static_cast<size_t>(shape_.members) * kGrain);
  };
  return {border(member), border(member + 1)};
}

// Returns the place of our part of a bucket in the buffers for other members' nodes.
compute::Range WireGroup::own_part(size_t bucket) const {
  return {own_at_[bucket], own_at_[bucket] + part(bucket, member_).size()};
}

// Gives the connections to the caller, after ahead_ has released them. If `call` throws Broken, the
// connections are closed, so that the other members notice.
template <class Call>
auto WireGroup::drive(const Call& call) {
  caller_waits_ = true;
  if (ahead_drives_) connections_.wake();
  const MutexLock lock(driving_);
  caller_waits_ = false;
  try {
    if (failure_) std::rethrow_exception(failure_);
    return call();
  } catch (const Broken&) {
    connections_.close();
    throw;
  }
}

void WireGroup::connect(const std::vector<std::string>& endpoints, const Session::Watch& watch) {
  drive([&] { connections_.connect(endpoints, [&] { return watch.ended(); }); });
}

std::span<const iovec> WireGroup::destination(int index, Connections::Frame frame) {
  Peer& peer = peers_[static_cast<size_t>(index)];
  parts_.clear();
  if (frame.kind == kHeader && frame.index == 0 && peer.headers < kAhead) {
    std::vector<std::byte>& header = peer.step_headers[(turn_ + peer.headers) % kAhead];
    parts_.push_back({header.data(), header.size()});
  } else if (frame.kind == kNodes && is_next(frame, peer.nodes_received)) {
    for (WireFloats& node : peer.nodes) parts_.push_back(node.bytes(own_part(frame.index)));
  } else if (frame.kind == kSum && is_next(frame, peer.sums_received)) {
    parts_.push_back(sum_.bytes(part(frame.index, index)));
  } else if (frame.kind == kState && index == source_ && frame.index < state_.size() &&
             frame.index == peer.states) {
    parts_.push_back(bytes_of(state_[frame.index]));
  } else if (frame.kind == kDigest && frame.index == peer.digests && peer.digests < kDigests) {
    parts_.push_back({&peer.digest, sizeof peer.digest});
  } else {
    throw Broken("member " + std::to_string(index) + ": expected a frame of a step, found kind " +
                 std::to_string(frame.kind) + ", index " + std::to_string(frame.index));
  }
  return parts_;
}

// Whether `frame` is the next expected frame, after the frames of `received` buckets that are still
// unused.
bool WireGroup::is_next(Connections::Frame frame, size_t received) const {
  return received < kAhead * buckets_.size() && frame.index == received % buckets_.size();
}

void WireGroup::received(int index, Connections::Frame frame) {
  Peer& peer = peers_[static_cast<size_t>(index)];
  switch (static_cast<Kind>(frame.kind)) {
    case kHeader:
      ++peer.headers;
      break;
    case kNodes:
      for (WireFloats& node : peer.nodes) node.unpack(own_part(frame.index));
      ++peer.nodes_received;
      break;
    case kSum:
      sum_.unpack(part(frame.index, index));
      ++peer.sums_received;
      break;
    case kState:
      ++peer.states;
      break;
    case kDigest:
      ++peer.digests;
      break;
  }
}

void WireGroup::send_header(uint64_t step, const Contribution& contribution) {
  std::vector<std::byte>& header = peers_[static_cast<size_t>(member_)].step_headers[turn_];
  const std::span<const compute::LossSums> sums = contribution.sums;
  const Header begin{step, contribution.time, contribution.note, contribution.compare};
  std::memcpy(header.data(), &begin, sizeof begin);
  for (size_t i = 0; i < sums.size(); ++i) {
    std::memcpy(header.data() + sizeof begin + i * sizeof sums[i], &sums[i], sizeof sums[i]);
  }
  const iovec whole{header.data(), header.size()};
  connections_.send(others_, {kHeader, 0}, {&whole, 1});
}

size_t WireGroup::complete_buckets() const {
  const auto end = std::upper_bound(
      buckets_.begin(), buckets_.end(), complete_.load(),
      [](size_t complete, const compute::Range& bucket) { return complete < bucket.end; });
  return static_cast<size_t>(end - buckets_.begin());
}

void WireGroup::contribute(size_t bucket) {
  for (const int other : others_) {
    const compute::Range range = part(bucket, other);
    own_parts_.clear();
    for (WireFloats& node : own_) {
      node.pack(range);
      own_parts_.push_back(node.bytes(range));
    }
    connections_.send({&other, 1}, {kNodes, static_cast<uint32_t>(bucket)}, own_parts_);
  }
}

ComputingTime WireGroup::time(int member) const {
  return headers_[static_cast<size_t>(member)].time;
}

Note WireGroup::note() const {
  return headers_.front().note;
}

compute::LossSums WireGroup::read_headers(uint64_t step) {
  compute::LossSums all;
  for (int member = 0; member < shape_.members; ++member) {
    const std::vector<std::byte>& bytes = peers_[static_cast<size_t>(member)].step_headers[turn_];
    Header& header = headers_[static_cast<size_t>(member)];
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.step != step)
      throw Broken("member " + std::to_string(member) + ": expected it at step " +
                   std::to_string(step) + ", found it at " + std::to_string(header.step));
    for (int i = 0; i < shape_.replicas_of(member).size(); ++i) {
      compute::LossSums sums;
      std::memcpy(&sums, bytes.data() + sizeof header + static_cast<size_t>(i) * sizeof sums,
                  sizeof sums);
      if (sums.plausible()) all += sums;
    }
  }
  return all;
}

// Adds up our part of the bucket.
void WireGroup::add_up(size_t bucket) {
  const compute::Range range = part(bucket, member_);
  size_t next = 0;
  for (int member = 0; member < shape_.members; ++member) {
    if (member == member_) {
      for (const WireFloats& node : own_) nodes_[next++] = node.all().data() + range.begin;
      continue;
    }
    for (const WireFloats& node : peers_[static_cast<size_t>(member)].nodes)
      nodes_[next++] = node.all().data() + own_at_[bucket];
  }
  for (size_t at = 0; at < range.size(); at += kBlock) {
    const size_t size = std::min(kBlock, range.size() - at);
    std::memcpy(sum_.all().data() + range.begin + at, tree_.sum(nodes_, at, size),
                size * sizeof(float));
  }
  sum_.pack(range);
}

// Waits until `expected` frames of that kind have come from each other member.
void WireGroup::wait(const Session::Watch& watch, size_t Peer::*count, size_t expected) {
  connections_.wait(
      [&]() MUSTER_REQUIRES(driving_) {
        return std::ranges::all_of(others_, [&](int other) MUSTER_REQUIRES(driving_) {
          return peers_[static_cast<size_t>(other)].*count >= expected;
        });
      },
      [&] { return watch.ended(); });
}

bool WireGroup::is_heard() const {
  return std::ranges::all_of(others_, [this](int other) MUSTER_REQUIRES(driving_) {
    return peers_[static_cast<size_t>(other)].headers > 0;
  });
}

// Returns whether the next bucket's parts have come from all members.
bool WireGroup::can_add_up() const {
  if (added_ == contributed_) return false;
  return std::ranges::all_of(others_, [this](int other) MUSTER_REQUIRES(driving_) {
    return peers_[static_cast<size_t>(other)].nodes_received > added_;
  });
}

// Contributes and adds up the buckets as far as possible without waiting.
void WireGroup::advance() {
  for (const size_t end = complete_buckets(); contributed_ < end; ++contributed_)
    contribute(contributed_);
  for (; can_add_up(); ++added_) {
    add_up(added_);
    const iovec mine = sum_.bytes(part(added_, member_));
    connections_.send(others_, {kSum, static_cast<uint32_t>(added_)}, {&mine, 1});
    connections_.progress();
  }
}

void WireGroup::complete(size_t end) {
  const size_t before = complete_buckets();
  size_t known = complete_;
  while (known < end && !complete_.compare_exchange_weak(known, end)) {
  }
  if (buckets_.size() > 1 && complete_buckets() > before) connections_.wake();
}

// Moves frames until the caller comes: from the first complete bucket of a call on, or when the
// caller has been away for a while.
void WireGroup::run_ahead(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { connections_.wake(); });
  while (!stop.stop_requested()) {
    connections_.await_wake(kAway);
    if (!driving_.try_lock()) continue;
    const MutexLock lock(driving_, std::adopt_lock);
    if (!stepping_ || failure_) continue;
    ahead_drives_ = true;
    const auto leave = [&] { return caller_waits_ || stop.stop_requested(); };
    const auto more = [&]() MUSTER_REQUIRES(driving_) {
      return complete_buckets() > contributed_ || can_add_up();
    };
    try {
      while (!leave()) {
        advance();
        connections_.wait([&]() MUSTER_REQUIRES(driving_) { return leave() || more(); },
                          [] { return false; });
      }
    } catch (...) {
      failure_ = std::current_exception();
      connections_.close();
    }
    ahead_drives_ = false;
  }
}

compute::LossSums WireGroup::all_reduce(uint64_t step, const Contribution& contribution,
                                        const Session::Watch& watch) {
  return drive([&]() MUSTER_REQUIRES(driving_) {
    stepping_ = true;
    const auto over = [&] { return watch.ended(); };
    send_header(step, contribution);
    complete_ = sum_.all().size();
    advance();
    compute::LossSums all;
    while (!read_ || added_ < buckets_.size()) {
      connections_.wait(
          [this]() MUSTER_REQUIRES(driving_) { return can_add_up() || (!read_ && is_heard()); },
          over);
      if (!read_ && is_heard()) {
        all = read_headers(step);
        read_ = true;
      }
      advance();
    }
    wait(watch, &Peer::sums_received, buckets_.size());
    connections_.wait([this] { return connections_.sent(); }, over);
    // Frames of the next step that have already come stay counted.
    for (Peer& peer : peers_) {
      peer.headers -= std::min<size_t>(peer.headers, 1);
      peer.nodes_received -= std::min(peer.nodes_received, buckets_.size());
      peer.sums_received -= std::min(peer.sums_received, buckets_.size());
    }
    complete_ = contributed_ = added_ = 0;
    read_ = false;
    turn_ = (turn_ + 1) % kAhead;
    moved_in_steps_ = connections_.moved();
    return all;
  });
}

void WireGroup::require_intact() {
  drive([&]() MUSTER_REQUIRES(driving_) { connections_.progress(); });
}

std::vector<uint32_t> WireGroup::exchange(uint32_t digest, const Session::Watch& watch) {
  return drive([&]() MUSTER_REQUIRES(driving_) {
    const iovec own{&digest, sizeof digest};
    const auto tell = [&](uint32_t times_before) MUSTER_REQUIRES(driving_) {
      connections_.send(others_, {kDigest, times_before}, {&own, 1});
      wait(watch, &Peer::digests, times_before + 1);
      connections_.wait([this] { return connections_.sent(); }, [&] { return watch.ended(); });
    };
    tell(0);
    peers_[static_cast<size_t>(member_)].digest = digest;
    std::vector<uint32_t> digests;
    for (const Peer& peer : peers_) digests.push_back(peer.digest);
    if (std::ranges::adjacent_find(digests, std::ranges::not_equal_to()) != digests.end()) {
      // The caller will close its connections. A member that still waits for a digest would then
      // never know which members differ.
      try {
        tell(1);
      } catch (const Broken&) {
        // A member has left; this member has all digests nevertheless.
      }
    }
    for (Peer& peer : peers_) peer.digests = 0;
    return digests;
  });
}

void WireGroup::broadcast(int source, const std::vector<bool>& targets,
                          std::span<const std::span<float>> buffers, const Session::Watch& watch) {
  drive([&]() MUSTER_REQUIRES(driving_) {
    stepping_ = true;
    const auto over = [&] { return watch.ended(); };
    if (member_ == source) {
      std::vector<int> peers = others_;
      std::erase_if(peers, [&](int other) { return !targets[static_cast<size_t>(other)]; });
      for (size_t i = 0; i < buffers.size(); ++i) {
        const iovec buffer = bytes_of(buffers[i]);
        connections_.send(peers, {kState, static_cast<uint32_t>(i)}, {&buffer, 1});
        connections_.progress();
      }
      connections_.wait([this] { return connections_.sent(); }, over);
    } else if (targets[static_cast<size_t>(member_)]) {
      state_ = buffers;
      source_ = source;
      const Peer& from = peers_[static_cast<size_t>(source)];
      connections_.wait([&]() MUSTER_REQUIRES(driving_) { return from.states == buffers.size(); },
                        over);
      state_ = {};
    }
  });
}

}  // namespace muster::collective
