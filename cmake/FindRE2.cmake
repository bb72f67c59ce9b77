# Google's regular expressions as RE2::RE2.
include(MusterFindLibrary)
muster_find_library(RE2 re2/re2.h re2)
