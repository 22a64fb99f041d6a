#include "workers/gw/solver/perturbation/finite_displacements/screening_at_rest.hpp"

#include <utility>

namespace quasi::gw {
namespace {

std::unique_ptr<const LoadedSphere> load_sphere(const SphereAtPoint& rotated, bool with_phases,
                                                const std::array<int, 3>& box, GwKernels& kernels) {
  const auto n_g = static_cast<std::int64_t>(rotated.box_index.size());
  return kernels.pair_products().load_sphere(
      box, view<const std::int32_t>(rotated.box_index, n_g),
      with_phases ? view<const Cplx>(rotated.factor, n_g) : View<const Cplx, 1>{});
}

}  // namespace

ScreeningAtRest::ScreeningAtRest(const MeanField& field, const DielectricMatrix& epsilon,
                                 const SigmaOptions& options, const DeviceContext& context)
    : field_(field), options_(options), context_(context) {
  if (options.method == SigmaMethod::kContour)
    contour_.emplace(field, epsilon, options, context.coulomb, context.kernels);
  else
    poles_.emplace(field, epsilon, options, context.coulomb);
}

void ScreeningAtRest::move_to(const Vec3& q) {
  if (contour_)
    contour_->move_to(q, context_.coulomb, field_.crystal().bdot);
  else
    loaded_ = context_.kernels.pole_sums().load(poles_->at_point(q).view(), options_.rules);
}

void ScreeningAtRest::add(const BandBlock& block, const std::vector<double>& energies_ry,
                          PairBlock& products, std::vector<Cplx>& sum) const {
  const auto n_e = static_cast<std::int64_t>(energies_ry.size());
  if (contour_) {
    SigmaMatrixAtK found{.n = block.n_l, .energy_ry = energies_ry, .x_ry = {}};
    found.correlation_ry = std::move(sum);
    add_contour_matrix(contour_->at_q(), options_.contour, block, products, found);
    sum = std::move(found.correlation_ry);
    return;
  }
  loaded_->add_offdiagonal(
      products,
      {view<const double>(energies_ry, n_e), view<const double>(block.inner_ry, block.n_b),
       view<const double>(block.occupation, block.n_b), block.weight},
      {}, view<Cplx>(sum, n_e, block.n_l, block.n_l));
}

SpheresAtPoint::SpheresAtPoint(const MeanField& field, const Vec3& q, const GSphere& of_w,
                               const GSphere& of_exchange, const std::array<int, 3>& box,
                               GwKernels& kernels)
    : screened(load_sphere(rotated_sphere(field, q, of_w, box), true, box, kernels)),
      bare(load_sphere(rotated_sphere(field, q, of_exchange, box), false, box, kernels)) {}

void add_exchange_matrix(const PairBlock& products, const std::vector<double>& coulomb,
                         std::int64_t n_occupied, double weight, std::vector<Cplx>& sum) {
  const std::int64_t n = products.n_left(), n_b = products.n_right(), n_g = products.n_g();
  std::vector<Cplx> values(static_cast<std::size_t>(n * n_b * n_g));
  products.read(view<Cplx>(values, n, n_b, n_g));
  const auto m = view<const Cplx>(values, n, n_b, n_g);
  const auto size = static_cast<std::size_t>(n * n);
  for (std::int64_t l = 0; l < n; ++l)
    for (std::int64_t r = 0; r < n; ++r) {
      Cplx x;
      for (std::int64_t b = 0; b < n_occupied; ++b)
        for (std::int64_t g = 0; g < n_g; ++g)
          x -= coulomb[static_cast<std::size_t>(g)] * m(l, b, g) * std::conj(m(r, b, g));
      for (std::size_t at = static_cast<std::size_t>(l * n + r); at < sum.size(); at += size)
        sum[at] += weight * x;
    }
}

}  // namespace quasi::gw
