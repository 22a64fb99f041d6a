#include "workers/gw/solver/mean_field/espresso/save_potentials.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workers/gw/kernels/pair_products/fft_cpu.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/espresso/radial_transforms.hpp"
#include "workers/gw/solver/mean_field/espresso/xc_functional.hpp"

namespace quasi::gw {
namespace {

/// Lists the different lengths |G| of a list of plane waves. Radial integrals depend on |G| alone.
struct Shells {
  std::vector<double> lengths;    ///< different |G|, 1/Bohr, ascending
  std::vector<std::size_t> of_g;  ///< position of |G| in `lengths`, [G]
};

Shells shells_of(const MeanFieldHeader& header) {
  constexpr double kEqualLengths = 1e-8;
  std::vector<double> length;
  for (const IVec3& g : header.g)
    length.push_back(std::sqrt(metric_dot(header.crystal.bdot, to_real(g), to_real(g))));
  std::vector<std::size_t> order(length.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return length[a] < length[b]; });
  Shells shells{{}, std::vector<std::size_t>(length.size())};
  for (const std::size_t i : order) {
    if (shells.lengths.empty() || length[i] - shells.lengths.back() > kEqualLengths)
      shells.lengths.push_back(length[i]);
    shells.of_g[i] = shells.lengths.size() - 1;
  }
  return shells;
}

/// Returns the position of an atom in units of the lattice vectors.
Vec3 reduced_position(const Crystal& crystal, std::size_t atom) {
  return multiply(crystal.bvec, crystal.atoms[atom].position_alat);
}

/// Returns S(G) = Σ_R e^{−iG·R} over the positions R of the atoms of one species, [G].
std::vector<Cplx> structure_factor(const EspressoSave& save, int species) {
  std::vector<Cplx> sum(save.bands.header.g.size());
  for (std::size_t atom = 0; atom < save.species_of_atom.size(); ++atom) {
    if (save.species_of_atom[atom] != species) continue;
    const Vec3 position = reduced_position(save.crystal(), atom);
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += std::polar(1.0, -2.0 * kPi * dot(to_real(save.bands.header.g[i]), position));
  }
  return sum;
}

/// Adds S(G) f(|G|)/Ω of the atoms of one species to a field, [G].
/// @param factors  f of each of the lengths
void add_species(const EspressoSave& save, int species, const Shells& shells,
                 const std::vector<double>& factors, std::vector<Cplx>& to) {
  const std::vector<Cplx> structure = structure_factor(save, species);
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] += factors[shells.of_g[i]] / save.crystal().volume_bohr3 * structure[i];
}

/// Transforms between the plane waves of a list and the points of its FFT grid.
class GridTransform {
 public:
  explicit GridTransform(const MeanFieldHeader& header)
      : box_{header.fft_grid[0], header.fft_grid[1], header.fft_grid[2]},
        work_(std::int64_t{1} * box_[0] * box_[1] * box_[2]),
        to_points_(box_, FftPlan::Sign::kPlus),
        to_waves_(box_, FftPlan::Sign::kMinus) {
    for (const IVec3& g : header.g)
      position_.push_back(static_cast<std::size_t>(box_position(g, box_)));
  }
  std::size_t size() const { return static_cast<std::size_t>(work_.size()); }

