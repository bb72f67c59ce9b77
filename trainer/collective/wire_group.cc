#include "trainer/collective/wire_group.h"

#include <gloo/transport/buffer.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <cstring>

#include "proto/muster/rendezvous.pb.h"

namespace muster::collective {

namespace {

// Floats. The first is complete early; of a larger one less is lost in waiting.
constexpr size_t kFirstBucket = 1 << 18;
constexpr size_t kBucket = 1 << 20;
constexpr size_t kBlock = 8192;  // that is added up at once

// What a buffer is for, at both ends. Headers of two steps: who has no part to add up is waited for
// by nobody else, and may still have to read a step's header when the next one's comes.
enum Slot : int { kHeader, kSum = kHeader + 2, kState, kNodes = 16 };

struct ReplicaSums {
  double loss;
  int64_t correct, rows;
};

// Gloo throws its own.
template <class Call>
auto or_broken(const Call& call) {
  try {
    return call();
  } catch (const WireGroup::Broken&) {
    throw;
  } catch (const std::exception& error) {
    throw WireGroup::Broken(std::string("the connection to another member: ") + error.what());
  }
}

}  // namespace

struct WireGroup::Header {
  uint64_t step;
  // ReplicaSums of the sender's replicas follow.
};

struct WireGroup::Peer {
  gloo::transport::Pair* pair = nullptr;
  std::vector<std::byte> headers[2];
  std::vector<compute::Floats> nodes;  // our part of each of its nodes' sums
  std::unique_ptr<gloo::transport::Buffer> headers_out[2], headers_in[2], sum_out, sum_in;
  std::vector<std::unique_ptr<gloo::transport::Buffer>> nodes_out, nodes_in;
};

// The watch that ends waiting, for as long as it lives.
class WireGroup::Watching {
 public:
  Watching(WireGroup& group, const Session::Watch& watch) : group_(group) { set(&watch); }
  ~Watching() { set(nullptr); }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

 private:
  void set(const Session::Watch* watch) {
    const std::lock_guard lock(group_.mutex_);
    group_.watch_ = watch;
  }
  WireGroup& group_;
};

WireGroup::WireGroup(const GroupShape& shape, int member, size_t floats, const std::string& host)
    : shape_(shape), member_(member), sum_(floats), tree_(shape.nodes(), kBlock) {
  plan_buckets(floats);
  own_.assign(shape.nodes_of(member).size(), compute::Floats(floats));
  nodes_.resize(shape.nodes().size());
  const auto header_size = [&](int of) {
    return sizeof(Header) + static_cast<size_t>(shape.replicas_of(of).size()) * sizeof(ReplicaSums);
  };
  header_.resize(header_size(member));
  WireEndpoint endpoint;
  try {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = host;
    device_ = gloo::transport::tcp::CreateDevice(attributes);
    context_ = device_->createContext(member, shape.members);
    context_->setTimeout(std::chrono::milliseconds(0));  // none: the watch ends every wait
    for (int other = 0; other < shape.members; ++other) {
      peers_.push_back(nullptr);
      endpoint.add_addresses();
      if (other == member) continue;
      auto peer = std::make_unique<Peer>();
      peer->pair = context_->createPair(other).get();
      for (auto& header : peer->headers) header.resize(header_size(other));
      peer->nodes.assign(shape.nodes_of(other).size(), compute::Floats(own_size_));
      const auto bytes = peer->pair->address().bytes();
      endpoint.set_addresses(other, std::string(bytes.begin(), bytes.end()));
      peers_.back() = std::move(peer);
    }
  } catch (const std::exception& error) {
    throw Unavailable("no member can connect to " + host + ": " + error.what());
  }
  endpoint_ = endpoint.SerializeAsString();
  watcher_ = std::thread([this] { watch_over(); });
}

WireGroup::~WireGroup() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  watcher_.join();
  close();
  for (auto& peer : peers_) peer.reset();
}

