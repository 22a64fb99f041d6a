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

struct AddValues {
  const double2* from;
  double2* to;
  __device__ void operator()(std::int64_t i) const {
    to[i].x += from[i].x;
    to[i].y += from[i].y;
  }
};

/// Adds `from`, which may lie on another device, to `to`. The values are copied in pieces, so that
/// no second matrix need fit.
void add_values(const Device& here, const DeviceBuffer<double2>& to, const Device& there,
                const DeviceBuffer<double2>& from, cudaStream_t stream) {
  const auto size = static_cast<std::int64_t>(to.size());
  if (here.index == there.index) {
    for_each_index(size, AddValues{from.data(), to.data()}, kWhat, stream);
    return;
  }
  DeviceBuffer<double2> piece(static_cast<std::size_t>(std::min(size, kPeerPiece)), kWhat);
  for (std::int64_t first = 0; first < size; first += kPeerPiece) {
    const std::int64_t count = std::min(kPeerPiece, size - first);
    peer_copy({piece.data(), here}, {from.data() + first, there},
              count * static_cast<std::int64_t>(sizeof(double2)), stream, kWhat);
    for_each_index(count, AddValues{piece.data(), to.data() + first}, kWhat, stream);
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
  add_values(device(), values_, other->device(), other->values_, stream);
  add_values(device(), further_, other->device(), other->further_, stream);
  check(cudaStreamSynchronize(context_->stream()), kWhat);
}

void CudaChi::read(Cplx* to) const {
  context_->use();
  check(cudaStreamSynchronize(context_->stream()), kWhat);
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

struct PackTriangle {
  TriangleRows rows;
  const double2* matrix;
  double* packed;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t row = rows.first + index / rows.n, column = index % rows.n;
    if (column >= row)
      packed[rows.place(row) - rows.place(rows.first) + column - row] =
          matrix[row * rows.n + column].x;
  }
};
struct UnpackTriangle {
  TriangleRows rows;
  const double* packed;
  double2* matrix;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t row = rows.first + index / rows.n, column = index % rows.n;
    const double value =
        column >= row ? packed[rows.place(row) - rows.place(rows.first) + column - row] : 0.0;
    matrix[row * rows.n + column] = {value, 0.0};
  }
};

}  // namespace

std::optional<UnsetVector<double>> CudaChi::packed_triangle() const {
  context_->use();
  const std::int64_t n = shape().n_static;
  if (n == 0 || shape().n_frequencies > 0) return std::nullopt;
  const cudaStream_t stream = context_->stream();
  if (!is_real(values_.data(), n * n, stream)) return std::nullopt;
  UnsetVector<double> packed(static_cast<std::size_t>(1 + triangle_size(n)));
  packed[0] = 1.0;
  const DeviceBuffer<double> piece = buffer_of_rows(n);
  for (std::int64_t first = 0; first < n;) {
    const TriangleRows rows = rows_from(first, n);
    for_each_index(rows.elements(), PackTriangle{rows, values_.data(), piece.data()}, kWhat,
                   stream);
    context_->staging().to_host(piece.data(),
                                rows.size() * static_cast<std::int64_t>(sizeof(double)),
                                packed.data() + 1 + rows.place(first), stream, kWhat);
    first = rows.end;
  }
  return packed;
}

void unpack_triangle(CudaContext& context, std::int64_t n, const double* values, double2* matrix) {
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
  std::vector<Cplx> values(n);
  check(cudaMemcpy2D(values.data(), sizeof(double2), values_.data(), (n + 1) * sizeof(double2),
                     sizeof(double2), n, cudaMemcpyDeviceToHost),
        kWhat);
  return values;
}

std::vector<Cplx> CudaChi::corner(std::int64_t edge) const {
  context_->use();
  const auto m = static_cast<std::size_t>(edge), n = static_cast<std::size_t>(shape().n_static);
  std::vector<Cplx> values(m * m);
  check(cudaMemcpy2D(values.data(), m * sizeof(double2), values_.data(), n * sizeof(double2),
                     m * sizeof(double2), m, cudaMemcpyDeviceToHost),
        kWhat);
  return values;
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

void scale_inverse(const double* coulomb, bool positive, std::int64_t n, double2* inverse,
                   cudaStream_t stream) {
  for_each_index(n * n, ScaleInverse{coulomb, inverse, n, positive}, "inverse dielectric matrix",
                 stream);
}

}  // namespace quasi::gw::cuda
