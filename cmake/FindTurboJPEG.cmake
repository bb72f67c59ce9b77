# libjpeg-turbo's TurboJPEG API as TurboJPEG::TurboJPEG. Its own CMake files name every library of
# libjpeg-turbo, and fail where only this one is installed.
find_path(TurboJPEG_INCLUDE_DIR turbojpeg.h)
find_library(TurboJPEG_LIBRARY turbojpeg)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TurboJPEG REQUIRED_VARS TurboJPEG_LIBRARY TurboJPEG_INCLUDE_DIR)
if(TurboJPEG_FOUND AND NOT TARGET TurboJPEG::TurboJPEG)
  add_library(TurboJPEG::TurboJPEG UNKNOWN IMPORTED)
  set_target_properties(TurboJPEG::TurboJPEG PROPERTIES IMPORTED_LOCATION ${TurboJPEG_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${TurboJPEG_INCLUDE_DIR})
endif()
