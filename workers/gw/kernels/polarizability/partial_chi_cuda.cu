#include <algorithm>
#include <stdexcept>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/dense/dense_cuda.cuh"
#include "workers/gw/kernels/peer_copy.cuh"
#include "workers/gw/kernels/polarizability/partial_chi_cuda.cuh"
#include "workers/gw/physics/dielectric.hpp"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;

constexpr const char* kWhat = "sum of parts of the polarizability";
constexpr std::int64_t kPeerPiece = std::int64_t{1}
                                    << 24;  // values of one piece from another device: 256 MiB

__device__ void add_to(double2& to, const double2& value) {
  to.x += value.x;
  to.y += value.y;
}
__device__ void add_to(double2& to, double value) { to.x += value; }
__device__ void add_to(double& to, double value) { to += value; }

template <typename From, typename To>
struct AddValues {
  const From* from;
  To* to;
  __device__ void operator()(std::int64_t i) const { add_to(to[i], from[i]); }
};

/// Adds `from`, which may lie on another device, to `to`. The values are copied in pieces, so that
/// no second matrix need fit.
template <typename From, typename To>
void add_values(const Device& here, const DeviceBuffer<To>& to, const Device& there,
                const DeviceBuffer<From>& from, cudaStream_t stream) {
  const auto size = static_cast<std::int64_t>(to.size());
  if (here.index == there.index) {
    for_each_index(size, AddValues<From, To>{from.data(), to.data()}, kWhat, stream);
    return;
  }
  DeviceBuffer<From> piece(static_cast<std::size_t>(std::min(size, kPeerPiece)), kWhat);
  for (std::int64_t first = 0; first < size; first += kPeerPiece) {
    const std::int64_t count = std::min(kPeerPiece, size - first);
    peer_copy({piece.data(), here}, {from.data() + first, there},
              count * static_cast<std::int64_t>(sizeof(From)), stream, kWhat);
    for_each_index(count, AddValues<From, To>{piece.data(), to.data() + first}, kWhat, stream);
  }
  check(cudaStreamSynchronize(stream), kWhat);
}

struct MakeDielectric {
  const double2* chi;
  const double* coulomb;
  double2* epsilon;
  std::int64_t n;
  bool triangle, positive;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t g = index / n, h = index % n;
    const bool below = triangle && g > h;
    double2 value = chi[below ? h * n + g : index];
    if (below) value.y = -value.y;
    const double factor = dielectric_factor(coulomb[g], coulomb[h], positive);
    epsilon[index] = {(g == h ? 1.0 : 0.0) - factor * value.x, -factor * value.y};
  }
};

/// Makes one element of each triangle from a real χ, which may be the same array.
struct MakeRealDielectric {
  const double* chi;
  const double* coulomb;
  double* epsilon;
  std::int64_t n;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t g = index / n, h = index % n;
    if (g > h) return;
    const double factor = dielectric_factor(coulomb[g], coulomb[h], true),
                 element = (g == h ? 1.0 : 0.0) - factor * chi[index];
    epsilon[index] = element;
    epsilon[h * n + g] = element;
  }
};

struct MakeComplex {
  const double* from;
  double2* to;
  __device__ void operator()(std::int64_t i) const { to[i] = {from[i], 0.0}; }
};

/// Computes one element of ε⁻¹ from ε̃⁻¹, for some of the rows.
struct ScaleRealRows {
  const double* coulomb;
  const double* inverse;
  double2* to;
  std::int64_t first, n;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t g = first + index / n, h = index % n;
    to[index] = {inverse_factor(coulomb[g], coulomb[h], true) * inverse[g * n + h], 0.0};
  }
};

/// Makes `count` complex numbers on the device and copies them to the host, `piece` of them at a
/// time. make(first, n, values) writes n numbers, from the number `first` on, to `values` on the
/// device.
template <typename Make>
void to_host_in_pieces(CudaContext& context, std::int64_t count, std::int64_t piece, Cplx* to,
                       const Make& make) {
  const DeviceBuffer<double2> values(static_cast<std::size_t>(std::min(count, piece)), kWhat);
  for (std::int64_t first = 0; first < count; first += piece) {
    const std::int64_t now = std::min(piece, count - first);
    make(first, now, values.data());
    context.to_host(values.data(), now, to + first, kWhat);
  }
}

/// Makes one element of each triangle.
struct MakeDielectricInPlace {
  double2* matrix;
  const double* coulomb;
  std::int64_t n;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t g = index / n, h = index % n;
    if (g > h) return;
    const double2 value = matrix[index];
    const double factor = dielectric_factor(coulomb[g], coulomb[h], true);
    const double2 element = {(g == h ? 1.0 : 0.0) - factor * value.x, -factor * value.y};
    matrix[index] = element;
    if (g < h) matrix[h * n + g] = {element.x, -element.y};
  }
};

