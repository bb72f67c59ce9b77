# CUDA: of MUSTER_CUDA_ROOT, if that is given; else what deploy/setup/cuda.sh has installed, if it has; else the
# system's toolkit. Version 13, whose FindCUDAToolkit needs a later CMake than ours.
set(MUSTER_CUDA_ROOT "" CACHE PATH "The folder of the CUDA toolkit, with bin/nvcc")
set(cuda_root ${MUSTER_CUDA_ROOT})
if(NOT cuda_root)
  foreach(root ${CMAKE_SOURCE_DIR}/build/cuda/nvidia/cu13 /usr/local/cuda)
    if(EXISTS ${root}/bin/nvcc)
      set(cuda_root ${root})
      break()
    endif()
  endforeach()
endif()
if(NOT EXISTS "${cuda_root}/bin/nvcc")
  message(FATAL_ERROR "MUSTER_CUDA: expected bin/nvcc in MUSTER_CUDA_ROOT (${MUSTER_CUDA_ROOT}), in "
                      "build/cuda/nvidia/cu13 (deploy/setup/cuda.sh makes it) or in /usr/local/cuda; found none")
endif()
set(CMAKE_CUDA_COMPILER ${cuda_root}/bin/nvcc)
# Code for the A100 and the H100; later GPUs compile what they need from the last one's PTX.
set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
enable_language(CUDA)
# CMake before 3.26 does not know that nvcc takes it.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

find_library(cuda_runtime cudart_static PATHS ${cuda_root}/lib ${cuda_root}/lib64 REQUIRED NO_DEFAULT_PATH)
add_library(muster_cuda INTERFACE)
find_path(nccl_headers nccl.h PATHS ${cuda_root}/../nccl/include ${cuda_root}/include REQUIRED)
target_include_directories(muster_cuda SYSTEM INTERFACE ${cuda_root}/include ${nccl_headers})
target_link_libraries(muster_cuda INTERFACE ${cuda_runtime} Threads::Threads dl rt)
# cuBLASLt and NCCL are opened at run time, where the loader finds them: beside the program's own libraries, or here.
list(APPEND CMAKE_BUILD_RPATH ${cuda_root}/lib ${cuda_root}/../nccl/lib)

# muster_cuda_sources(TARGET FOLDER): adds the .cc and .cu files of a folder of the current one, except for no_*.cc,
# which stand in for them in builds without CUDA.
function(muster_cuda_sources target folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc ${folder}/*.cu)
  list(FILTER sources EXCLUDE REGEX /no_[^/]*$)
  target_sources(${target} PRIVATE ${sources})
  target_link_libraries(${target} PRIVATE muster_cuda)
  # No products are fused into sums, and subnormal numbers count as zero, as on the CPU.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -fmad=false -ftz=true -diag-suppress 20011,20014>)
endfunction()
