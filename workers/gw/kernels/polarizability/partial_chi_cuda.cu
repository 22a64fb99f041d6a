#include <algorithm>
#include <stdexcept>

#include "workers/backend/device/launch_cuda.cuh"
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

void scale_inverse(const double* coulomb, bool positive, std::int64_t n, double2* inverse,
                   cudaStream_t stream) {
  for_each_index(n * n, ScaleInverse{coulomb, inverse, n, positive}, "inverse dielectric matrix",
                 stream);
}

}  // namespace quasi::gw::cuda
