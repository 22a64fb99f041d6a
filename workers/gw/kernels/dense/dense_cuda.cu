#include <algorithm>
#include <string>
#include <vector>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/dense/blocked_inverse_cuda.cuh"
#include "workers/gw/kernels/dense/dense_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;

int read_info(const DeviceBuffer<int>& info, cudaStream_t stream, const char* what) {
  check(cudaStreamSynchronize(stream), what);
  return quasi::cuda::to_host(info, what).front();
}

struct MirrorUpper {
  double2* matrix;
  std::int64_t n;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t i = index / n, j = index % n;
    if (i <= j) return;
    const double2 value = matrix[j * n + i];
    matrix[i * n + j] = {value.x, -value.y};
  }
};

struct MakeUnit {
  double2* matrix;
  std::int64_t n;
  __device__ void operator()(std::int64_t index) const {
    matrix[index] = {index / n == index % n ? 1.0 : 0.0, 0.0};
  }
};

struct Conjugate {
  double2* matrix;
  __device__ void operator()(std::int64_t index) const { matrix[index].y = -matrix[index].y; }
};

}  // namespace

void add_hermitian(cublasHandle_t blas, std::int64_t n, std::int64_t n_rows, double sign,
                   const double2* a, double2* c) {
  // The column-major lower triangle is the row-major upper one: element (j, i) = Σ a(j) a*(i).
  const double one = 1.0;
  const int order = static_cast<int>(n);
  check(quasi::cuda::late::cublasZherk(blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, order,
                                       static_cast<int>(n_rows), &sign, a, order, &one, c, order),
        "Hermitian product");
}

void mirror_upper(double2* matrix, std::int64_t n, cudaStream_t stream) {
  for_each_index(n * n, MirrorUpper{matrix, n}, "mirroring a Hermitian matrix", stream);
}

namespace {

struct AnyImaginaryPart {
  const double2* values;
  int* found;
  __device__ void operator()(std::int64_t i) const {
    if (values[i].y != 0.0) *found = 1;
  }
};

struct SplitReal {
  const double2* from;
  double* to;
  __device__ void operator()(std::int64_t index) const { to[index] = from[index].x; }
};

/// Fills i > j of a real symmetric matrix from i < j.
struct MirrorUpperReal {
  double* matrix;
  std::int64_t n;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t i = index / n, j = index % n;
    if (i > j) matrix[index] = matrix[j * n + i];
  }
};

/// Fills a whole complex matrix from the upper triangle of a real symmetric one.
struct FillFromUpper {
  const double* real;
  double2* matrix;
  std::int64_t n;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t i = index / n, j = index % n;
    matrix[index] = {real[i <= j ? index : j * n + i], 0.0};
  }
};

}  // namespace

bool is_real(const double2* values, std::int64_t count, cudaStream_t stream) {
  constexpr const char* kWhat = "imaginary parts";
  DeviceBuffer<int> found(1, kWhat);
  found.zero(kWhat, stream);
  for_each_index(count, AnyImaginaryPart{values, found.data()}, kWhat, stream);
  return read_info(found, stream, kWhat) == 0;
}

DeviceBuffer<double> real_parts(const double2* values, std::int64_t count, cudaStream_t stream) {
  DeviceBuffer<double> real(static_cast<std::size_t>(count), "real parts");
  for_each_index(count, SplitReal{values, real.data()}, "real parts", stream);
  return real;
}

namespace {

/// Order of the blocks of larger matrices.
constexpr std::int64_t kBlock = 4'096;

void invert_by_library(cusolverDnHandle_t solver, cudaStream_t stream, double* real,
                       std::int64_t n) {
  constexpr const char* kWhat = "Cholesky inversion";
  DeviceBuffer<int> info(1, kWhat);
  const int order = static_cast<int>(n);
  int factor_size = 0, inverse_size = 0;
  check(quasi::cuda::late::cusolverDnDpotrf_bufferSize(solver, CUBLAS_FILL_MODE_LOWER, order, real,
                                                       order, &factor_size),
        kWhat);
  check(quasi::cuda::late::cusolverDnDpotri_bufferSize(solver, CUBLAS_FILL_MODE_LOWER, order, real,
                                                       order, &inverse_size),
        kWhat);
  const int size = std::max(factor_size, inverse_size);
  DeviceBuffer<double> work(static_cast<std::size_t>(size), kWhat);
  check(quasi::cuda::late::cusolverDnDpotrf(solver, CUBLAS_FILL_MODE_LOWER, order, real, order,
                                            work.data(), size, info.data()),
        kWhat);
  if (const int minor = read_info(info, stream, kWhat); minor > 0)
    throw NotConverged("dielectric matrix of order " + std::to_string(n) +
                       " is not positive definite at its leading minor " + std::to_string(minor));
  check(quasi::cuda::late::cusolverDnDpotri(solver, CUBLAS_FILL_MODE_LOWER, order, real, order,
                                            work.data(), size, info.data()),
        kWhat);
  if (read_info(info, stream, kWhat) != 0)
    throw NotConverged("inversion of a matrix of order " + std::to_string(n) + " failed");
}

/// Replaces the triangle i ≤ j of a row-major matrix by that of the inverse.
void invert_upper_triangle(const DenseLibraries& libraries, double* real, std::int64_t n) {
  // The column-major lower triangle is the row-major upper one.
  if (n > kBlock)
    invert_in_blocks(libraries, real, n, kBlock);
  else
    invert_by_library(libraries.solver, libraries.stream, real, n);
}

/// Inverts in real arithmetic, with a quarter of the flops, if no element has an imaginary part.
/// Returns false without any change otherwise.
bool invert_real_positive_definite(const DenseLibraries& libraries, double2* matrix,
                                   std::int64_t n) {
  constexpr const char* kWhat = "Cholesky inversion";
  const cudaStream_t stream = libraries.stream;
  if (!is_real(matrix, n * n, stream)) return false;
  const DeviceBuffer<double> real = real_parts(matrix, n * n, stream);
  invert_upper_triangle(libraries, real.data(), n);
  for_each_index(n * n, FillFromUpper{real.data(), matrix, n}, kWhat, stream);
  check(cudaStreamSynchronize(stream), kWhat);
  return true;
}

}  // namespace

