#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "workers/backend/unset_vector.hpp"
#include "workers/gw/kernels/polarizability/partial_chi.hpp"

namespace quasi::gw {

/// ε̃⁻¹ = (1 − v^½ χ v^½)⁻¹ at ω = 0 on the device that has inverted it, Hermitian to
/// the last bit; [n][n]. See docs/theory/gw.md 4 for the equations.
class DielectricInverse {
 public:
  explicit DielectricInverse(std::int64_t n) : n_(n) {}
  virtual ~DielectricInverse() = default;
  DielectricInverse(const DielectricInverse&) = delete;
  DielectricInverse& operator=(const DielectricInverse&) = delete;
  std::int64_t size() const { return n_; }
  /// Returns the first rows, [count][n].
  virtual std::vector<Cplx> rows(std::int64_t count) const = 0;

 private:
  std::int64_t n_;
};

/// ε̃⁻¹ in host memory.
class HostInverse final : public DielectricInverse {
 public:
  HostInverse(std::int64_t n, UnsetVector<Cplx> values)
      : DielectricInverse(n), values_(std::move(values)) {}
  std::vector<Cplx> rows(std::int64_t count) const override {
    return {values_.begin(), values_.begin() + count * size()};
  }
  const Cplx* values() const { return values_.data(); }

 private:
  UnsetVector<Cplx> values_;
};

}  // namespace quasi::gw
