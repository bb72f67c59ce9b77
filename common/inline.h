#pragma once

// A function that a GPU's code may call too. It is compiled for the GPU where nvcc compiles it.
#if defined(__CUDACC__)
#define MUSTER_INLINE __host__ __device__ inline
#else
#define MUSTER_INLINE inline
#endif
