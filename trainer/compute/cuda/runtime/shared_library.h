#pragma once

#include <string>

namespace muster::compute::cuda {

// A library that is opened at run time, from the loader's search path.
class SharedLibrary {
 public:
  // `what` is the library's name in messages. Throws Unavailable if the library is missing. The
  // destructor does not close a library that stays open.
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
