#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/compute/engine.h"
#include "trainer/compute/linked_devices.h"
#include "trainer/compute/optimizer.h"

namespace muster::compute {

// The engines of a process that train together, also with engines of other processes, without the
// host's memory. Every engine has all parameters and slots and makes every update: the state
// survives as long as one process lives.
class EngineGroup {
 public:
  // A connection between the engines of this group, and with engines of other processes. Each
  // engine's thread calls the functions for its engine, in turns: ask_sums(), await_sums() and, if
  // await_sums() threw on none of the threads, update(). Before update() the state is unchanged.
  class Link {
   public:
    virtual ~Link() = default;
    // Asks the devices to add up the gradients that all engines have computed, in the order of
    // tree_sum.h. ask_sums() and await_sums() throw Unavailable if another device has failed, or
    // the link has been abandoned; the link is then useless.
    virtual void ask_sums(int engine) = 0;
    virtual void await_sums(int engine) = 0;
    // Makes the update of everything.
    virtual void update(int engine, const UpdateArguments& arguments) = 0;
    // Ends all waits of this process. Any thread may call it.
    virtual void abandon() noexcept = 0;
  };

  // Joins engines of the same model, which must outlive the group. Returns null unless all of them
  // are on GPUs. The engines' own parameters are left alone.
  static std::unique_ptr<EngineGroup> create(std::span<Engine* const> engines,
                                             const Optimizer& optimizer);
  // Returns the names of the engines' devices; no two devices have the same name. Other processes
  // use the names to tell whether a link is possible. If the devices cannot be linked, returns no
  // names, and the reason in `why` (empty for CPUs).
  static std::vector<std::string> link_names(std::span<Engine* const> engines, std::string& why);
  virtual ~EngineGroup() = default;

  // The parameters and slots of all engines are shown as one memory. They may be used while no
  // update is being made.
  virtual Memory& parameters() = 0;
  virtual std::span<Memory* const> slots() = 0;
  // Returns the memory of one engine: its parameters, then its slots.
  virtual std::vector<Memory*> state_of(int engine) = 0;

  // Returns an id for one link. Throws Unavailable if devices cannot be linked.
  virtual std::string make_link_id() = 0;
  // Links the devices; all processes must call it. From here on the engines compute with
  // parameters(). Throws Unavailable if the devices cannot be linked, and any error that
  // devices.watch throws.
  virtual std::unique_ptr<Link> link(const LinkedDevices& devices) = 0;
};

}  // namespace muster::compute
