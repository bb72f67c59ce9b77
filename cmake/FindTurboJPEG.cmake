# libjpeg-turbo's TurboJPEG API as TurboJPEG::TurboJPEG. Its own CMake files name every library of
# libjpeg-turbo, and fail where only this one is installed.
include(MusterFindLibrary)
muster_find_library(TurboJPEG turbojpeg.h turbojpeg)
