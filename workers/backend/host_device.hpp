#pragma once

/// QUASI_HD marks a function that runs on the host and, when nvcc compiles it, also on the GPU. The
/// project has no other conditional on the compiler.
#if defined(__CUDACC__)
#define QUASI_HD __host__ __device__
#else
#define QUASI_HD
#endif
