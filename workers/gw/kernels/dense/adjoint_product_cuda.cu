#include <algorithm>
#include <complex>

#include "workers/backend/unset_vector.hpp"
#include "workers/gw/kernels/dense/dense_kernels_cuda.cuh"

// Multiplies matrices that are in host memory and may exceed the memory of the device. The device
// holds some rows of the product at a time.
namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;

constexpr const char* kWhat = "product of slices";
/// Bytes of the rows of C that the device holds at a time. The size is fixed, so that the bits of
/// the result do not depend on the free memory.
constexpr std::int64_t kRows_bytes = std::int64_t{1} << 30;

/// Refers to a row-major matrix in host memory. The stride is the number of elements from the start
/// of a row to the start of the next one.
template <typename T>
struct HostMatrix {
  T* data;
  std::int64_t rows, columns, stride;
};

template <typename T>
DeviceBuffer<T> to_device(CudaContext& context, const HostMatrix<const T>& from) {
  UnsetVector<T> packed(static_cast<std::size_t>(from.rows * from.columns));
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < from.rows; ++row)
    std::copy_n(from.data + row * from.stride, from.columns, packed.data() + row * from.columns);
  DeviceBuffer<T> there(packed.size(), kWhat);
  context.staging().to_device(packed.data(), static_cast<std::int64_t>(packed.size() * sizeof(T)),
                              there.data(), context.stream(), kWhat);
  return there;
}

template <typename T>
void to_host(CudaContext& context, const DeviceBuffer<T>& from, const HostMatrix<T>& to) {
  check(cudaStreamSynchronize(context.stream()), kWhat);
  UnsetVector<T> packed(from.size());
  context.staging().to_host(from.data(), static_cast<std::int64_t>(packed.size() * sizeof(T)),
                            packed.data(), context.stream(), kWhat);
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < to.rows; ++row)
    std::copy_n(packed.data() + row * to.columns, to.columns, to.data + row * to.stride);
}

/// Holds the sizes of one product C[rows][columns] += α Aᴴ B in device memory. The sum of an
/// element runs over `depth` terms.
struct Edges {
  int rows, columns, depth;
  int a_stride;  ///< columns of A
};

// cuBLAS stores matrices by columns and so sees the transposed matrices: Cᵀ += α Bᵀ conj(A).
void add(cublasHandle_t blas, const Edges& e, double alpha, const double* a, const double* b,
         double* c) {
  const double one = 1.0;
  check(quasi::cuda::late::cublasDgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, e.columns, e.rows, e.depth,
                                       &alpha, b, e.columns, a, e.a_stride, &one, c, e.columns),
        kWhat);
}
void add(cublasHandle_t blas, const Edges& e, double alpha, const double2* a, const double2* b,
         double2* c) {
  const double2 one{1.0, 0.0}, factor{alpha, 0.0};
  check(quasi::cuda::late::cublasZgemm(blas, CUBLAS_OP_N, CUBLAS_OP_C, e.columns, e.rows, e.depth,
                                       &factor, b, e.columns, a, e.a_stride, &one, c, e.columns),
        kWhat);
}

template <typename T>
void add_product(CudaContext& context, const AdjointProduct<T>& product) {
  context.use();
  const auto a = to_device<T>(context, {product.a, product.depth, product.rows, product.a_stride}),
             b = to_device<T>(context,
                              {product.b, product.depth, product.columns, product.b_stride});
  const std::int64_t at_once = std::max<std::int64_t>(
      1, kRows_bytes / (product.columns * static_cast<std::int64_t>(sizeof(T))));
  for (std::int64_t begin = 0; begin < product.rows; begin += at_once) {
    const std::int64_t rows = std::min(at_once, product.rows - begin);
    T* const host = product.c + begin * product.c_stride;
    auto c = to_device<T>(context, {host, rows, product.columns, product.c_stride});
    add(context.blas(),
        {.rows = static_cast<int>(rows),
         .columns = static_cast<int>(product.columns),
         .depth = static_cast<int>(product.depth),
         .a_stride = static_cast<int>(product.rows)},
        product.alpha, a.data() + begin, b.data(), c.data());
    to_host<T>(context, c, {host, rows, product.columns, product.c_stride});
  }
}

/// Returns the same product with the complex type of CUDA, which has the same layout.
AdjointProduct<double2> on_device(const AdjointProduct<Cplx>& product) {
  return {.rows = product.rows,
          .columns = product.columns,
          .depth = product.depth,
          .alpha = product.alpha,
          .a = reinterpret_cast<const double2*>(product.a),
          .a_stride = product.a_stride,
          .b = reinterpret_cast<const double2*>(product.b),
          .b_stride = product.b_stride,
          .c = reinterpret_cast<double2*>(product.c),
          .c_stride = product.c_stride};
}

}  // namespace

void CudaDenseKernels::add_adjoint_product(const AdjointProduct<double>& product) {
  add_product(*context_, product);
}
void CudaDenseKernels::add_adjoint_product(const AdjointProduct<Cplx>& product) {
  add_product(*context_, on_device(product));
}

}  // namespace quasi::gw::cuda
