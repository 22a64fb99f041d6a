#pragma once

/// QUASI_HD marks a function that runs on the host and, when nvcc compiles it, on the GPU too.
/// The only conditional on the compiler in the project.
#if defined(__CUDACC__)
#define QUASI_HD __host__ __device__
#else
#define QUASI_HD
#endif