  /// Returns the real part of f(r) = Σ_G f(G) e^{iG·r} at the points of the grid.
  /// @param of  returns f(G) of the plane wave at a position in the list
  template <typename Coefficient>
  std::vector<double> points(const Coefficient& of) {
    std::fill(work_.data(), work_.data() + size(), Cplx{});
    for (std::size_t i = 0; i < position_.size(); ++i) work_.data()[position_[i]] = of(i);
    to_points_.run(work_.data());
    std::vector<double> values(size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = work_.data()[i].real();
    return values;
  }
  /// Returns f(G) of a function on the grid, [G].
  /// @param of  returns f at the point of a number
  template <typename Value>
  std::vector<Cplx> waves(const Value& of) {
    for (std::size_t i = 0; i < size(); ++i) work_.data()[i] = of(i);
    to_waves_.run(work_.data());
    std::vector<Cplx> values(position_.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = work_.data()[position_[i]] / static_cast<double>(size());
    return values;
  }

 private:
  std::array<int, 3> box_;
  FftArray work_;
  FftPlan to_points_, to_waves_;
  std::vector<std::size_t> position_;
};

/// Returns the density ρ(G) of each spin, electrons/Bohr³, [spin][G]. With XcDensity::kWithCore
/// each spin gets an equal share of the core charge.
std::vector<std::vector<Cplx>> density_of(XcDensity of, const EspressoSave& save,
                                          const std::vector<Pseudopotential>& pseudo,
                                          const Shells& shells) {
  PlaneWaveField density = read_espresso_density(save);
  std::vector<Cplx> core(density.header.g.size());
  for (std::size_t s = 0; s < pseudo.size(); ++s)
    if (of == XcDensity::kWithCore && !pseudo[s].core.empty())
      add_species(save, static_cast<int>(s), shells, core_form_factors(pseudo[s], shells.lengths),
                  core);
  const double share = 1.0 / static_cast<double>(density.values.size());
  for (auto& spin : density.values)
    for (std::size_t i = 0; i < spin.size(); ++i)
      spin[i] = spin[i] / save.crystal().volume_bohr3 + share * core[i];
  return density.values;
}

/// Returns the Cartesian gradient of the density of each spin, Bohr⁻⁴, [spin][axis][point].
std::vector<std::array<std::vector<double>, 3>> gradients(
    const std::vector<std::vector<Cplx>>& density, const std::vector<Vec3>& g_per_bohr,
    GridTransform& grid) {
  std::vector<std::array<std::vector<double>, 3>> all(density.size());
  for (std::size_t spin = 0; spin < density.size(); ++spin)
    for (std::size_t axis = 0; axis < 3; ++axis)
      all[spin][axis] = grid.points([&](std::size_t i) {
        return Cplx{0.0, g_per_bohr[i][axis]} * density[spin][i];
      });
  return all;
}

std::vector<Vec3> cartesian_waves(const MeanFieldHeader& header) {
  const Mat3& b = header.crystal.bvec;
  std::vector<Vec3> all;
  for (const IVec3& g : header.g) {
    const Vec3 v = to_real(g);
    all.push_back(header.crystal.blat_per_bohr * (v[0] * b[0] + (v[1] * b[1] + v[2] * b[2])));
  }
  return all;
}

/// Returns ∇ρ_s·∇ρ_t of the pairs of spins ↑↑, ↑↓ and ↓↓ at every point,
/// Bohr⁻⁸, [point][1 or 3].
std::vector<double> gradient_products(
    const std::vector<std::array<std::vector<double>, 3>>& gradient, std::size_t n) {
  const std::size_t spins = gradient.size(), products = 2 * spins - 1;
  std::vector<double> all(n * products);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double up = gradient[0][axis][i], down = gradient[spins - 1][axis][i];
      all[i * products] += up * up;
      if (spins == 1) continue;
      all[i * products + 1] += up * down;
      all[i * products + 2] += down * down;
    }
  return all;
}

/// Adds −∇·(2 e_ss ∇ρ_s + e_st ∇ρ_t) to V_xc of the spin s, where t is the other spin, e
/// the energy density and e_st = ∂e/∂(∇ρ_s·∇ρ_t) (docs/theory/gw.md 1.5).
/// @param by_gradient  e_st at every point, [point][1 or 3]
/// @param potential    V_xc of the spin, Ry, [G]
void add_divergence(const std::vector<std::array<std::vector<double>, 3>>& gradient,
                    const std::vector<double>& by_gradient, std::size_t spin,
                    const std::vector<Vec3>& g_per_bohr, GridTransform& grid,
                    std::vector<Cplx>& potential) {
  const std::size_t spins = gradient.size(), products = 2 * spins - 1, other = spins - 1 - spin;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto field = grid.waves([&](std::size_t i) {
      double value =
          2.0 * by_gradient[i * products + (spin == 0 ? 0 : 2)] * gradient[spin][axis][i];
      if (spins == 2) value += by_gradient[i * products + 1] * gradient[other][axis][i];
      return value;
    });
    for (std::size_t i = 0; i < potential.size(); ++i)
      potential[i] -= Cplx{0.0, g_per_bohr[i][axis]} * field[i];
  }
}

