#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "tests/gw/support/reference_files.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

// Silicon with a displaced atom, and W as the reference tables of first orders have it.
namespace quasi::gw::test {

inline constexpr double kStep_bohr = 0.01;
inline constexpr double kEpsilonCutoff_ry = 6.0;
// ρ(G) of a forbidden reflection is 0 but for the self-consistent cycle, whose error leaves Ω²
// below 1e-9 Ry². Such elements have no pole. The smallest others are above 1e-4 Ry².
inline constexpr double kForbidden_ry2 = 1e-8;
inline constexpr int kStates = 283;
inline constexpr int kOccupied = 4;
/// The states of silicon at rest, and ∂H of a displaced atom from VSC and VKB of both
/// displacements.
struct DisplacedSiliconFiles {
  ReferenceCase rest{"gwpt/eq"}, plus{"gwpt/p"}, minus{"gwpt/m"};
  std::unique_ptr<GwKernels> kernels = make_gw_kernels(find_device("cpu"));
  Wavefunctions waves = read_wavefunctions(rest.file("WFN"));
  PlaneWaveField density = read_field(rest.file("RHO"), "RHO");

  DisplacedSiliconFiles() {
    // The states of the tables are those of H itself: triplets of the files are split by 1e-8 eV,
    // which chooses their members.
    waves.n_bands = kStates;
    waves.waves[0].coefficients[0] = states_of(hamiltonian(rest), waves.energy_ry);
  }
  const std::vector<IVec3>& g() const { return waves.waves[0].g; }
  const std::vector<Cplx>& states() const { return waves.waves[0].coefficients[0]; }

  std::vector<Cplx> hamiltonian(ReferenceCase& files) const {
    return dense_hamiltonian(waves, 0, 0, read_field(files.file("VSC"), "VSC"),
                             read_projectors(files.file("VKB")));
  }
  /// H + h ∂H between the plane waves, for the states of finite displacements.
  std::vector<Cplx> states_of(const std::vector<Cplx>& h, std::vector<double>& energy_ry) const {
    std::vector<Cplx> vectors(kStates * kStates);
    energy_ry.resize(kStates);
    kernels->dense().eigen_hermitian(view<const Cplx>(h, kStates, kStates),
                                     view<double>(energy_ry, kStates),
                                     view<Cplx>(vectors, kStates, kStates));
    return vectors;
  }
  /// V_n'n between the states at rest.
  std::vector<Cplx> coupling() {
    const std::vector<Cplx> up = hamiltonian(plus), down = hamiltonian(minus);
    std::vector<Cplx> dh(up.size()), applied(up.size()), conjugate(up.size());
    for (std::size_t i = 0; i < up.size(); ++i) {
      dh[i] = (up[i] - down[i]) / (2.0 * kStep_bohr);
      conjugate[i] = std::conj(states()[i]);
    }
    std::vector<Cplx> v(up.size());
    constexpr std::int64_t n = kStates;
    zgemm({.transpose_b = CblasTrans, .m = n, .n = n, .k = n}, {dh.data(), n}, {states().data(), n},
          {applied.data(), n});
    zgemm({.transpose_b = CblasNoTrans, .m = n, .n = n, .k = n}, {conjugate.data(), n},
          {applied.data(), n}, {v.data(), n});
    return v;
  }

  /// M_ln(G) between states at rest and the given inner states, [n_left][kStates][n_g].
  std::vector<Cplx> products(int first, int count, const std::vector<Cplx>& inner,
                             const GSphere& sphere) {
    auto& pairs = kernels->pair_products();
    const IVec3 extent = component_extent(g());
    const FftBox box = product_box(extent, extent, component_extent(sphere.g));
    std::vector<std::int32_t> at_waves, at_sphere;
    for (const IVec3& x : g()) at_waves.push_back(box_position(x, box));
    for (const IVec3& x : sphere.g) at_sphere.push_back(box_position(x, box));
    const auto left = pairs.load_bands(box, {states().data() + first * kStates, {count, kStates}},
                                       view<const std::int32_t>(at_waves, at_waves.size()));
    const auto right = pairs.load_bands(box, view<const Cplx>(inner, kStates, kStates),
                                        view<const std::int32_t>(at_waves, at_waves.size()));
    const auto kept =
        pairs.load_sphere(box, view<const std::int32_t>(at_sphere, at_sphere.size()), {});
    auto block = pairs.make_block();
    pairs.fill({*left, {0, count}}, {*right, {0, kStates}}, *kept, *block);
    std::vector<Cplx> values(static_cast<std::size_t>(count * kStates) * sphere.g.size());
    block->read(view<Cplx>(values, count, kStates, sphere.size()));
    return values;
  }
};

/// Holds W as the tables have it: χ(0) at Γ without v(G = 0), wings 0, ε⁻¹_00 = 1/12, v(0) =
/// 24π/q_s² with q_s = (6π²/Ω)^⅓, poles of Hybertsen and Louie without invalid modes.
struct TabulatedPoles {
  GSphere sphere;
  std::vector<double> coulomb;
  std::vector<Cplx> inverse;  ///< ε⁻¹ between the plane waves of the sphere
  std::vector<Cplx> strength;
  std::vector<double> pole_ry;

