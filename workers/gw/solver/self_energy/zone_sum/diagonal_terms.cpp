#include "workers/gw/solver/self_energy/zone_sum/diagonal_terms.hpp"

#include <complex>
#include <span>

namespace quasi::gw {
namespace {

/// E_l + offset − E_n, [n_l][n_b][n_offsets].
std::vector<double> energy_differences(const BandBlock& block, std::span<const double> offsets) {
  std::vector<double> x;
  for (const double outer : block.outer_ry)
    for (const double inner : block.inner_ry)
      for (const double offset : offsets) x.push_back(outer + offset - inner);
  return x;
}

DiagonalTerms terms_of(const BandBlock& block, const std::vector<double>& x_ry,
                       std::size_t n_offsets) {
  return {view<const double>(x_ry, block.n_l, block.n_b, n_offsets),
          view<const double>(block.occupation, block.n_b), block.weight};
}

void add_imaginary_poles(const LoadedImaginaryPoles& poles, const BandBlock& block,
                         const PairBlock& products, const SigmaOptions& options,
                         SelfEnergyAtK& sum) {
  const std::size_t n_e = options.offsets_ry.size(), n_l = static_cast<std::size_t>(block.n_l);
  const std::vector<double> x = energy_differences(block, options.offsets_ry);
  std::vector<Cplx> total(n_l * n_e), sx(total.size());
  poles.add_diagonal(products, terms_of(block, x, n_e),
                     {view<Cplx>(total, n_l, n_e), view<Cplx>(sx, n_l, n_e)},
                     options.slope ? view<Cplx>(sum.slope, n_l) : View<Cplx, 1>{});
  for (std::size_t l = 0; l < n_l; ++l)
    for (std::size_t e = 0; e < n_e; ++e) {
      sum.ch_ry[e][l] += total[l * n_e + e] - sx[l * n_e + e];
      sum.sx_ry[e][l] += sx[l * n_e + e];
    }
}

/// Returns M W M† of every pair of a block, [n_l][n_b].
std::vector<Cplx> forms_of(const UnsetVector<Cplx>& matrix, const BandBlock& block,
                           const PairBlock& products) {
  const std::int64_t n_g = products.n_g();
  std::vector<Cplx> forms(static_cast<std::size_t>(block.n_l * block.n_b));
  products.quadratic_forms(view<const Cplx>(matrix, n_g, n_g),
                           view<Cplx>(forms, block.n_l, block.n_b));
  return forms;
}

}  // namespace

void add_exchange(const std::vector<double>& coulomb, const BandBlock& block,
                  const PairBlock& products, SelfEnergyAtK& sum) {
  std::vector<double> norms(static_cast<std::size_t>(block.n_l * block.n_b));
  products.weighted_norms(view<const double>(coulomb, coulomb.size()),
                          view<double>(norms, block.n_l, block.n_b));
  for (std::int64_t l = 0; l < block.n_l; ++l) {
    double x = 0.0;
    for (std::int64_t n = 0; n < block.n_b; ++n)
      x += norms[static_cast<std::size_t>(l * block.n_b + n)];
    sum.x_ry[static_cast<std::size_t>(l)] -= block.weight * x;
  }
}

void add_plasmon_poles(const ScreeningOnDevice& screening, const BandBlock& block,
                       const PairBlock& products, const SigmaOptions& options, SelfEnergyAtK& sum) {
  const auto n_l = static_cast<std::size_t>(block.n_l);
  const bool with_sx = !options.only_total;
  const auto add = [&](std::size_t e, std::size_t l, Cplx total, Cplx sx) {
    sum.sx_ry[e][l] += sx;
    sum.ch_ry[e][l] += total - sx;
  };
  std::size_t done = 0;
  if (options.slope) {
    const std::vector<double> x = energy_differences(block, std::span(options.offsets_ry).first(1));
    std::vector<Cplx> total(n_l), sx(n_l), slope(n_l);
    screening.poles->add_diagonal_slope(
        products, terms_of(block, x, 1),
        {view<Cplx>(total, n_l), with_sx ? view<Cplx>(sx, n_l) : View<Cplx, 1>{},
         view<Cplx>(slope, n_l)});
    for (std::size_t l = 0; l < n_l; ++l) {
      add(0, l, total[l], sx[l]);
      sum.slope[l] += slope[l];
    }
    done = 1;
  }
  const auto offsets = std::span(options.offsets_ry).subspan(done);
  if (!offsets.empty()) {
    const std::size_t n_e = offsets.size();
    const std::vector<double> x = energy_differences(block, offsets);
    std::vector<Cplx> total(n_l * n_e), sx(total.size());
    screening.poles->add_diagonal(
        products, terms_of(block, x, n_e),
        {view<Cplx>(total, n_l, n_e), with_sx ? view<Cplx>(sx, n_l, n_e) : View<Cplx, 2>{}});
    for (std::size_t l = 0; l < n_l; ++l)
      for (std::size_t e = 0; e < n_e; ++e) add(done + e, l, total[l * n_e + e], sx[l * n_e + e]);
  }
  if (screening.imaginary_poles)
    add_imaginary_poles(*screening.imaginary_poles, block, products, options, sum);
}

void subtract_forms(const UnsetVector<Cplx>& matrix, const BandBlock& block,
                    const PairBlock& products, std::vector<Cplx>& sum) {
  const std::vector<Cplx> forms = forms_of(matrix, block, products);
  const auto n_b = static_cast<std::size_t>(block.n_b);
  for (std::size_t p = 0; p < forms.size(); ++p) sum[p / n_b] -= block.weight * forms[p];
}

void subtract_closed_sum(const LoadedPoleModel& poles, double x_ry, const BandBlock& block,
                         const PairBlock& products, std::vector<Cplx>& sum) {
  const auto n_l = static_cast<std::size_t>(block.n_l), n_b = static_cast<std::size_t>(block.n_b);
  if (!poles.is_whole()) {
    // A slice of the poles has no matrix W* of the closed sum on the device. The product of W* with
    // a state is the term of an empty band at x = E − E_n, which the slice can sum.
    const std::vector<double> x(n_l * n_b, x_ry), occupation(n_b, 0.0);
    std::vector<Cplx> total(n_l);
    poles.add_diagonal(
        products,
        {view<const double>(x, n_l, n_b, 1), view<const double>(occupation, n_b), block.weight},
        {view<Cplx>(total, n_l, 1), {}});
    for (std::size_t l = 0; l < n_l; ++l) sum[l] -= total[l];
    return;
  }
  std::vector<Cplx> forms(n_l * n_b);
  poles.closed_forms(products, x_ry, view<Cplx>(forms, block.n_l, block.n_b));
  for (std::size_t p = 0; p < forms.size(); ++p) sum[p / n_b] -= block.weight * forms[p];
}

std::vector<Cplx> known_closed_sums(const ChargeTable& charge, const SymmetryOperation& operation,
                                    const DifferenceBox& box, const std::vector<Cplx>& sums) {
  const IMat3 back = inverse(operation.rotation);
  const auto n_d = static_cast<std::size_t>(charge.sphere.size());
  std::vector<Cplx> w(n_d);
#pragma omp parallel for schedule(static)
  for (std::size_t d = 0; d < n_d; ++d) {
    const IVec3& at = charge.sphere.g[d];
    const std::int64_t from = box.position(multiply(back, at));
    if (from >= 0)
      w[d] = sums[static_cast<std::size_t>(from)] *
             std::polar(1.0, -dot(to_real(at), operation.translation));
  }
  std::vector<Cplx> found(charge.values.size() / n_d);
#pragma omp parallel for schedule(static)
  for (std::size_t l = 0; l < found.size(); ++l)
    for (std::size_t d = 0; d < n_d; ++d) found[l] += w[d] * charge.values[l * n_d + d];
  return found;
}

void add_static(const UnsetVector<Cplx>& static_w, const BandBlock& block,
                const PairBlock& products, const SigmaOptions& options, SelfEnergyAtK& sum) {
  const auto n_b = static_cast<std::size_t>(block.n_b);
  const std::vector<Cplx> forms = forms_of(static_w, block, products);
  for (std::size_t p = 0; p < forms.size(); ++p) {
    const Cplx form = block.weight * forms[p];
    sum.ch_static_ry[p / n_b] -= 0.5 * form;
    if (options.method == SigmaMethod::kCohsex)
      for (auto& sx : sum.sx_ry) sx[p / n_b] += block.occupation[p % n_b] * form;
  }
}

}  // namespace quasi::gw
