# Intel's Intelligent Storage Acceleration Library as ISAL::ISAL.
include(MusterFindLibrary)
muster_find_library(ISAL isa-l/crc.h isal)