  explicit TabulatedPoles(DisplacedSiliconFiles& files) {
    const Crystal& crystal = files.waves.header.crystal;
    sphere = make_g_sphere(crystal.bdot, {}, kEpsilonCutoff_ry);
    const double q_s = std::cbrt(6.0 * kPi * kPi / crystal.volume_bohr3);
    for (const double kinetic_ry : sphere.kinetic_ry)
      coulomb.push_back(kinetic_ry > 1e-12 ? 8.0 * kPi / kinetic_ry : 24.0 * kPi / (q_s * q_s));
    inverse = inverse_dielectric(files);
    const GIndex index(files.density.header.g);
    const auto rho = [&](const IVec3& g) {
      const std::int32_t at = index.find(g);
      return at < 0 ? Cplx{} : files.density.values[0][static_cast<std::size_t>(at)];
    };
    const double plasma2 = 16.0 * kPi * rho({}).real() / crystal.volume_bohr3;
    const std::size_t n = sphere.g.size();
    strength.assign(n * n, Cplx{});
    pole_ry.assign(n * n, kStaticPole_ry);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const Cplx part = (i == j ? 1.0 : 0.0) - inverse[i * n + j];
        const bool head = i == 0 && j == 0;
        if ((i == 0 || j == 0) && !head) continue;
        const double along =
            head ? 1.0
                 : metric_dot(crystal.bdot, to_real(sphere.g[i]), to_real(sphere.g[j])) /
                       sphere.kinetic_ry[i];
        const Cplx omega2 = plasma2 * rho(sphere.g[i] - sphere.g[j]) / rho({}) * along;
        const double square = (omega2 / part).real();
        if (std::abs(part) < 1e-12 || std::abs(omega2) < kForbidden_ry2 || square <= 0.0) continue;
        pole_ry[i * n + j] = std::sqrt(square);
        strength[i * n + j] = 0.5 * part * pole_ry[i * n + j] * coulomb[j];
      }
  }
  PlasmonPoleView model() const {
    const std::int64_t n = sphere.size();
    return {{strength.data(), {n, n}}, {pole_ry.data(), {n, n}}, false};
  }

 private:
  std::vector<Cplx> inverse_dielectric(DisplacedSiliconFiles& files) const {
    const std::size_t n = sphere.g.size();
    const std::vector<Cplx> m = files.products(0, kOccupied, files.states(), sphere);
    std::vector<Cplx> epsilon(n * n);
    for (std::size_t i = 0; i < n; ++i) epsilon[i * n + i] = 1.0;
    for (int v = 0; v < kOccupied; ++v)
      for (int c = kOccupied; c < kStates; ++c) {
        const Cplx* const pair = m.data() + static_cast<std::size_t>(v * kStates + c) * n;
        const double factor = 8.0 / files.waves.header.crystal.volume_bohr3 /
                              (files.waves.energy(0, 0, v) - files.waves.energy(0, 0, c));
        for (std::size_t i = 1; i < n; ++i)
          for (std::size_t j = 1; j < n; ++j)
            epsilon[i * n + j] -= coulomb[i] * factor * 0.5 * std::conj(pair[i]) * pair[j];
      }
    std::vector<Cplx> result = inverted(epsilon, n);
    for (std::size_t i = 1; i < n; ++i) result[i * n] = result[i] = 0.0;
    result[0] = 1.0 / 12.0;
    return result;
  }
  /// Gauss and Jordan's inverse; ε of a semiconductor needs no exchange of rows.
  static std::vector<Cplx> inverted(std::vector<Cplx> a, std::size_t n) {
    std::vector<Cplx> b(n * n);
    for (std::size_t i = 0; i < n; ++i) b[i * n + i] = 1.0;
    for (std::size_t k = 0; k < n; ++k) {
      const Cplx pivot = 1.0 / a[k * n + k];
      for (std::size_t j = 0; j < n; ++j) a[k * n + j] *= pivot, b[k * n + j] *= pivot;
      for (std::size_t i = 0; i < n; ++i) {
        const Cplx factor = a[i * n + k];
        if (i == k || factor == 0.0) continue;
        for (std::size_t j = 0; j < n; ++j)
          a[i * n + j] -= factor * a[k * n + j], b[i * n + j] -= factor * b[k * n + j];
      }
    }
    return b;
  }
};

}  // namespace quasi::gw::test
