#include "workers/gw/solver/perturbation/response/density_response.hpp"

#include <algorithm>
#include <span>

#include "workers/gw/kernels/pair_products/fft_cpu.hpp"
#include "workers/gw/physics/g_sphere.hpp"

namespace quasi::gw {
namespace {

using Box = std::array<int, 3>;

/// Returns all eigenstates of H at one k. Their number is that of the plane waves.
DenseStates all_states(const MeanField& field, const StatesAt& states, const Vec3& k) {
  const auto n = make_g_sphere(field.crystal().bdot, k, field.waves.wavefunction_cutoff_ry).size();
  return states(k, 0, static_cast<int>(n));
}

std::span<const Cplx> state(const DenseStates& at, int band) {
  return {at.coefficients.data() + static_cast<std::size_t>(band) * at.row(), at.row()};
}

/// Returns the first order Σ_c |c⟩⟨c|∂V|v⟩/(E_v − E_c) of an occupied state v on the
/// plane waves at k + q. The sum runs over the empty states c at k + q.
/// @param bra        all states at k + q
/// @param energy_ry  E_v
/// @param changed    ∂V|v⟩ on the plane waves at k + q
std::vector<Cplx> first_order(const DenseStates& bra, int n_occupied, double energy_ry,
                              const std::vector<Cplx>& changed) {
  std::vector<Cplx> result(changed.size());
  for (int c = n_occupied; c < static_cast<int>(bra.energy_ry.size()); ++c) {
    const std::span<const Cplx> empty = state(bra, c);
    Cplx element;
    for (std::size_t i = 0; i < changed.size(); ++i) element += std::conj(empty[i]) * changed[i];
    element /= energy_ry - bra.energy_ry[static_cast<std::size_t>(c)];
    for (std::size_t i = 0; i < changed.size(); ++i) result[i] += element * empty[i];
  }
  return result;
}

/// Transforms states from plane waves to the points of an FFT box.
class StatesInBox {
 public:
  explicit StatesInBox(const Box& box) : box_(box), plan_(box, FftPlan::Sign::kPlus) {}
  FftArray at_points(const std::vector<IVec3>& g, std::span<const Cplx> coefficients) const {
    FftArray values(std::int64_t{1} * box_[0] * box_[1] * box_[2]);
    std::fill_n(values.data(), values.size(), Cplx{});
    for (std::size_t i = 0; i < g.size(); ++i)
      values.data()[box_position(g[i], box_)] = coefficients[i];
    plan_.run(values.data());
    return values;
  }

 private:
  Box box_;
  FftPlan plan_;
};

/// Refers to the states at k and at k + q. The first n_occupied states of both are occupied.
struct PairOfPoints {
  const DenseStates& ket;
  const DenseStates& bra;
  int n_occupied = 0;
};

/// Adds Σ_v u*_v(r) ∂u_v(r) of one k to a sum at the points of the box. u_v is the periodic part
/// of the occupied state v.
/// @param potential  ∂V between plane waves at k + q and at k, Ry/Bohr, [bra][ket]
void add_products(const PairOfPoints& points, const std::vector<Cplx>& potential,
                  const StatesInBox& box, FftArray& sum) {
  const std::size_t n_ket = points.ket.row(), n_bra = points.bra.row();
  for (int v = 0; v < points.n_occupied; ++v) {
    const std::span<const Cplx> occupied = state(points.ket, v);
    std::vector<Cplx> changed(n_bra);
    for (std::size_t i = 0; i < n_bra; ++i)
      for (std::size_t j = 0; j < n_ket; ++j) changed[i] += potential[i * n_ket + j] * occupied[j];
    const double energy_ry = points.ket.energy_ry[static_cast<std::size_t>(v)];
    const FftArray u = box.at_points(points.ket.sphere.g, occupied),
                   first = box.at_points(
                       points.bra.sphere.g,
                       first_order(points.bra, points.n_occupied, energy_ry, changed));
    for (std::int64_t r = 0; r < sum.size(); ++r)
      sum.data()[r] += std::conj(u.data()[r]) * first.data()[r];
  }
}

/// Returns an FFT box that is large enough for products of a state at k and a state at k + q. The
/// elements of the products at the plane waves `g` are exact.
Box box_of_products(const MeanField& field, const Vec3& q, const std::vector<IVec3>& g) {
  IVec3 ket{}, bra{};
  for (const ZonePoint& point : field.zone.points())
    for (const auto& [k, extent] : {std::pair{point.k, &ket}, {point.k + q, &bra}}) {
      const IVec3 own = component_extent(
          make_g_sphere(field.crystal().bdot, k, field.waves.wavefunction_cutoff_ry).g);
      for (std::size_t i = 0; i < 3; ++i) (*extent)[i] = std::max((*extent)[i], own[i]);
    }
  return product_box(ket, bra, component_extent(g));
}

}  // namespace

DensityResponse density_response(const std::vector<Perturbation>& perturbations,
                                 const MeanField& field, const StatesAt& states) {
  const Vec3 q = perturbations.empty() ? Vec3{} : perturbations.front().p;
  DensityResponse response{
      .g = make_g_sphere(field.crystal().bdot, q, field.density.header.density_cutoff_ry).g,
      .change = {}};
  const std::vector<IVec3>& g = response.g;
  response.change.assign(perturbations.size(), std::vector<Cplx>(g.size()));
  if (perturbations.empty()) return response;
  const Box box = box_of_products(field, q, g);
  const StatesInBox transform(box);
  std::vector<FftArray> sums;
  for (std::size_t p = 0; p < perturbations.size(); ++p) {
    sums.emplace_back(std::int64_t{1} * box[0] * box[1] * box[2]);
    std::fill_n(sums.back().data(), sums.back().size(), Cplx{});
  }
  for (const ZonePoint& point : field.zone.points()) {
    const DenseStates ket = all_states(field, states, point.k),
                      bra = q == Vec3{} ? ket : all_states(field, states, point.k + q);
    for (std::size_t p = 0; p < perturbations.size(); ++p)
      add_products({ket, bra, field.n_occupied},
                   perturbations[p].potential(point.k, bra.sphere.g, ket.sphere.g), transform,
                   sums[p]);
  }
  // ∂ρ has the terms u* ∂u and (∂u)* u. By time reversal the sums of both over all k are
  // equal, so that the first one counts twice.
  const double factor = 2.0 * field.waves.header.electrons_per_band() /
                        static_cast<double>(field.zone.size()) /
                        static_cast<double>(sums.front().size());
  const FftPlan to_plane_waves(box, FftPlan::Sign::kMinus);
  for (std::size_t p = 0; p < perturbations.size(); ++p) {
    to_plane_waves.run(sums[p].data());
    for (std::size_t i = 0; i < g.size(); ++i)
      response.change[p][i] = factor * sums[p].data()[box_position(g[i], box)];
  }
  return response;
}

}  // namespace quasi::gw