void invert_positive_definite(const DenseLibraries& libraries, double2* matrix, std::int64_t n) {
  constexpr const char* kWhat = "Cholesky inversion";
  const cusolverDnHandle_t solver = libraries.solver;
  const cudaStream_t stream = libraries.stream;
  if (invert_real_positive_definite(libraries, matrix, n)) return;
  if (n > kBlock) {
    invert_in_blocks(libraries, matrix, n, kBlock);
    mirror_upper(matrix, n, stream);
    return;
  }
  const int order = static_cast<int>(n);
  int factor_size = 0, inverse_size = 0;
  // The column-major lower triangle is the row-major upper one; the conjugation of the transposed
  // view cancels.
  check(quasi::cuda::late::cusolverDnZpotrf_bufferSize(solver, CUBLAS_FILL_MODE_LOWER, order,
                                                       matrix, order, &factor_size),
        kWhat);
  check(quasi::cuda::late::cusolverDnZpotri_bufferSize(solver, CUBLAS_FILL_MODE_LOWER, order,
                                                       matrix, order, &inverse_size),
        kWhat);
  const int size = std::max(factor_size, inverse_size);
  DeviceBuffer<double2> work(static_cast<std::size_t>(size), kWhat);
  DeviceBuffer<int> info(1, kWhat);
  check(quasi::cuda::late::cusolverDnZpotrf(solver, CUBLAS_FILL_MODE_LOWER, order, matrix, order,
                                            work.data(), size, info.data()),
        kWhat);
  if (const int minor = read_info(info, stream, kWhat); minor > 0)
    throw NotConverged("dielectric matrix of order " + std::to_string(n) +
                       " is not positive definite at its leading minor " + std::to_string(minor));
  check(quasi::cuda::late::cusolverDnZpotri(solver, CUBLAS_FILL_MODE_LOWER, order, matrix, order,
                                            work.data(), size, info.data()),
        kWhat);
  if (read_info(info, stream, kWhat) != 0)
    throw NotConverged("inversion of a matrix of order " + std::to_string(n) + " failed");
  mirror_upper(matrix, n, stream);
}

void invert_positive_definite(const DenseLibraries& libraries, double* matrix, std::int64_t n) {
  invert_upper_triangle(libraries, matrix, n);
  for_each_index(n * n, MirrorUpperReal{matrix, n}, "Cholesky inversion", libraries.stream);
}

DeviceBuffer<double2> invert_general(cusolverDnHandle_t solver, cudaStream_t stream,
                                     double2* matrix, std::int64_t n) {
  constexpr const char* kWhat = "LU inversion";
  const int order = static_cast<int>(n);
  int size = 0;
  check(quasi::cuda::late::cusolverDnZgetrf_bufferSize(solver, order, order, matrix, order, &size),
        kWhat);
  DeviceBuffer<double2> work(static_cast<std::size_t>(size), kWhat);
  DeviceBuffer<int> info(1, kWhat);
  DeviceBuffer<int> pivot(static_cast<std::size_t>(n), kWhat);
  DeviceBuffer<double2> inverse(static_cast<std::size_t>(n * n), kWhat);
  for_each_index(n * n, MakeUnit{inverse.data(), n}, kWhat, stream);
  check(quasi::cuda::late::cusolverDnZgetrf(solver, order, order, matrix, order, work.data(),
                                            pivot.data(), info.data()),
        kWhat);
  if (read_info(info, stream, kWhat) != 0)
    throw NotConverged("dielectric matrix of order " + std::to_string(n) + " is singular");
  // The inverse of the transposed view is the transposed view of the inverse.
  check(quasi::cuda::late::cusolverDnZgetrs(solver, CUBLAS_OP_N, order, order, matrix, order,
                                            pivot.data(), inverse.data(), order, info.data()),
        kWhat);
  check(cudaStreamSynchronize(stream), kWhat);
  return inverse;
}

