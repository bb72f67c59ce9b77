#pragma once

#include <string>

namespace muster::compute::cuda {

// A library that is opened at run time, where the loader finds it.
class SharedLibrary {
 public:
  // `what` names it for people. Throws Unavailable if there is none. A library that stays open is
  // not closed by the destructor.
  SharedLibrary(const std::string& what, const char* file, bool stays_open = false);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  // Throws Unavailable if the library has no such function.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(address_of(name));
  }

 private:
  void* address_of(const char* name) const;

  const char* file_;
  const bool stays_open_;
  void* library_;
};

}  // namespace muster::compute::cuda
