#include "workers/gw/solver/perturbation/spinors/spin_orbit_displacement.hpp"

#include <cmath>

#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/physics/spinor.hpp"
#include "workers/gw/solver/mean_field/spinors/spin_orbit.hpp"

namespace quasi::gw {
namespace {

constexpr std::int64_t kRank = SeparableElements::kRank;

/// Adds factor · (X × σ)_a of the spinors X_a, [3 directions][2 spins], to a list of that shape.
void add_cross_sigma(double factor, const Cplx* x, std::ptrdiff_t stride, Cplx* to) {
  for (std::size_t a = 0; a < 3; ++a) {
    const std::size_t b = (a + 1) % 3, c = (a + 2) % 3;
    Vec3 along_b{}, along_c{};
    along_b[b] = along_c[c] = 1.0;
    const SpinMatrix sigma_b = pauli(along_b), sigma_c = pauli(along_c);
    for (std::size_t row = 0; row < 2; ++row)
      for (std::size_t column = 0; column < 2; ++column) {
        const auto at = [&](std::size_t direction) {
          return x[static_cast<std::ptrdiff_t>(column) * stride +
                   static_cast<std::ptrdiff_t>(direction)];
        };
        to[row * 6 + a] += factor * (at(b) * sigma_c[row][column] - at(c) * sigma_b[row][column]);
      }
  }
}

}  // namespace

void SeparableElements::add(BandRange kets, Cplx* elements) const {
  zgemm({.transpose_b = CblasTrans,
         .m = std::ssize(bra) / kRank,
         .n = kets.size(),
         .k = kRank,
         .beta = 1.0},
        {bra.data(), kRank}, {ket.data() + kets.begin * kRank, kRank}, {elements, kets.size()});
}

SpinOrbitDisplacement::SpinOrbitDisplacement(const Crystal& crystal, int atom,
                                             double strength_ry_bohr2, const Vec3& direction)
    : position_bohr_(crystal.alat_bohr *
                     crystal.atoms[static_cast<std::size_t>(atom)].position_alat),
      direction_(direction),
      strength_(strength_ry_bohr2 / static_cast<double>(crystal.atoms.size())) {
  for (std::size_t i = 0; i < 3; ++i)
    reciprocal_per_bohr_[i] = crystal.blat_per_bohr * crystal.bvec[i];
}

// Returns B_a(K) = b(K) K_a e^{iK·τ} and (K·e) B_a(K), [n_pw][2 kinds][3 directions a].
std::vector<Cplx> SpinOrbitDisplacement::functions(const SpinorsAtPoint& states) const {
  std::vector<Cplx> made(6 * states.g.size());
  for (std::size_t i = 0; i < states.g.size(); ++i) {
    Vec3 wave{};
    for (int j = 0; j < 3; ++j)
      wave = wave + (states.k[j] + states.g[i][j]) * reciprocal_per_bohr_[j];
    const Cplx b = spin_orbit_form_factor(wave) * std::polar(1.0, dot(wave, position_bohr_));
    for (std::size_t a = 0; a < 3; ++a) {
      made[6 * i + a] = wave[a] * b;
      made[6 * i + 3 + a] = dot(wave, direction_) * wave[a] * b;
    }
  }
  return made;
}

// Returns the sums over K of these functions times c_nσ(K), [n_states][2 spins][2 kinds][3].
std::vector<Cplx> SpinOrbitDisplacement::projections(const SpinorsAtPoint& states) const {
  const std::int64_t n_pw = std::ssize(states.g), rows = 2 * states.coefficients.extent[0];
  const std::vector<Cplx> of_waves = functions(states);
  std::vector<Cplx> found(static_cast<std::size_t>(6 * rows));
  zgemm({.transpose_b = CblasNoTrans, .m = rows, .n = 6, .k = n_pw},
        {states.coefficients.data, n_pw}, {of_waves.data(), 6}, {found.data(), 6});
  return found;
}

// Returns the factors of the conjugate functions of K' in ∂H ψ_n, of the shape of projections().
// (K' × K)·σ = Σ_a K'_a (K × σ)_a, and (K' − K)·e gives one term with K·e on each side.
std::vector<Cplx> SpinOrbitDisplacement::coupled_projections(const SpinorsAtPoint& states) const {
  const std::vector<Cplx> right = projections(states);
  std::vector<Cplx> made(right.size());
  for (std::size_t n = 0; n < right.size(); n += static_cast<std::size_t>(kRank)) {
    add_cross_sigma(strength_, &right[n + 3], 6, &made[n]);
    add_cross_sigma(-strength_, &right[n], 6, &made[n + 3]);
  }
  return made;
}

SeparableElements SpinOrbitDisplacement::elements(const SpinorsAtPoint& bra,
                                                  const SpinorsAtPoint& ket) const {
  SeparableElements made{.bra = projections(bra), .ket = coupled_projections(ket)};
  for (Cplx& value : made.bra) value = std::conj(value);
  return made;
}

void SpinOrbitDisplacement::add_applied(double factor, const SpinorsAtPoint& states,
                                        Cplx* to) const {
  const std::int64_t n_pw = std::ssize(states.g);
  const std::vector<Cplx> of_waves = functions(states), factors = coupled_projections(states);
  zgemm({.transpose_b = CblasConjTrans,
         .m = 2 * states.coefficients.extent[0],
         .n = n_pw,
         .k = 6,
         .alpha = factor,
         .beta = 1.0},
        {factors.data(), 6}, {of_waves.data(), 6}, {to, n_pw});
}

}  // namespace quasi::gw
