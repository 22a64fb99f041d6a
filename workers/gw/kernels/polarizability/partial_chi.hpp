#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "workers/backend/unset_vector.hpp"

namespace quasi::gw {

using Cplx = std::complex<double>;

/// Edges of the matrices of a PartialChi.
struct ChiShape {
  std::int64_t n_static = 0;       ///< edge of χ(0); 0: it is absent
  std::int64_t n_frequencies = 0;  ///< number of matrices χ(ω_i)
  std::int64_t n = 0;              ///< edge of each χ(ω_i)
  std::int64_t static_size() const { return n_static * n_static; }
  std::int64_t size() const { return static_size() + n_frequencies * n * n; }
  bool operator==(const ChiShape&) const = default;
};

/// Returns the number of elements of the triangle G ≤ G' of a matrix of edge n.
inline std::int64_t triangle_size(std::int64_t n) { return n * (n + 1) / 2; }

/// Returns the shape of χ. Its values at `count` frequencies fill matrices of edge n (0: there are
/// none).
inline ChiShape chi_shape(std::int64_t n_static, std::size_t count, std::int64_t n) {
  return {.n_static = n_static,
          .n_frequencies = n > 0 ? static_cast<std::int64_t>(count) / (n * n) : 0,
          .n = n};
}

/// χ of some of the pairs of bands, kept on the device that made it. It holds χ(0), of which only
/// the triangle G ≤ G' is filled, and then each whole χ(ω_i). Parts are added element by element.
/// The bits of a sum therefore depend on the order of its additions alone, and not on the device.
/// See docs/theory/gw.md 4 for the equations.
class PartialChi {
 public:
  explicit PartialChi(const ChiShape& shape) : shape_(shape) {}
  virtual ~PartialChi() = default;
  PartialChi(const PartialChi&) = delete;
  PartialChi& operator=(const PartialChi&) = delete;
  const ChiShape& shape() const { return shape_; }

  /// Adds `part`, which has the kind and shape of this one but may lie on another device of this
  /// host.
  virtual void add(const PartialChi& part) = 0;
  /// Copies all values to the host, [shape().size()].
  virtual void read(Cplx* to) const = 0;
  /// Returns the triangle G ≤ G' of a real χ(0), row by row, if the device packs it: 1, then
  /// triangle_size(n_static) numbers. Empty where a value is complex, where there are other
  /// frequencies, and for χ in host memory.
  virtual std::optional<UnsetVector<double>> packed_triangle() const { return std::nullopt; }
  /// Returns χ_GG(0), [n_static].
  virtual std::vector<Cplx> diagonal() const = 0;
  /// Returns χ_GG'(0) of the first `edge` plane waves, [edge][edge], with the triangle G ≤ G'
  /// filled.
  virtual std::vector<Cplx> corner(std::int64_t edge) const = 0;

 private:
  ChiShape shape_;
};

/// χ in host memory. The CPU uses it, and a device whose memory is too small beside the other
/// arrays.
class HostChi final : public PartialChi {
 public:
  HostChi(const ChiShape& shape, std::vector<Cplx> values)
      : PartialChi(shape), values_(std::move(values)) {}
  void add(const PartialChi& part) override;
  void read(Cplx* to) const override;
  std::vector<Cplx> diagonal() const override;
  std::vector<Cplx> corner(std::int64_t edge) const override;
  const Cplx* values() const { return values_.data(); }

 private:
  std::vector<Cplx> values_;
};

}  // namespace quasi::gw