struct ScaleInverse {
  const double* coulomb;
  double2* inverse;
  std::int64_t n;
  bool positive;
  __device__ void operator()(std::int64_t index) const {
    const double factor = inverse_factor(coulomb[index / n], coulomb[index % n], positive);
    inverse[index] = {factor * inverse[index].x, factor * inverse[index].y};
  }
};

}  // namespace

void CudaChi::add(const PartialChi& part) {
  const auto* other = dynamic_cast<const CudaChi*>(&part);
  if (other == nullptr || other->shape() != shape())
    throw std::logic_error("parts of χ with different shapes or devices cannot be added");
  context_->use();
  const cudaStream_t stream = context_->stream();
  if (is_real() && !other->is_real()) widen();
  if (is_real())
    add_values(device(), real_, other->device(), other->real_, stream);
  else if (other->is_real())
    add_values(device(), values_, other->device(), other->real_, stream);
  else
    add_values(device(), values_, other->device(), other->values_, stream);
  add_values(device(), further_, other->device(), other->further_, stream);
  check(cudaStreamSynchronize(context_->stream()), kWhat);
}

DeviceBuffer<double2> complex_from(const double* real, std::int64_t count, cudaStream_t stream) {
  DeviceBuffer<double2> values(static_cast<std::size_t>(count), kWhat);
  for_each_index(count, MakeComplex{real, values.data()}, kWhat, stream);
  check(cudaStreamSynchronize(stream), kWhat);
  return values;
}

void CudaChi::widen() {
  values_ = complex_from(real_.data(), shape().static_size(), context_->stream());
  real_ = {};
}

void CudaChi::read(Cplx* to) const {
  context_->use();
  check(cudaStreamSynchronize(context_->stream()), kWhat);
  if (is_real()) {
    to_host_in_pieces(*context_, shape().static_size(), kPeerPiece, to,
                      [&](std::int64_t first, std::int64_t count, double2* values) {
                        for_each_index(count, MakeComplex{real_.data() + first, values}, kWhat,
                                       context_->stream());
                      });
    return;
  }
  for (const auto* buffer : {&values_, &further_}) {
    context_->staging().to_host(buffer->data(),
                                static_cast<std::int64_t>(buffer->size() * sizeof(double2)), to,
                                context_->stream(), kWhat);
    to += buffer->size();
  }
}

namespace {

/// Rows [first, end) of the triangle G ≤ G' of a matrix of edge n, and where they are packed.
struct TriangleRows {
  std::int64_t first, end, n;
  __host__ __device__ std::int64_t place(std::int64_t row) const {
    return row * n - row * (row - 1) / 2;
  }
  __host__ __device__ std::int64_t size() const { return place(end) - place(first); }
  __host__ __device__ std::int64_t elements() const { return (end - first) * n; }
};
/// Packed values that pass through a buffer at a time, 32 MiB; a longer row passes alone.
constexpr std::int64_t kValues = std::int64_t{1} << 22;
DeviceBuffer<double> buffer_of_rows(std::int64_t n) {
  return {static_cast<std::size_t>(std::min(triangle_size(n), std::max(kValues, n))), kWhat};
}
/// Returns the next rows that fill the buffer.
TriangleRows rows_from(std::int64_t first, std::int64_t n) {
  TriangleRows rows{first, first + 1, n};
  while (rows.end < n && TriangleRows{first, rows.end + 1, n}.size() <= kValues) ++rows.end;
  return rows;
}

__device__ double real_part(double value) { return value; }
__device__ double real_part(const double2& value) { return value.x; }

template <typename T>
struct PackTriangle {
  TriangleRows rows;
  const T* matrix;
  double* packed;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t row = rows.first + index / rows.n, column = index % rows.n;
    if (column >= row)
      packed[rows.place(row) - rows.place(rows.first) + column - row] =
          real_part(matrix[row * rows.n + column]);
  }
};
struct UnpackTriangle {
  TriangleRows rows;
  const double* packed;
  double* matrix;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t row = rows.first + index / rows.n, column = index % rows.n;
    matrix[row * rows.n + column] =
        column >= row ? packed[rows.place(row) - rows.place(rows.first) + column - row] : 0.0;
  }
};

