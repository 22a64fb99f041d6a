#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "workers/gw/physics/contour_residues.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"

// Three methods for Σ_c from ε⁻¹ at many frequencies (docs/theory/gw.md 6.5).
namespace quasi::gw {
namespace {

/// Calls body(pair, l, e, x, occupied) for every pair and energy, x = E_l + offset − E_n.
template <typename Body>
void for_each_energy(const BandBlock& block, const std::vector<double>& offsets_ry, Body&& body) {
  for (std::int64_t l = 0; l < block.n_l; ++l)
    for (std::int64_t n = 0; n < block.n_b; ++n)
      for (std::size_t e = 0; e < offsets_ry.size(); ++e)
        body(static_cast<std::size_t>(l * block.n_b + n), static_cast<std::size_t>(l), e,
             block.outer_ry[static_cast<std::size_t>(l)] + offsets_ry[e] -
                 block.inner_ry[static_cast<std::size_t>(n)],
             block.occupation[static_cast<std::size_t>(n)] > 0.5);
}

// S(ω) = Σ_GG' M (δ − ε⁻¹(ω))_GG' v̄ M* of every pair of the block comes from FormsOfBlock.

/// Residues (sx) and the integral along iu (ch). S is formed at every imaginary point, and at the
/// real points that some residue lies between.
void add_contour(const FormsOfBlock& forms_at, const SigmaOptions& options, const BandBlock& block,
                 SelfEnergyAtK& sum) {
  const ContourGrid& grid = options.contour;
  const std::size_t n_e = options.offsets_ry.size();
  std::vector<std::vector<double>> weights;
  for_each_energy(block, options.offsets_ry,
                  [&](std::size_t, std::size_t, std::size_t, double x, bool) {
                    weights.push_back(contour_weights<double>(grid.imaginary_ry, x, grid.rule));
                  });
  for (std::size_t j = 0; j < grid.imaginary_ry.size(); ++j) {
    const auto forms = forms_at.at(j);
    for_each_energy(block, options.offsets_ry,
                    [&](std::size_t p, std::size_t l, std::size_t e, double, bool) {
                      sum.ch_ry[e][l] += block.weight * weights[p * n_e + e][j] * forms[p];
                    });
  }
  // Linear interpolation of S between real points: shares of each point, by pair and energy.
  struct Share {
    std::size_t pair, l, e;
    double factor;
  };
  std::vector<std::vector<Share>> at_point(grid.real_ry.size());
  for_each_energy(block, options.offsets_ry,
                  [&](std::size_t p, std::size_t l, std::size_t e, double x, bool occupied) {
                    for_each_residue_point(grid.real_ry, x, occupied,
                                           [&](std::size_t i, double factor) {
                                             at_point[i].push_back({p, l, e, factor});
                                           });
                  });
  for (std::size_t i = 0; i < at_point.size(); ++i) {
    if (at_point[i].empty()) continue;
    const auto forms = forms_at.at(grid.imaginary_ry.size() + i);
    for (const Share& share : at_point[i])
      sum.sx_ry[share.e][share.l] += block.weight * share.factor * forms[share.pair];
  }
}

/// Σ_c = Σ_empty f(x) − Σ_occupied f(−x), f(x) = ∫ dω B(ω)/(x − ω + i0), B = Im S/π on the dense
/// grid. The bands' whole contribution is counted in ch.
void add_real_axis(const FormsOfBlock& forms_at, const SigmaOptions& options,
                   const BandBlock& block, SelfEnergyAtK& sum) {
  const ContourGrid& grid = options.contour;
  const std::size_t n_pairs = static_cast<std::size_t>(block.n_l * block.n_b),
                    n_w = grid.real_ry.size();
  std::vector<double> spectrum(n_pairs * n_w);
  for (std::size_t i = 0; i < n_w; ++i) {
    const auto forms = forms_at.at(grid.imaginary_ry.size() + i);
    for (std::size_t p = 0; p < n_pairs; ++p) spectrum[p * n_w + i] = forms[p].imag() / kPi;
  }
  for_each_energy(block, options.offsets_ry,
                  [&](std::size_t p, std::size_t l, std::size_t e, double x, bool occupied) {
                    const std::span<const double> b(spectrum.data() + p * n_w, n_w);
                    sum.ch_ry[e][l] +=
                        block.weight * (occupied ? -spectral_integral(grid.real_ry, b, -x)
                                                 : spectral_integral(grid.real_ry, b, x));
                  });
}

/// Σ_c(μ + iω) = (1/π) ∫ du S(iu) x/(x² + u²) with x = μ + iω − E_n: no residues on this line.
void add_imaginary_axis(const FormsOfBlock& forms_at, const SigmaOptions& options,
                        const BandBlock& block, SelfEnergyAtK& sum) {
  const ContourGrid& grid = options.contour;
  const std::size_t n_z = grid.continuation_ry.size(), n_b = static_cast<std::size_t>(block.n_b);
  if (sum.axis_ry.empty())
    sum.axis_ry.assign(n_z, std::vector<Cplx>(static_cast<std::size_t>(block.n_l)));
  std::vector<std::vector<Cplx>> weights;
  for (std::size_t n = 0; n < n_b; ++n)
    for (const double omega : grid.continuation_ry)
      weights.push_back(contour_weights<Cplx>(
          grid.imaginary_ry, Cplx(block.midgap_ry - block.inner_ry[n], omega), grid.rule));
  for (std::size_t j = 0; j < grid.imaginary_ry.size(); ++j) {
    const auto forms = forms_at.at(j);
    for (std::size_t p = 0; p < forms.size(); ++p)
      for (std::size_t z = 0; z < n_z; ++z)
        sum.axis_ry[z][p / n_b] += block.weight * weights[(p % n_b) * n_z + z][j] * forms[p];
  }
}

}  // namespace

double midgap_ry(const MeanField& field, int spin) {
  const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
  double top = -std::numeric_limits<double>::infinity(),
         bottom = std::numeric_limits<double>::infinity();
  for (int ik = 0; ik < field.waves.n_k(); ++ik) {
    top = std::max(top, field.waves.energy(spin, ik, n_v - 1));
    bottom = std::min(bottom, field.waves.energy(spin, ik, n_v));
  }
  return 0.5 * (top + bottom);
}

void add_full_frequency(const FrequencyDependentW& w, const SigmaOptions& options,
                        const BandBlock& block, PairBlock& products, SelfEnergyAtK& sum) {
  const FormsOfBlock forms(w, block.weight, products, &sum.subspace_error_ry);
  switch (options.method) {
    case SigmaMethod::kContour:
      return add_contour(forms, options, block, sum);
    case SigmaMethod::kRealAxis:
      return add_real_axis(forms, options, block, sum);
    case SigmaMethod::kImaginaryAxis:
      return add_imaginary_axis(forms, options, block, sum);
    default:
      throw std::logic_error("add_full_frequency: sigma.method has no sum over frequencies");
  }
}

namespace {

/// Adds Σ_lm(E) += Σ_fn share_f,en [M W(ω_f) M†]_lm in a subspace. R and d(ω) are summed over all
/// frequencies first, then the projected products follow.
void add_contour_matrix_in_subspace(const SubspaceOfW& s,
                                    const std::vector<std::vector<double>>& share, std::int64_t n_b,
                                    PairBlock& products, SigmaMatrixAtK& sum) {
  const auto n_e = static_cast<std::int64_t>(sum.energy_ry.size());
  const auto pairs = static_cast<std::size_t>(n_e * n_b);
  for (const bool imaginary : {false, true}) {
    std::vector<double> weight(pairs);
    for (std::size_t f = 0; f < share.size(); ++f)
      for (std::size_t p = 0; p < share[f].size(); ++p)
        weight[p] += share[f][p] * (imaginary ? s.share[f].imag() : s.share[f].real());
    if (std::all_of(weight.begin(), weight.end(), [](double value) { return value == 0.0; }))
      continue;
    std::vector<Cplx> part(sum.correlation_ry.size());
    products.quadratic_form_matrix(view<const Cplx>(s.rest, s.n, s.n),
                                   view<const double>(weight, n_e, n_b),
                                   view<Cplx>(part, n_e, sum.n, sum.n));
    for (std::size_t i = 0; i < part.size(); ++i)
      sum.correlation_ry[i] += imaginary ? Cplx(0.0, 1.0) * part[i] : part[i];
  }
  std::vector<std::size_t> with_diagonal;
  for (std::size_t f = 0; f < s.diagonal.size(); ++f)
    if (!share[f].empty() && !s.diagonal[f].empty()) with_diagonal.push_back(f);
  if (!with_diagonal.empty()) {
    const std::size_t n_f = with_diagonal.size(), bands = static_cast<std::size_t>(n_b);
    std::vector<Cplx> diagonals;
    std::vector<double> weight(pairs * n_f);  // [n_b][n_f][n_e]
    for (std::size_t i = 0; i < n_f; ++i) {
      const std::size_t f = with_diagonal[i];
      diagonals.insert(diagonals.end(), s.diagonal[f].begin(), s.diagonal[f].end());
      for (std::size_t p = 0; p < pairs; ++p)
        weight[(p % bands * n_f + i) * (pairs / bands) + p / bands] = share[f][p];
    }
    products.diagonal_form_matrix(view<const Cplx>(diagonals, n_f, s.n),
                                  view<const double>(weight, n_b, n_f, n_e),
                                  view<Cplx>(sum.correlation_ry, n_e, sum.n, sum.n));
  }
  products.project(view<const Cplx>(s.basis, s.n, s.n_b));
  for (std::size_t f = 0; f < share.size(); ++f)
    if (!share[f].empty() && !s.inner[f].empty())
      products.quadratic_form_matrix(view<const Cplx>(s.inner[f], s.n_b, s.n_b),
                                     view<const double>(share[f], n_e, n_b),
                                     view<Cplx>(sum.correlation_ry, n_e, sum.n, sum.n));
}

}  // namespace

void add_contour_matrix(const FrequencyDependentW& w, const ContourGrid& grid,
                        const BandBlock& block, PairBlock& products, SigmaMatrixAtK& sum) {
  const auto n_e = static_cast<std::int64_t>(sum.energy_ry.size()), n_g = w.at.sphere.size();
  const auto pairs = static_cast<std::size_t>(n_e * block.n_b);
  // Shares of every frequency in Σ(E) by band, in the order of DielectricMatrix::inverse;
  // [frequency][n_e][n_b].
  std::vector<std::vector<double>> share(grid.imaginary_ry.size() + grid.real_ry.size());
  const auto add = [&](std::size_t frequency, std::size_t pair, double factor) {
    if (share[frequency].empty()) share[frequency].resize(pairs);
    share[frequency][pair] += block.weight * factor;
  };
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const std::size_t e = pair / static_cast<std::size_t>(block.n_b),
                      n = pair % static_cast<std::size_t>(block.n_b);
    const double x = sum.energy_ry[e] - block.inner_ry[n];
    const std::vector<double> weights = contour_weights<double>(grid.imaginary_ry, x, grid.rule);
    for (std::size_t j = 0; j < weights.size(); ++j) add(j, pair, weights[j]);
    for_each_residue_point(
        grid.real_ry, x, block.occupation[n] > 0.5,
        [&](std::size_t i, double factor) { add(grid.imaginary_ry.size() + i, pair, factor); });
  }
  if (w.subspace.used()) {
    add_contour_matrix_in_subspace(w.subspace, share, block.n_b, products, sum);
    return;
  }
  for (std::size_t f = 0; f < share.size(); ++f) {
    if (share[f].empty()) continue;
    const UnsetVector<Cplx> matrix = screened_matrix(w.at, f, w.wings);
    products.quadratic_form_matrix(view<const Cplx>(matrix, n_g, n_g),
                                   view<const double>(share[f], n_e, block.n_b),
                                   view<Cplx>(sum.correlation_ry, n_e, sum.n, sum.n));
  }
}

void continue_to_real_energies(const std::vector<double>& outer_ry, double midgap,
                               const SigmaOptions& options, SelfEnergyAtK& sum) {
  const auto& axis = options.contour.continuation_ry;
  for (std::size_t l = 0; l < outer_ry.size(); ++l) {
    std::vector<Cplx> z, f;
    // Σ at E below μ is continued from the lower half of the line, above from the upper: Σ(μ − iω)
    // = Σ(μ + iω)*.
    const bool below = outer_ry[l] < midgap;
    for (std::size_t j = 0; j < axis.size(); ++j) {
      const Cplx value = sum.axis_ry[j][l];
      z.emplace_back(midgap, below ? -axis[j] : axis[j]);
      f.push_back(below ? std::conj(value) : value);
    }
    for (std::size_t e = 0; e < options.offsets_ry.size(); ++e)
      sum.ch_ry[e][l] += continued(z, f, outer_ry[l] + options.offsets_ry[e]);
  }
}

}  // namespace quasi::gw
