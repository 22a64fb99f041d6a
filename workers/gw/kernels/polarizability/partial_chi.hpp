#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace quasi::gw {

using Cplx = std::complex<double>;

/// Edges of the matrices of a PartialChi.
struct ChiShape {
  std::int64_t n_static = 0;       ///< of χ(0); 0: it is not there
  std::int64_t n_frequencies = 0;  ///< of χ(ω_i)
  std::int64_t n = 0;              ///< edge of each χ(ω_i)
  std::int64_t static_size() const { return n_static * n_static; }
  std::int64_t size() const { return static_size() + n_frequencies * n * n; }
  bool operator==(const ChiShape&) const = default;
};

/// The shape of χ whose values at frequencies, `count` of them, fill matrices of edge n (0: there
/// are none).
inline ChiShape chi_shape(std::int64_t n_static, std::size_t count, std::int64_t n) {
  return {.n_static = n_static,
          .n_frequencies = n > 0 ? static_cast<std::int64_t>(count) / (n * n) : 0,
          .n = n};
}

/// χ of some of the pairs of bands, where the device that made it keeps it: χ(0), of which the
/// triangle G ≤ G' counts and the rest is 0, then χ(ω_i), whole. Parts are added element by
/// element, so that the bits of a sum depend on the order of its additions alone and not on which
/// device makes them.
class PartialChi {
 public:
  explicit PartialChi(const ChiShape& shape) : shape_(shape) {}
  virtual ~PartialChi() = default;
  PartialChi(const PartialChi&) = delete;
  PartialChi& operator=(const PartialChi&) = delete;
  const ChiShape& shape() const { return shape_; }

  /// this += part, which may lie on another device of this host but is of the same kind and shape.
  virtual void add(const PartialChi& part) = 0;
  /// All values to the host, [shape().size()].
  virtual void read(Cplx* to) const = 0;
  /// χ_GG(0), [n_static].
  virtual std::vector<Cplx> diagonal() const = 0;
  /// χ_GG'(0) of the first `edge` plane waves, [edge][edge]; of it the triangle G ≤ G' counts.
  virtual std::vector<Cplx> corner(std::int64_t edge) const = 0;

 private:
  ChiShape shape_;
};

/// In host memory: the CPU's own, and what does not fit beside the other arrays of a device.
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