template <typename T>
UnsetVector<double> packed_from(CudaContext& context, std::int64_t n, const T* matrix) {
  const cudaStream_t stream = context.stream();
  UnsetVector<double> packed(static_cast<std::size_t>(1 + triangle_size(n)));
  packed[0] = 1.0;
  const DeviceBuffer<double> piece = buffer_of_rows(n);
  for (std::int64_t first = 0; first < n;) {
    const TriangleRows rows = rows_from(first, n);
    for_each_index(rows.elements(), PackTriangle<T>{rows, matrix, piece.data()}, kWhat, stream);
    context.staging().to_host(piece.data(), rows.size() * static_cast<std::int64_t>(sizeof(double)),
                              packed.data() + 1 + rows.place(first), stream, kWhat);
    first = rows.end;
  }
  return packed;
}

/// Copies a block of the first columns of some rows to the host. @param step  between rows
template <typename T>
std::vector<T> rows_to_host(const T* from, std::size_t step, std::size_t columns,
                            std::size_t rows) {
  std::vector<T> values(columns * rows);
  check(cudaMemcpy2D(values.data(), columns * sizeof(T), from, step * sizeof(T),
                     columns * sizeof(T), rows, cudaMemcpyDeviceToHost),
        kWhat);
  return values;
}
std::vector<Cplx> complex_of(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}
std::vector<Cplx> complex_of(const std::vector<double2>& values) {
  std::vector<Cplx> found;
  for (const double2& value : values) found.emplace_back(value.x, value.y);
  return found;
}

}  // namespace

std::optional<UnsetVector<double>> CudaChi::packed_triangle() const {
  context_->use();
  const std::int64_t n = shape().n_static;
  if (n == 0 || shape().n_frequencies > 0) return std::nullopt;
  if (is_real()) return packed_from(*context_, n, real_.data());
  if (!cuda::is_real(values_.data(), n * n, context_->stream())) return std::nullopt;
  return packed_from(*context_, n, values_.data());
}

void unpack_triangle(CudaContext& context, std::int64_t n, const double* values, double* matrix) {
  const cudaStream_t stream = context.stream();
  const DeviceBuffer<double> piece = buffer_of_rows(n);
  for (std::int64_t first = 0; first < n;) {
    const TriangleRows rows = rows_from(first, n);
    context.staging().to_device(values + rows.place(first),
                                rows.size() * static_cast<std::int64_t>(sizeof(double)),
                                piece.data(), stream, kWhat);
    for_each_index(rows.elements(), UnpackTriangle{rows, piece.data(), matrix}, kWhat, stream);
    check(cudaStreamSynchronize(stream), kWhat);
    first = rows.end;
  }
}

std::vector<Cplx> CudaChi::diagonal() const {
  context_->use();
  const auto n = static_cast<std::size_t>(shape().n_static);
  return is_real() ? complex_of(rows_to_host(real_.data(), n + 1, 1, n))
                   : complex_of(rows_to_host(values_.data(), n + 1, 1, n));
}

std::vector<Cplx> CudaChi::corner(std::int64_t edge) const {
  context_->use();
  const auto m = static_cast<std::size_t>(edge), n = static_cast<std::size_t>(shape().n_static);
  return is_real() ? complex_of(rows_to_host(real_.data(), n, m, m))
                   : complex_of(rows_to_host(values_.data(), n, m, m));
}

void make_dielectric(const double2* chi, const double* coulomb, const DielectricShape& shape,
                     double2* epsilon, cudaStream_t stream) {
  for_each_index(shape.n * shape.n,
                 MakeDielectric{chi, coulomb, epsilon, shape.n, shape.triangle, shape.positive},
                 "dielectric matrix", stream);
}

void make_dielectric_in_place(double2* chi, const double* coulomb, std::int64_t n,
                              cudaStream_t stream) {
  for_each_index(n * n, MakeDielectricInPlace{chi, coulomb, n}, "dielectric matrix", stream);
}

void make_real_dielectric(const double* chi, const double* coulomb, std::int64_t n, double* epsilon,
                          cudaStream_t stream) {
  for_each_index(n * n, MakeRealDielectric{chi, coulomb, epsilon, n}, "dielectric matrix", stream);
}

void scale_to_host(CudaContext& context, const double* coulomb, std::int64_t n,
                   const double* inverse, Cplx* to) {
  const std::int64_t rows = std::max<std::int64_t>(1, kPeerPiece / n);
  to_host_in_pieces(context, n * n, rows * n, to,
                    [&](std::int64_t first, std::int64_t count, double2* values) {
                      for_each_index(count, ScaleRealRows{coulomb, inverse, values, first / n, n},
                                     "inverse dielectric matrix", context.stream());
                    });
}

void scale_inverse(const double* coulomb, bool positive, std::int64_t n, double2* inverse,
                   cudaStream_t stream) {
  for_each_index(n * n, ScaleInverse{coulomb, inverse, n, positive}, "inverse dielectric matrix",
                 stream);
}

}  // namespace quasi::gw::cuda
