#include "workers/gw/solver/mean_field/xc/local_density.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/pair_products/fft_cpu.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/xc/libxc.hpp"

namespace quasi::gw {
namespace {

constexpr double kRydbergsPerHartree = 2.0;
/// Lowest density that counts as 0, electrons/Bohr³. Rounding makes small negative densities where
/// a density vanishes.
constexpr double kLowestDensity = -1e-6;

using Box = std::array<int, 3>;

/// Returns an FFT grid for the plane waves G of a density, and for those with a component that is
/// larger by one. The plane waves q + G below the same cut-off need these.
Box box_of(const std::vector<IVec3>& g) {
  const IVec3 extent = component_extent(g);
  Box box{};
  for (std::size_t i = 0; i < 3; ++i) box[i] = good_fft_size(2 * extent[i] + 3);
  return box;
}

/// Returns f(r) = Σ_G f(G) e^{iG·r} at the points of the FFT grid.
FftArray at_points(const Box& box, const std::vector<IVec3>& g, const std::vector<Cplx>& of_g) {
  FftArray values(std::int64_t{1} * box[0] * box[1] * box[2]);
  std::fill_n(values.data(), values.size(), Cplx{});
  for (std::size_t i = 0; i < of_g.size(); ++i) values.data()[box_position(g[i], box)] = of_g[i];
  FftPlan(box, FftPlan::Sign::kPlus).run(values.data());
  return values;
}

/// Returns f(G) of a function f(r) on the FFT grid. The memory of `values` is used as work space.
std::vector<Cplx> on_plane_waves(const Box& box, const std::vector<IVec3>& g, FftArray values) {
  FftPlan(box, FftPlan::Sign::kMinus).run(values.data());
  std::vector<Cplx> of_g;
  for (const IVec3& wave : g)
    of_g.push_back(values.data()[box_position(wave, box)] / static_cast<double>(values.size()));
  return of_g;
}

// These are the numbers by which libxc calls its functionals (xc_funcs.h of libxc).
constexpr int kSlater = 1, kPerdewWang = 12;

/// Adds V_xc (Ry) and f_xc = dV_xc/dρ (Ry Bohr³) of one functional at the given densities
/// (Bohr⁻³).
/// @param number  number of the functional in libxc
void add_functional(int number, const std::vector<double>& density, std::vector<double>& potential,
                    std::vector<double>& derivative) {
  std::vector<double> v(density.size()), f(density.size());
  LibxcFunctional(number, 1).local(density.size(), density.data(), v.data(), f.data());
  for (std::size_t i = 0; i < density.size(); ++i) {
    potential[i] += kRydbergsPerHartree * v[i];
    derivative[i] += kRydbergsPerHartree * f[i];
  }
}

}  // namespace

LocalDensity::LocalDensity(const PlaneWaveField& density)
    : header_(density.header), box_(box_of(density.header.g)) {
  if (density.values.size() != 1)
    throw InvalidInput("V_xc of the local density is for densities without spin polarisation; " +
                       std::to_string(density.values.size()) +
                       " spins are given; set meanfield.vxc = \"none\"");
  const FftArray values = at_points(box_, header_.g, density.values.front());
  std::vector<double> electrons_per_bohr3;
  for (std::int64_t i = 0; i < values.size(); ++i)
    electrons_per_bohr3.push_back(values.data()[i].real() / header_.crystal.volume_bohr3);
  const double lowest = *std::min_element(electrons_per_bohr3.begin(), electrons_per_bohr3.end());
  if (lowest < kLowestDensity) {
    char text[240];
    std::snprintf(text, sizeof text,
                  "the density falls to %.2e electrons/Bohr^3, below the limit of %.0e; V_xc of a "
                  "negative density is not defined; set meanfield.vxc = \"none\"",
                  lowest, kLowestDensity);
    throw InvalidInput(text);
  }
  for (double& value : electrons_per_bohr3) value = std::max(value, 0.0);
  potential_ry_.resize(electrons_per_bohr3.size());
  derivative_ry_bohr3_.resize(electrons_per_bohr3.size());
  for (const int number : {kSlater, kPerdewWang})
    add_functional(number, electrons_per_bohr3, potential_ry_, derivative_ry_bohr3_);
}

PlaneWaveField LocalDensity::potential() const {
  FftArray values(static_cast<std::int64_t>(potential_ry_.size()));
  std::copy(potential_ry_.begin(), potential_ry_.end(), values.data());
  PlaneWaveField field{.header = header_, .values = {}};
  field.header.title = "VXC-Complex";
  field.values.push_back(on_plane_waves(box_, header_.g, std::move(values)));
  return field;
}

std::vector<Cplx> LocalDensity::potential_change(const std::vector<IVec3>& g,
                                                 const std::vector<Cplx>& change) const {
  FftArray values = at_points(box_, g, change);
  for (std::size_t i = 0; i < derivative_ry_bohr3_.size(); ++i)
    values.data()[i] *= derivative_ry_bohr3_[i] / header_.crystal.volume_bohr3;
  return on_plane_waves(box_, g, std::move(values));
}

}  // namespace quasi::gw
