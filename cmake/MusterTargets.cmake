# How every target of the project is made: one warning level, one include root, one way to name a test.
include(CheckLinkerFlag)

find_program(MUSTER_CCACHE ccache)
if(MUSTER_CCACHE AND "${CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES "^(ccache)?$")
  # Without these ccache keeps nothing that was compiled with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ccache)
endif()
check_linker_flag(CXX -fuse-ld=mold MUSTER_HAS_MOLD)

add_library(muster_options INTERFACE)
target_compile_features(muster_options INTERFACE cxx_std_20)
target_include_directories(muster_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
# -pthread everywhere, for it defines a macro, in which precompiled headers and their users must not differ.
target_compile_options(muster_options INTERFACE -Wall -Wextra -pthread)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC 12 warns of std::string's own memcpy: https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105651
  target_compile_options(muster_options INTERFACE -Wno-restrict)
endif()
if(MUSTER_HAS_MOLD)
  target_link_options(muster_options INTERFACE -fuse-ld=mold)
endif()
# The most seconds that a program of integration tests may take.
set(MUSTER_TEST_SECONDS 1800)
if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
  set(MUSTER_TEST_SECONDS 10800)
endif()
if(MUSTER_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # ThreadSanitizer does not see the fences of Boost.Asio's headers. Nothing relies on them alone: Asio hands work
  # from thread to thread under a mutex.
  add_compile_options(-Wno-tsan)
endif()
if(MUSTER_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(MUSTER_SANITIZE MATCHES undefined)
  # A template of cpprestsdk has a type_info of its own in the library and here, which looks like a wrong virtual table.
  add_compile_options(-fno-sanitize=vptr)
endif()

# A sanitized or clang build is not a first build, and its files differ in flags.
if(MUSTER_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

# muster_precompile(TARGET PROVIDER HEADER...): parses the headers once for all targets of one provider, which is the
# first of them. Worth it where most files of a target include the largest of the headers: loading them takes 0.6 s,
# reading nlohmann/json.hpp 1.4 s, and GoogleTest as much. Files still include what they use: clang-tidy sees
# them without these headers.
function(muster_precompile target provider)
  if(target STREQUAL provider)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${provider})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # -fpch-preprocess is for ccache. GCC 12 takes std::string's code in them for ours, and warns of it (bug 105651).
    target_compile_options(${target} PRIVATE -fpch-preprocess -Wno-array-bounds -Wno-stringop-overflow)
  endif()
endfunction()

# Eight sources of a target are compiled as one: what they instantiate of the same headers is instantiated once. So
# names in the anonymous namespaces of a target's sources must differ. OFF compiles less after a change of one source.
option(MUSTER_UNITY "Compile several sources of a target at once" ON)
set(CMAKE_UNITY_BUILD ${MUSTER_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
if(MUSTER_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC takes the sources for headers here.
  target_compile_options(muster_options INTERFACE -Wno-subobject-linkage)
endif()

# Sources compile without waiting for the libraries they will be linked with.
set(CMAKE_OPTIMIZE_DEPENDENCIES ON)

set(MUSTER_JSON_HEADERS <nlohmann/json.hpp> <algorithm> <chrono> <filesystem> <functional> <map> <memory> <mutex>
                        <optional> <sstream> <string> <string_view> <thread> <unordered_map> <vector>)

# muster_library(NAME [dependency...] [FOLDERS folder...]): every .cc of the current folder and of the folders named.
function(muster_library name)
  cmake_parse_arguments(PARSE_ARGV 1 library "" "" FOLDERS)
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(folder ${library_FOLDERS})
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC muster_options ${library_UNPARSED_ARGUMENTS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE muster_options ${library_UNPARSED_ARGUMENTS})
  endif()
endfunction()

# muster_embed(TARGET FILE SYMBOL): the file's bytes as `extern const std::string_view SYMBOL` in
# namespace muster, declared in "embedded/SYMBOL.h".
function(muster_embed target file symbol)
  set(header ${CMAKE_BINARY_DIR}/generated/embedded/${symbol}.h)
  set(source ${CMAKE_BINARY_DIR}/generated/embedded/${symbol}.cc)
  add_custom_command(
    OUTPUT ${header} ${source}
    COMMAND ${CMAKE_COMMAND} -DFILE=${CMAKE_CURRENT_SOURCE_DIR}/${file} -DSYMBOL=${symbol}
            -DHEADER=${header} -DSOURCE=${source} -P ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake)
  target_sources(${target} PRIVATE ${source} ${header})
endfunction()

# muster_test(NAME FOLDERS [dependency...]): one GoogleTest program of every .cc in the folders (a list),
# registered with ctest as one test, in which each case is still run and named by GoogleTest.
function(muster_test name folders)
  list(TRANSFORM folders APPEND /*.cc)
  file(GLOB sources CONFIGURE_DEPENDS ${folders})
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE muster_options GTest::gmock GTest::gtest_main ${ARGN})
  target_compile_definitions(${name} PRIVATE MUSTER_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                             MUSTER_BINARY_DIR="${CMAKE_BINARY_DIR}")
  # GoogleTest's macros cost GCC a third of its time with -O3; what is tested keeps it.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  muster_precompile(${name} test_common <gmock/gmock.h> <gtest/gtest.h> ${MUSTER_JSON_HEADERS})
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  if(MUSTER_SANITIZE MATCHES thread)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT
                         TSAN_OPTIONS=ignore_noninstrumented_modules=1:suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp)
  endif()
endfunction()

# muster_kernels(FOLDER): {generic,avx2,avx512}.cc, and avx512_bf16.cc if there is one, of FOLDER, a path from the
# current folder, are one source, compiled for each instruction set. Debug builds too would be of no use with these unoptimized.
function(muster_kernels folder)
  # The kernels are written in vectors, so that a compiler's vectorizers have nothing to gain in them, and they make
  # mistakes there: GCC 14.2 lost `accumulate` in the gradients of batch normalization. clang knows these names too.
  set(flags -O3 -fno-tree-vectorize -fno-tree-slp-vectorize -ffp-contract=off -fno-math-errno)
  set_source_files_properties(${folder}/generic.cc PROPERTIES COMPILE_OPTIONS "${flags}")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set_source_files_properties(${folder}/avx2.cc PROPERTIES COMPILE_OPTIONS "${flags};-mavx2;-mfma")
    set(avx512_flags -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mprefer-vector-width=512)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      # GCC 12 takes its own intrinsics' undefined operands for mistakes.
      list(APPEND avx512_flags -Wno-uninitialized -Wno-maybe-uninitialized)
    endif()
    set_source_files_properties(${folder}/avx512.cc PROPERTIES COMPILE_OPTIONS "${flags};${avx512_flags}")
    set_source_files_properties(${folder}/avx512_bf16.cc PROPERTIES
                                COMPILE_OPTIONS "${flags};${avx512_flags};-mavx512bf16")
  endif()
endfunction()
