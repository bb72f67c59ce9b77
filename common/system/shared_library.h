#pragma once

#include <string>

namespace muster {

// A library that is opened at run time, from the loader's search path.
class SharedLibrary {
 public:
  // `user` is what needs the library ("GPU"), and `what` is the library's name; both are for
  // messages. Throws Unavailable if the library is missing. The destructor does not close a library
  // that stays open.
  SharedLibrary(std::string user, const std::string& what, const char* file,
                bool stays_open = false);
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

  const std::string user_;
  const char* file_;
  const bool stays_open_;
  void* library_;
};

}  // namespace muster
