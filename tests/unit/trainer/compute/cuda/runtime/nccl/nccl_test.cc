// nccl.cc over a library in NCCL's place (fake_nccl.cc), with the few functions of CUDA that it
// calls defined here.

#include "trainer/compute/cuda/runtime/nccl.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>

#include "common/error.h"
#include "tests/unit/trainer/compute/cuda/runtime/fake_nccl.h"

using muster::compute::testing::FakeStream;

extern "C" {
cudaError_t cudaSetDevice(int) {
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return reinterpret_cast<FakeStream*>(stream)->busy > 0 ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t) {
  return "an error";
}
const char* cudaGetErrorString(cudaError_t) {
  return "an error";
}
}

namespace muster::compute::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr size_t kFloats = 1000;

// A device, its memory and what runs on it.
struct Device {
  std::vector<float> gradients = std::vector<float>(kFloats);
  std::vector<float> inbox = std::vector<float>(kFloats);
  FakeStream stream;
};

// Processes with some devices each.
class NcclTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    library_ = dlopen(MUSTER_FAKE_NCCL, RTLD_NOW | RTLD_GLOBAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void TearDown() override {
    links_.clear();
    EXPECT_EQ(function<testing::CountCommunicators>("count_communicators")(), 0);
  }

  template <class Function>
  static Function* function(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  // Links the devices of all processes but those `without`; each process on a thread of its own.
  void link(
      const std::vector<int>& processes, const std::function<void()>& watch = [] {},
      size_t without = 0) {
    shares_.clear();
    devices_.clear();
    int count = 0;
    for (const int devices : processes) count += devices;
    for (int i = 0; i < count; ++i) {
      devices_.emplace_back();
      shares_.push_back({kFloats * static_cast<size_t>(i) / static_cast<size_t>(count),
                         kFloats * static_cast<size_t>(i + 1) / static_cast<size_t>(count)});
    }
    links_.resize(static_cast<size_t>(count));
    const std::string id = make_nccl_id();
    std::vector<std::jthread> threads;
    int first = 0;
    for (size_t i = 0; i + without < processes.size(); ++i) {
      threads.emplace_back([&, first, own = processes[i]] {
        std::vector<NcclMember> members;
        for (int device = 0; device < own; ++device)
          members.push_back({device, stream_of(first + device)});
        try {
          auto made = link_by_nccl(members, {count, first, id, watch});
          std::ranges::move(made, links_.begin() + first);
        } catch (const Unavailable& error) {
          ++failed_;
        }
      });
      first += processes[i];
    }
  }

  cudaStream_t stream_of(int device) {
    return reinterpret_cast<cudaStream_t>(&devices_[static_cast<size_t>(device)].stream);
  }
  // Runs work(rank) on a thread for each device that is linked, but the last `without`.
  void each(const std::function<void(size_t)>& work, size_t without = 0) {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank + without < links_.size(); ++rank)
      threads.emplace_back([&, rank] { work(rank); });
  }
  void exchange(size_t rank) {
    Device& device = devices_[rank];
    const size_t size = shares_[rank].size();
    std::vector<float*> to;
    for (size_t from = 0; from < links_.size(); ++from)
      to.push_back(from == rank ? nullptr
                                : device.inbox.data() + (from - (from > rank ? 1 : 0)) * size);
    links_[rank]->exchange(device.gradients.data(), shares_, to);
  }

  std::vector<Range> shares_;
  std::deque<Device> devices_;
  std::vector<std::unique_ptr<GpuLink>> links_;
  std::atomic<int> failed_{0};

 private:
  static inline void* library_ = nullptr;
};

float number(size_t rank, size_t at) {
  return static_cast<float>(10000 * rank + at);
}

TEST_F(NcclTest, MovesEachMembersShare) {
  for (const auto& processes : {std::vector<int>{1}, {1, 1}, {1, 1, 1}, {2, 2}, {3}}) {
    link(processes);
    for (int round = 0; round < 20; ++round) {
      each([&](size_t rank) {
        Device& device = devices_[rank];
        for (size_t i = 0; i < kFloats; ++i) device.gradients[i] = number(rank, i);
        exchange(rank);
        links_[rank]->share(device.gradients.data(), shares_);
        links_[rank]->wait();
      });
      for (size_t rank = 0; rank < links_.size(); ++rank) {
        const Range own = shares_[rank];
        size_t place = 0;
        for (size_t from = 0; from < links_.size(); ++from) {
          for (size_t i = shares_[from].begin; i < shares_[from].end; ++i)
            ASSERT_EQ(devices_[rank].gradients[i], number(from, i));
          if (from == rank) continue;
          for (size_t i = 0; i < own.size(); ++i)
            ASSERT_EQ(devices_[rank].inbox[place * own.size() + i], number(from, own.begin + i));
          ++place;
        }
      }
    }
  }
}

TEST_F(NcclTest, AMemberThatNeverComesEndsTheWaitForALink) {
  std::atomic<int> looks{0};
  link(
      {2, 1, 1},
      [&] {
        if (++looks > 20) throw Unavailable("over");
      },
      /*without=*/1);
  EXPECT_EQ(failed_, 2);
}

TEST_F(NcclTest, AMemberThatAsksForNothingEndsTheWaitForItsShare) {
  std::atomic<bool> over{false};
  link({2, 1}, [&] {
    if (over) throw Unavailable("over");
  });
  std::jthread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    over = true;
  });
  each(
      [&](size_t rank) {
        exchange(rank);
        EXPECT_THROW(links_[rank]->wait(), Unavailable);
        links_[rank]->abandon();
        EXPECT_THROW(exchange(rank), Unavailable);
      },
      /*without=*/1);
  links_.clear();
  for (Device& device : devices_) EXPECT_EQ(device.stream.busy, 0);
}

// Nobody looks at the communicators of the others any more.
TEST_F(NcclTest, AnErrorOfNcclIsTold) {
  link({1, 1});
  function<testing::FailAll>("fail_all")();
  each([&](size_t rank) {
    EXPECT_THAT([&] { exchange(rank); },
                ThrowsMessage<Unavailable>(HasSubstr("found: remote error")));
  });
}

TEST_F(NcclTest, WhatCannotBeLinkedIsRefused) {
  FakeStream stream;
  const NcclMember member{0, reinterpret_cast<cudaStream_t>(&stream)};
  EXPECT_THAT(
      [&] {
        link_by_nccl({member}, {2, 0, "short"});
      },
      ThrowsMessage<Unavailable>(HasSubstr("expected an id of 128 bytes")));
  EXPECT_THAT(
      [&] {
        link_by_nccl({member, member}, {2, 0, make_nccl_id()});
      },
      ThrowsMessage<Unavailable>(HasSubstr("found 2 devices on fewer GPUs")));
  EXPECT_THAT(
      [&] {
        link_by_nccl({member}, {1, 3, make_nccl_id()});
      },
      ThrowsMessage<Unavailable>(HasSubstr("ncclCommInitRankConfig")));
}

}  // namespace
}  // namespace muster::compute::cuda