std::vector<std::vector<Cplx>> potential_of(XcFunctional functional, const MeanFieldHeader& header,
                                            const std::vector<std::vector<Cplx>>& density) {
  GridTransform grid(header);
  const std::size_t n = grid.size(), spins = density.size(), products = 2 * spins - 1;
  std::vector<double> at_points(n * spins), by_density(n * spins), squares, by_gradient;
  for (std::size_t spin = 0; spin < spins; ++spin) {
    const auto values = grid.points([&](std::size_t i) { return density[spin][i]; });
    for (std::size_t i = 0; i < n; ++i) at_points[i * spins + spin] = values[i];
  }
  const std::vector<Vec3> g_per_bohr = cartesian_waves(header);
  std::vector<std::array<std::vector<double>, 3>> gradient;
  if (uses_gradient(functional)) {
    gradient = gradients(density, g_per_bohr, grid);
    squares = gradient_products(gradient, n);
    by_gradient.resize(n * products);
  }
  evaluate_functional(functional, {.n_spins = static_cast<int>(spins),
                                   .density = at_points,
                                   .gradient = squares,
                                   .by_density = by_density,
                                   .by_gradient = by_gradient});
  std::vector<std::vector<Cplx>> potential;
  for (std::size_t spin = 0; spin < spins; ++spin) {
    potential.push_back(grid.waves([&](std::size_t i) { return by_density[i * spins + spin]; }));
    if (uses_gradient(functional))
      add_divergence(gradient, by_gradient, spin, g_per_bohr, grid, potential.back());
  }
  return potential;
}

std::vector<Pseudopotential> pseudopotentials_of(const EspressoSave& save) {
  std::vector<Pseudopotential> all;
  for (const std::string& name : save.pseudo_file) all.push_back(read_upf(save.folder / name));
  return all;
}

PlaneWaveField exchange_correlation_of(XcDensity of, const EspressoSave& save,
                                       const std::vector<Pseudopotential>& pseudo,
                                       const Shells& shells) {
  PlaneWaveField field{.header = save.bands.header, .values = {}};
  field.header.title = "VXC-Complex";
  field.values = potential_of(save.functional, field.header, density_of(of, save, pseudo, shells));
  return field;
}

}  // namespace

PlaneWaveField exchange_correlation_of_save(const EspressoSave& save, XcDensity of) {
  return exchange_correlation_of(of, save, pseudopotentials_of(save), shells_of(save.bands.header));
}

PlaneWaveField local_potential_of_save(const EspressoSave& save) {
  constexpr double kHartree_ry = 8.0 * kPi;  // 4π e² with e² = 2
  const std::vector<Pseudopotential> pseudo = pseudopotentials_of(save);
  const Shells shells = shells_of(save.bands.header);
  PlaneWaveField field = exchange_correlation_of(XcDensity::kWithCore, save, pseudo, shells);
  std::vector<Cplx> local(field.header.g.size());
  for (std::size_t s = 0; s < pseudo.size(); ++s)
    add_species(save, static_cast<int>(s), shells, local_form_factors(pseudo[s], shells.lengths),
                local);
  const PlaneWaveField density = read_espresso_density(save);
  for (std::size_t i = 0; i < local.size(); ++i) {
    const double length = shells.lengths[shells.of_g[i]];
    if (length < 1e-8) continue;
    for (const auto& spin : density.values)
      local[i] += kHartree_ry / (length * length) * spin[i] / save.crystal().volume_bohr3;
  }
  for (auto& spin : field.values)
    for (std::size_t i = 0; i < local.size(); ++i) spin[i] += local[i];
  return field;
}

}  // namespace quasi::gw
