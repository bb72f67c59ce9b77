# muster_find_library(NAME HEADER LIBRARY), for Find modules: a library of one header that brings no
# CMake files, as NAME::NAME.
macro(muster_find_library name header library)
  find_path(${name}_INCLUDE_DIR ${header})
  find_library(${name}_LIBRARY ${library})
  include(FindPackageHandleStandardArgs)
  find_package_handle_standard_args(${name} REQUIRED_VARS ${name}_LIBRARY ${name}_INCLUDE_DIR)
  if(${name}_FOUND AND NOT TARGET ${name}::${name})
    add_library(${name}::${name} UNKNOWN IMPORTED)
    set_target_properties(${name}::${name} PROPERTIES IMPORTED_LOCATION ${${name}_LIBRARY}
                          INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE_DIR})
  endif()
endmacro()

# muster_require(NAME PACKAGE): find_package(NAME). PACKAGE is what Debian calls it: muster_require_no_more() says so
# of all that were not found.
macro(muster_require name package)
  find_package(${name} QUIET)
  if(NOT ${name}_FOUND)
    muster_missing(${name} ${package})
  endif()
endmacro()

# muster_require_file(find_program|find_path FILE PACKAGE): the same for what is no package of CMake's.
function(muster_require_file find file package)
  string(MAKE_C_IDENTIFIER "muster_${file}" place)
  cmake_language(CALL ${find} ${place} ${file})
  if(NOT ${place})
    muster_missing(${file} ${package})
  endif()
endfunction()

function(muster_missing name package)
  set_property(GLOBAL APPEND PROPERTY muster_missing "${name} (${package})")
endfunction()

function(muster_require_no_more)
  get_property(missing GLOBAL PROPERTY muster_missing)
  if(missing)
    list(JOIN missing ", " missing)
    message(FATAL_ERROR "did not find ${missing}. In brackets are the names of Debian's packages; all that a build needs are in "
                        "deploy/setup/debian-packages.txt. CMAKE_PREFIX_PATH names other folders to search")
  endif()
endfunction()
