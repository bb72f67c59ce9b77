#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

// Mutexes, locks and condition variables that clang's thread safety analysis knows. `make lint`
// runs it: an access to a guarded member without its mutex is an error. Other compilers see no
// annotations. Everything is inline, and costs what the standard's own classes cost.
//
//   class Counter {
//    public:
//     void wait() {
//       MutexLock lock(mutex_);
//       changed_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return count_ > 0; });
//     }
//
//    private:
//     void grow() MUSTER_REQUIRES(mutex_);  // its caller holds the mutex
//
//     Mutex mutex_;
//     ConditionVariable changed_;
//     int count_ MUSTER_GUARDED_BY(mutex_) = 0;
//   };
//
// The analysis does not look into constructors and destructors. It knows a mutex by the expression
// that names it.

#ifdef __clang__
#define MUSTER_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define MUSTER_THREAD_SAFETY(attribute)
#endif

// After a member's name: the mutex must be held to read or write the member.
#define MUSTER_GUARDED_BY(mutex) MUSTER_THREAD_SAFETY(guarded_by(mutex))
// After the parameters of a function or lambda: its caller holds the mutex.
#define MUSTER_REQUIRES(mutex) MUSTER_THREAD_SAFETY(requires_capability(mutex))
// After the parameters of an empty function: its caller holds the mutex, but under another name, so
// that the analysis cannot see it. After the call the analysis assumes that the mutex is held.
#define MUSTER_ASSERTS(mutex) MUSTER_THREAD_SAFETY(assert_capability(mutex))

namespace muster {

// A std::mutex.
class MUSTER_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  void lock() MUSTER_THREAD_SAFETY(acquire_capability()) { native_.lock(); }
  void unlock() MUSTER_THREAD_SAFETY(release_capability()) { native_.unlock(); }
  bool try_lock() MUSTER_THREAD_SAFETY(try_acquire_capability(true)) { return native_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex native_;
};

// Holds a mutex until its own end, except between unlock() and lock().
class MUSTER_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MUSTER_THREAD_SAFETY(acquire_capability(mutex))
      : native_(mutex.native_) {}
  // Takes over a mutex that is held already, for example after try_lock().
  MutexLock(Mutex& mutex, std::adopt_lock_t adopt) MUSTER_REQUIRES(mutex)
      : native_(mutex.native_, adopt) {}
  ~MutexLock() MUSTER_THREAD_SAFETY(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() MUSTER_THREAD_SAFETY(acquire_capability()) { native_.lock(); }
  void unlock() MUSTER_THREAD_SAFETY(release_capability()) { native_.unlock(); }

 private:
  template <class Native>
  friend class BasicConditionVariable;
  std::unique_lock<std::mutex> native_;
};

// A condition variable of the standard that waits with a MutexLock. After the lock its functions
// have the same parameters as the standard's. A predicate says by MUSTER_REQUIRES which mutex is
// held.
template <class Native>
class BasicConditionVariable {
 public:
  template <class... Arguments>
  auto wait(MutexLock& lock, Arguments&&... arguments) {
    return native_.wait(lock.native_, std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  auto wait_for(MutexLock& lock, Arguments&&... arguments) {
    return native_.wait_for(lock.native_, std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  auto wait_until(MutexLock& lock, Arguments&&... arguments) {
    return native_.wait_until(lock.native_, std::forward<Arguments>(arguments)...);
  }
  void notify_one() { native_.notify_one(); }
  void notify_all() { native_.notify_all(); }

 private:
  Native native_;
};

using ConditionVariable = BasicConditionVariable<std::condition_variable>;
// A condition variable whose waits can also end by a std::stop_token.
using StoppableConditionVariable = BasicConditionVariable<std::condition_variable_any>;

}  // namespace muster
