#pragma once

#include <complex>
#include <cstdint>
#include <optional>

#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
#include "workers/thermal/kernels/three_phonon/sampling/sampling_kernels_3ph.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"
#include "workers/thermal/physics/occupation.hpp"

namespace quasi::thermal {

/// The steps of SamplingKernels3 over a back end. See docs/theory/thermal.md 10 for the equations.
/// @tparam OnDevice  Array<T> (of a size or of a host vector; data()), use(device),
///                   for_each(n, body), to_host(array), which waits, and kChunks, the number of
///                   pieces into which the work of a row is cut
template <typename OnDevice>
class SamplingFlow3 : public SamplingKernels3 {
 public:
  explicit SamplingFlow3(const Device& device) : device_(device) {}

  void load(const ThreePhononProblem& problem, const std::vector<double>& temperatures_k) override {
    OnDevice::use(device_);
    const Modes& modes = *problem.modes;
    const std::vector<double> omega = active_frequencies(problem);
    std::vector<double> occupation;
    for (const double temperature : temperatures_k)
      for (const double w : omega)
        occupation.push_back(w < ProcessRules3::kInactive
                                 ? bose_einstein(w, temperature, problem.hbar_over_kb_k_ps)
                                 : 0.0);
    std::vector<int> zone;
    for (const Index3& z : problem.first_zone) zone.insert(zone.end(), z.begin(), z.end());
    held_.emplace(Held{Reals(omega),
                       Reals(modes.spread_rad_ps),
                       Reals(occupation),
                       Reals(mass_scaled_tensors(problem.fc3, problem.mass_amu)),
                       Complexes(plain(modes.eigenvector)),
                       {Complexes(plain(unit_roots(problem.mesh.n[0]))),
                        Complexes(plain(unit_roots(problem.mesh.n[1]))),
                        Complexes(plain(unit_roots(problem.mesh.n[2])))},
                       Places(problem.rows),
                       Indices(zone),
                       Indices(problem.fc3.atom),
                       Indices(problem.fc3.cell),
                       corner_arrays(problem)});
    Held& h = *held_;
    tables_ = {.mesh = problem.mesh,
               .nb = problem.n_branches(),
               .n_temperatures = static_cast<int>(temperatures_k.size()),
               .rules = process_rules(problem, h.omega.data(), h.spread.data()),
               .e = h.e.data(),
               .point = h.point.data(),
               .first_zone = h.zone.data(),
               .occupation = h.occupation.data(),
               .blocks = {problem.fc3.n_blocks(), h.atom.data(), h.cell.data(), h.tensor.data()},
               .phase = {{h.roots[0].data(), h.roots[1].data(), h.roots[2].data()},
                         {problem.mesh.n[0], problem.mesh.n[1], problem.mesh.n[2]}},
               .tetrahedra = {}};
    if (h.corners)
      tables_.tetrahedra = problem.tetrahedra.view(
          h.corners->omega.data(), h.corners->neighbours.data(), h.corners->tied.data(),
          h.corners->corners.data(), problem.n_branches());
  }

  std::vector<double> uniform(std::uint64_t seed, std::int64_t draws, bool elements,
                              std::int64_t first, std::int64_t last) override {
    const auto sums_of = [&]<bool kTetrahedra>() {
      return in_chunks((last - first) * kChannels3, UniformLayout{tables_.n_temperatures}.size(),
                       [&](double* sums) {
                         return SampleUniform3<kTetrahedra>{
                             tables_, first, seed, draws, OnDevice::kChunks, elements, sums};
                       });
    };
    return has_tetrahedra() ? sums_of.template operator()<true>()
                            : sums_of.template operator()<false>();
  }

  std::vector<double> thinned(std::uint64_t seed, double draws,
                              const std::vector<double>& weight_sum, std::int64_t first,
                              std::int64_t last) override {
    OnDevice::use(device_);
    Reals weights(weight_sum);
    const auto sums_of = [&]<bool kTetrahedra>() {
      return in_chunks((last - first) * kChannels3, ThinnedLayout{tables_.n_temperatures}.size(),
                       [&](double* sums) {
                         return SampleThinned3<kTetrahedra>{
                             tables_, first, seed, draws, weights.data(), OnDevice::kChunks, sums};
                       });
    };
    return has_tetrahedra() ? sums_of.template operator()<true>()
                            : sums_of.template operator()<false>();
  }

 private:
  using Reals = typename OnDevice::template Array<double>;
  using Complexes = typename OnDevice::template Array<Complex<double>>;
  using Places = typename OnDevice::template Array<std::int32_t>;
  using Indices = typename OnDevice::template Array<int>;
  using Corners = typename OnDevice::template Array<TetrahedronCorners>;
  /// The arrays of TetrahedraView3.
  struct CornerArrays {
    Reals omega;
    Places neighbours, tied;
    Corners corners;
  };
  struct Held {
    Reals omega, spread, occupation, tensor;
    Complexes e, roots[3];
    Places point;
    Indices zone, atom, cell;
    std::optional<CornerArrays> corners;
  };

  static std::optional<CornerArrays> corner_arrays(const ThreePhononProblem& problem) {
    if (problem.broadening != Broadening::kTetrahedra) return std::nullopt;
    return CornerArrays{Reals(problem.modes->omega_rad_ps),
                        Places(problem.tetrahedra.neighbours(problem.mesh)),
                        Places(tied_branches(*problem.modes)), Corners(problem.tetrahedra.corners)};
  }
  bool has_tetrahedra() const { return tables_.rules.broadening == Broadening::kTetrahedra; }

  static std::vector<Complex<double>> plain(const std::vector<std::complex<double>>& values) {
    std::vector<Complex<double>> result;
    for (const auto& value : values) result.push_back({value.real(), value.imag()});
    return result;
  }

  template <typename MakeBody>
  std::vector<double> in_chunks(std::int64_t n, int size, const MakeBody& make_body) {
    OnDevice::use(device_);
    Reals sums(static_cast<std::size_t>(n * OnDevice::kChunks * size));
    Reals total(static_cast<std::size_t>(n * size));
    OnDevice::for_each(n * OnDevice::kChunks, make_body(sums.data()));
    OnDevice::for_each(n, AddChunks{sums.data(), OnDevice::kChunks, size, total.data()});
    return OnDevice::to_host(total);
  }

  Device device_;
  std::optional<Held> held_;
  SampleTables3 tables_{};
};

}  // namespace quasi::thermal
