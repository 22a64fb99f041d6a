#include <algorithm>
#include <string>

#include "workers/thermal/kernels/renormalisation/hermitian_batch_cuda.cuh"

namespace quasi::thermal {

namespace {

constexpr const char* kWhat = "diagonalising dynamical matrices";
constexpr std::int64_t kBatchElements = 1 << 24;  // 256 MiB of matrices, as much work space
constexpr cusolverEigMode_t kVectors = CUSOLVER_EIG_MODE_VECTOR;
constexpr cublasFillMode_t kUpper = CUBLAS_FILL_MODE_UPPER;

}  // namespace

HermitianBatchCuda::HermitianBatchCuda(int nb, std::int64_t n_matrices)
    : nb_(nb),
      n_matrices_(n_matrices),
      batch_(std::clamp<std::int64_t>(kBatchElements / (nb * nb), 1, n_matrices)),
      solver_(nullptr),
      info_(static_cast<std::size_t>(n_matrices), kWhat) {
  syevjInfo_t settings = nullptr;
  cuda::check(cuda::late::cusolverDnCreateSyevjInfo(&settings), kWhat);
  settings_ = cuda::OwnedHandle<syevjInfo_t, destroy_jacobi_settings>(settings);
  cuda::check(cuda::late::cusolverDnXsyevjSetSortEig(settings, 1), kWhat);
  int size = 0;
  for (const std::int64_t n : {batch_, n_matrices_ % batch_}) {
    if (n == 0) continue;
    int one = 0;
    cuda::check(cuda::late::cusolverDnZheevjBatched_bufferSize(solver_.get(), kVectors, kUpper, nb_,
                                                               nullptr, nb_, nullptr, &one,
                                                               settings, static_cast<int>(n)),
                kWhat);
    size = std::max(size, one);
  }
  work_ = cuda::DeviceBuffer<double2>(static_cast<std::size_t>(size), kWhat);
}

void HermitianBatchCuda::diagonalise(Complex<double>* matrices, double* values) {
  const std::int64_t square = static_cast<std::int64_t>(nb_) * nb_;
  for (std::int64_t first = 0; first < n_matrices_; first += batch_)
    cuda::check(cuda::late::cusolverDnZheevjBatched(
                    solver_.get(), kVectors, kUpper, nb_,
                    reinterpret_cast<cuDoubleComplex*>(matrices + first * square), nb_,
                    values + first * nb_, work_.data(), static_cast<int>(work_.size()),
                    info_.data() + first, settings_.get(),
                    static_cast<int>(std::min(batch_, n_matrices_ - first))),
                kWhat);
  for (const int info : cuda::to_host(info_, kWhat))
    if (info != 0)
      throw NotConverged("diagonalising a dynamical matrix failed (cuSOLVER info " +
                         std::to_string(info) + ")");
}

}  // namespace quasi::thermal
