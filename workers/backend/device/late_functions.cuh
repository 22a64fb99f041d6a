#pragma once

#include <cublas_v2.h>
#include <cufft.h>
#include <cusolverDn.h>

#include "workers/backend/device/late_library.hpp"

/// The functions of cuBLAS, cuSOLVER and cuFFT that the kernels call, with the names and signatures
/// of NVIDIA's headers. The libraries are loaded at their first call, because their relocation
/// takes longer than a short job: see docs/performance/methods.md, Service.
namespace quasi::cuda::late {

// Two steps, so that a name which a header of CUDA defines as a macro is expanded first.
#define QUASI_TEXT_OF(name) #name
#define QUASI_TEXT(name) QUASI_TEXT_OF(name)

inline LateLibrary& cublas_library() {
  static LateLibrary library("cuBLAS", "libcublas.so." QUASI_TEXT(CUBLAS_VER_MAJOR));
  return library;
}

inline LateLibrary& cusolver_library() {
  static LateLibrary library("cuSOLVER", "libcusolver.so." QUASI_TEXT(CUSOLVER_VER_MAJOR));
  return library;
}

inline LateLibrary& cufft_library() {
  static LateLibrary library("cuFFT", "libcufft.so." QUASI_TEXT(CUFFT_VER_MAJOR));
  return library;
}

// `declared` differs from ::function only where a header overloads the name.
#define QUASI_LATE_AS(library, function, declared) \
  inline const LateFunction<declared> function { library##_library, QUASI_TEXT(function) }
#define QUASI_LATE(library, function) QUASI_LATE_AS(library, function, decltype(::function))

QUASI_LATE(cublas, cublasCgemmStridedBatched);
QUASI_LATE(cublas, cublasCreate);
QUASI_LATE(cublas, cublasDaxpy);
QUASI_LATE(cublas, cublasDdot);
QUASI_LATE(cublas, cublasDestroy);
QUASI_LATE(cublas, cublasDgemm);
QUASI_LATE(cublas, cublasDgemmStridedBatched);
QUASI_LATE(cublas, cublasDger);
QUASI_LATE(cublas, cublasDgetrfBatched);
QUASI_LATE(cublas, cublasDgetriBatched);
QUASI_LATE(cublas, cublasDscal);
QUASI_LATE(cublas, cublasDsyrk);
QUASI_LATE(cublas, cublasDtrsm);
QUASI_LATE(cublas, cublasGetStatusString);
QUASI_LATE_AS(cublas, cublasSetEmulationStrategy,
              cublasStatus_t(cublasHandle_t, cublasEmulationStrategy_t));
QUASI_LATE(cublas, cublasSetStream);
QUASI_LATE(cublas, cublasZgemm);
QUASI_LATE(cublas, cublasZgemm3m);
QUASI_LATE(cublas, cublasZgemmBatched);
QUASI_LATE(cublas, cublasZgemmStridedBatched);
QUASI_LATE(cublas, cublasZgemv);
QUASI_LATE(cublas, cublasZherk);
QUASI_LATE(cublas, cublasZtrsm);
QUASI_LATE_AS(cublas, cublasGemmEx,
              cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                             const void*, const void*, cudaDataType, int, const void*, cudaDataType,
                             int, const void*, void*, cudaDataType, int, cublasComputeType_t,
                             cublasGemmAlgo_t));

QUASI_LATE(cusolver, cusolverDnCreate);
QUASI_LATE(cusolver, cusolverDnCreateSyevjInfo);
QUASI_LATE(cusolver, cusolverDnDestroy);
QUASI_LATE(cusolver, cusolverDnDestroySyevjInfo);
QUASI_LATE(cusolver, cusolverDnDpotrf);
QUASI_LATE(cusolver, cusolverDnDpotrf_bufferSize);
QUASI_LATE(cusolver, cusolverDnDpotri);
QUASI_LATE(cusolver, cusolverDnDpotri_bufferSize);
QUASI_LATE(cusolver, cusolverDnSetStream);
QUASI_LATE(cusolver, cusolverDnXsyevd);
QUASI_LATE(cusolver, cusolverDnXsyevd_bufferSize);
QUASI_LATE(cusolver, cusolverDnXsyevjSetSortEig);
QUASI_LATE(cusolver, cusolverDnZgetrf);
QUASI_LATE(cusolver, cusolverDnZgetrf_bufferSize);
QUASI_LATE(cusolver, cusolverDnZgetrs);
QUASI_LATE(cusolver, cusolverDnZheevjBatched);
QUASI_LATE(cusolver, cusolverDnZheevjBatched_bufferSize);
QUASI_LATE(cusolver, cusolverDnZpotrf);
QUASI_LATE(cusolver, cusolverDnZpotrf_bufferSize);
QUASI_LATE(cusolver, cusolverDnZpotri);
QUASI_LATE(cusolver, cusolverDnZpotri_bufferSize);

QUASI_LATE(cufft, cufftDestroy);
QUASI_LATE(cufft, cufftExecZ2Z);
QUASI_LATE(cufft, cufftPlanMany);
QUASI_LATE(cufft, cufftSetStream);

#undef QUASI_LATE
#undef QUASI_LATE_AS
#undef QUASI_TEXT
#undef QUASI_TEXT_OF

}  // namespace quasi::cuda::late
