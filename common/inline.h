#pragma once

// A function that a GPU's code may call too. It is compiled for the GPU where nvcc compiles it.
#if defined(__CUDACC__)
#define MUSTER_INLINE __host__ __device__ inline
#else
#define MUSTER_INLINE inline
#endif

// In front of a loop: a GPU's code has all its iterations one after the other. Arrays that it
// indexes are then in registers.
#if defined(__CUDA_ARCH__)
#define MUSTER_UNROLL _Pragma("unroll")
#else
#define MUSTER_UNROLL
#endif
