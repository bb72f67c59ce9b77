#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <ctime>

namespace muster {

// Sleeping until a word changes, as futex(2) says. Not std::atomic's wait and notify: libstdc++
// yields before it sleeps, and on a busy machine each yield gives away a whole time slice.

// The users of the word: this process only, or also others that map it (which is slower).
enum class FutexScope { process, shared };

// Sleeps while the word is `equals`, at most until `timeout` (nullptr: for ever); may return early.
inline void futex_wait(const void* word, uint32_t equals, FutexScope scope,
                       const timespec* timeout = nullptr) {
  const int operation = scope == FutexScope::process ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT;
  syscall(SYS_futex, word, operation, equals, timeout, nullptr, 0);
}

inline void futex_wake_all(const void* word, FutexScope scope) {
  const int operation = scope == FutexScope::process ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE;
  syscall(SYS_futex, word, operation, INT_MAX, nullptr, nullptr, 0);
}

// Called between two looks at a word that another core is about to write.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace muster