namespace {

/// @param matrix, values  the arrays of the problem, which the library does not read here
EigenWorkSpace work_space_of(cusolverDnHandle_t solver, std::int64_t n, cudaDataType type,
                             const void* matrix, const double* values) {
  EigenWorkSpace work;
  check(quasi::cuda::late::cusolverDnXsyevd_bufferSize(
            solver, nullptr, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n, type, matrix, n,
            CUDA_R_64F, values, type, &work.device_bytes, &work.host_bytes),
        "diagonalisation");
  return work;
}

/// Computes all pairs by divide and conquer, real or complex. Eigenvectors replace the matrix.
std::vector<double> eigen(cusolverDnHandle_t solver, cudaStream_t stream, void* matrix,
                          cudaDataType type, std::int64_t n) {
  constexpr const char* kWhat = "diagonalisation";
  DeviceBuffer<double> values(static_cast<std::size_t>(n), kWhat);
  const EigenWorkSpace work = work_space_of(solver, n, type, matrix, values.data());
  DeviceBuffer<char> device_work(work.device_bytes, kWhat);
  std::vector<char> host_work(work.host_bytes);
  DeviceBuffer<int> info(1, kWhat);
  check(quasi::cuda::late::cusolverDnXsyevd(
            solver, nullptr, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n, type, matrix, n,
            CUDA_R_64F, values.data(), type, device_work.data(), work.device_bytes,
            host_work.data(), work.host_bytes, info.data()),
        kWhat);
  if (const int failed = read_info(info, stream, kWhat); failed != 0)
    throw NotConverged("diagonalisation of order " + std::to_string(n) + " failed, cuSOLVER info " +
                       std::to_string(failed));
  return quasi::cuda::to_host(values, kWhat);
}

struct MoveReal {
  double2* matrix;
  double* real;
  std::int64_t n;
  __device__ void operator()(std::int64_t index) const {
    if (index / n <= index % n) matrix[index].x += real[index];
    real[index] = 0.0;
  }
};

}  // namespace

std::vector<double> eigen_columns(cusolverDnHandle_t solver, cudaStream_t stream, double* matrix,
                                  std::int64_t n) {
  return eigen(solver, stream, matrix, CUDA_R_64F, n);
}
std::vector<double> eigen_columns(cusolverDnHandle_t solver, cudaStream_t stream, double2* matrix,
                                  std::int64_t n) {
  return eigen(solver, stream, matrix, CUDA_C_64F, n);
}

std::vector<double> eigen_hermitian(cusolverDnHandle_t solver, cudaStream_t stream, double2* matrix,
                                    std::int64_t n) {
  // The transposed view of a Hermitian matrix is its conjugate. The matrix is conjugated first, so
  // that the columns that cuSOLVER returns are our rows.
  for_each_index(n * n, Conjugate{matrix}, "diagonalisation", stream);
  return eigen(solver, stream, matrix, CUDA_C_64F, n);
}

EigenWorkSpace eigen_work_space(cusolverDnHandle_t solver, std::int64_t n, bool real) {
  const DeviceBuffer<double> unread(2, "diagonalisation");
  return work_space_of(solver, n, real ? CUDA_R_64F : CUDA_C_64F, unread.data(), unread.data());
}

void add_symmetric(cublasHandle_t blas, std::int64_t n, std::int64_t n_rows, double sign,
                   const double* a, double* c) {
  const double one = 1.0;
  const int order = static_cast<int>(n);
  // The library's product of a large triangle reaches half the speed of its general product. Panels
  // of columns from the diagonal down cost an eighth more flops than the triangle.
  constexpr int kPanelsFrom = 2048, kPanels = 8, kTile = 128;
  if (order >= kPanelsFrom) {
    const int width = ((order + kPanels - 1) / kPanels + kTile - 1) / kTile * kTile;
    for (int first = 0; first < order; first += width)
      check(quasi::cuda::late::cublasDgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, order - first,
                                           std::min(width, order - first), static_cast<int>(n_rows),
                                           &sign, a + first, order, a + first, order, &one,
                                           c + first + std::int64_t{first} * order, order),
            "symmetric product");
    return;
  }
  check(quasi::cuda::late::cublasDsyrk(blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, order,
                                       static_cast<int>(n_rows), &sign, a, order, &one, c, order),
        "symmetric product");
}

void move_real_part(double2* matrix, double* real, std::int64_t n, cudaStream_t stream) {
  for_each_index(n * n, MoveReal{matrix, real, n}, "polarizability", stream);
}

}  // namespace quasi::gw::cuda