void WireGroup::plan_buckets(size_t floats) {
  for (size_t begin = 0; begin < floats;) {
    const size_t size = begin == 0 ? kFirstBucket : kBucket;
    buckets_.push_back({begin, std::min(floats, begin + size)});
    begin += size;
  }
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    own_at_.push_back(own_size_);
    own_size_ += part(bucket, member_).size();
  }
}

// Of a bucket, what `member` adds up.
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

void WireGroup::connect(const std::vector<std::string>& endpoints, const Session::Watch& watch) {
  const Watching watching(*this, watch);
  for (int other = 0; other < shape_.members; ++other) {
    Peer* const peer = peers_[static_cast<size_t>(other)].get();
    if (!peer) continue;
    WireEndpoint endpoint;
    const auto& text = endpoints.at(static_cast<size_t>(other));
    if (!endpoint.ParseFromString(text) || endpoint.addresses_size() != shape_.members)
      throw Invalid("the rendezvous: expected where member " + std::to_string(other) +
                    " listens, found " + std::to_string(text.size()) + " bytes of something else");
    const std::string& address = endpoint.addresses(member_);
    or_broken([&] {
      peer->pair->connect({address.begin(), address.end()});
      const auto in = [&](int slot, auto& memory) {
        return peer->pair->createRecvBuffer(slot, memory.data(), memory.size() * sizeof(memory[0]));
      };
      const auto out = [&](int slot, auto& memory) {
        return peer->pair->createSendBuffer(slot, memory.data(), memory.size() * sizeof(memory[0]));
      };
      for (int i = 0; i < 2; ++i) {
        peer->headers_in[i] = in(kHeader + i, peer->headers[i]);
        peer->headers_out[i] = out(kHeader + i, header_);
      }
      peer->sum_in = in(kSum, sum_);
      peer->sum_out = out(kSum, sum_);
      for (size_t i = 0; i < peer->nodes.size(); ++i)
        peer->nodes_in.push_back(in(kNodes + static_cast<int>(i), peer->nodes[i]));
      for (size_t i = 0; i < own_.size(); ++i)
        peer->nodes_out.push_back(out(kNodes + static_cast<int>(i), own_[i]));
    });
  }
}

void WireGroup::send_headers(uint64_t step, std::span<const compute::LossSums> sums) {
  const Header header{step};
  std::memcpy(header_.data(), &header, sizeof header);
  for (size_t i = 0; i < sums.size(); ++i) {
    const ReplicaSums one{sums[i].loss, sums[i].correct, sums[i].rows};
    std::memcpy(header_.data() + sizeof header + i * sizeof one, &one, sizeof one);
  }
  for (const auto& peer : peers_)
    if (peer) peer->headers_out[turn_]->send();
}

compute::LossSums WireGroup::read_headers(uint64_t step) {
  compute::LossSums all;
  for (int member = 0; member < shape_.members; ++member) {
    const Peer* const peer = peers_[static_cast<size_t>(member)].get();
    if (peer) peer->headers_in[turn_]->waitRecv();
    const std::vector<std::byte>& bytes = peer ? peer->headers[turn_] : header_;
    Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.step != step)
      throw Broken("member " + std::to_string(member) + ": expected it at step " +
                   std::to_string(step) + ", found it at " + std::to_string(header.step));
    for (int i = 0; i < shape_.replicas_of(member).size(); ++i) {
      ReplicaSums one;
      std::memcpy(&one, bytes.data() + sizeof header + static_cast<size_t>(i) * sizeof one,
                  sizeof one);
      const compute::LossSums sums{one.loss, one.correct, one.rows};
      if (sums.plausible()) all += sums;
    }
  }
  return all;
}

// Our part of it.
void WireGroup::add_up(size_t bucket) {
  const compute::Range range = part(bucket, member_);
  size_t next = 0;
  for (int member = 0; member < shape_.members; ++member) {
    Peer* const peer = peers_[static_cast<size_t>(member)].get();
    if (!peer) {
      for (const compute::Floats& node : own_) nodes_[next++] = node.data() + range.begin;
      continue;
    }
    for (size_t i = 0; i < peer->nodes.size(); ++i) {
      if (range.size() > 0) peer->nodes_in[i]->waitRecv();
      nodes_[next++] = peer->nodes[i].data() + own_at_[bucket];
    }
  }
  for (size_t at = 0; at < range.size(); at += kBlock) {
    const size_t size = std::min(kBlock, range.size() - at);
    std::memcpy(sum_.data() + range.begin + at, tree_.sum(nodes_, at, size), size * sizeof(float));
  }
}

