#include "common/system/shared_library.h"

#include <dlfcn.h>

#include <utility>

#include "common/error.h"

namespace muster {

SharedLibrary::SharedLibrary(std::string user, const std::string& what, const char* file,
                             bool stays_open)
    : user_(std::move(user)),
      file_(file),
      stays_open_(stays_open),
      library_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr)
    throw Unavailable(user_ + ": expected " + what + " as " + file +
                      " in the loader's path, found: " + dlerror());
}

SharedLibrary::~SharedLibrary() {
  if (!stays_open_) dlclose(library_);
}

void* SharedLibrary::address_of(const char* name) const {
  void* address = dlsym(library_, name);
  if (address == nullptr)
    throw Unavailable(user_ + ": expected the function " + name + " in " + file_ + ", found none");
  return address;
}

}  // namespace muster