compute::LossSums WireGroup::all_reduce(uint64_t step, std::span<const compute::LossSums> sums,
                                        const Session::Watch& watch) {
  const Watching watching(*this, watch);
  return or_broken([&] {
    constexpr size_t kFloat = sizeof(float);
    send_headers(step, sums);
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      for (int other = 0; other < shape_.members; ++other) {
        Peer* const peer = peers_[static_cast<size_t>(other)].get();
        const compute::Range range = part(bucket, other);
        if (!peer || range.size() == 0) continue;
        // Where it lies among what they receive: as own_at_ there.
        size_t at = 0;
        for (size_t before = 0; before < bucket; ++before) at += part(before, other).size();
        for (const auto& node : peer->nodes_out)
          node->send(range.begin * kFloat, range.size() * kFloat, at * kFloat);
      }
    }
    const compute::LossSums all = read_headers(step);
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      add_up(bucket);
      const compute::Range range = part(bucket, member_);
      if (range.size() == 0) continue;
      for (const auto& peer : peers_)
        if (peer)
          peer->sum_out->send(range.begin * kFloat, range.size() * kFloat, range.begin * kFloat);
    }
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket)
      for (int other = 0; other < shape_.members; ++other) {
        Peer* const peer = peers_[static_cast<size_t>(other)].get();
        if (!peer) continue;
        if (part(bucket, other).size() > 0) {
          peer->sum_in->waitRecv();
          for (const auto& node : peer->nodes_out) node->waitSend();
        }
        if (part(bucket, member_).size() > 0) peer->sum_out->waitSend();
      }
    for (const auto& peer : peers_)
      if (peer) peer->headers_out[turn_]->waitSend();
    turn_ ^= 1;
    return all;
  });
}

void WireGroup::broadcast(int source, const std::vector<bool>& targets,
                          std::span<const std::span<float>> buffers, const Session::Watch& watch) {
  const Watching watching(*this, watch);
  or_broken([&] {
    std::vector<std::unique_ptr<gloo::transport::Buffer>> transfers;
    for (int other = 0; other < shape_.members; ++other) {
      Peer* const peer = peers_[static_cast<size_t>(other)].get();
      const bool sending = member_ == source && targets[static_cast<size_t>(other)];
      const bool receiving = other == source && targets[static_cast<size_t>(member_)];
      if (!peer || (!sending && !receiving)) continue;
      for (size_t i = 0; i < buffers.size(); ++i) {
        const int slot = kState + static_cast<int>(i);
        float* const memory = buffers[i].data();
        const size_t bytes = buffers[i].size_bytes();
        if (sending) {
          transfers.push_back(peer->pair->createSendBuffer(slot, memory, bytes));
          transfers.back()->send();
        } else {
          transfers.push_back(peer->pair->createRecvBuffer(slot, memory, bytes));
        }
      }
    }
    for (const auto& transfer : transfers) {
      if (member_ == source)
        transfer->waitSend();
      else
        transfer->waitRecv();
    }
  });
}

void WireGroup::watch_over() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    changed_.wait_for(lock, Session::kGlance, [&] { return ending_; });
    if (closed_ || !watch_) continue;
    if (watch_->stop.stop_requested() || watch_->over()) close();
  }
}

// A closed pair wakes those who wait for it only when it is used again.
void WireGroup::close() {
  if (std::exchange(closed_, true)) return;
  for (const auto& peer : peers_) {
    if (!peer) continue;
    try {
      peer->pair->close();
      if (peer->headers_out[0]) peer->headers_out[0]->send(0, 0);
    } catch (const std::exception&) {
    }
  }
}

}  // namespace muster::collective
