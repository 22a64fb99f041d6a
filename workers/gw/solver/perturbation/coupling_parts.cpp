#include "workers/gw/solver/perturbation/coupling_parts.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/perturbation/spinors/spin_orbit_displacement.hpp"

namespace quasi::gw {
namespace {

/// Makes ⟨n'|∂V|n⟩ of local potentials between the states of one k-point on the device. The
/// spin–orbit part of spinors is a short sum, which the host adds.
class LocalParts final : public CouplingParts {
 public:
  LocalParts(const std::vector<Perturbation>& perturbations, const Vec3& k,
             const WavesAtPoint& states, GwKernels& kernels)
      : n_states_(states.waves.coefficients.extent[0]) {
    std::map<IVec3, std::size_t> differences;
    for (const Perturbation& perturbation : perturbations)
      for (const auto& element : perturbation.elements)
        differences.emplace(element.first, differences.size());
    const std::vector<IVec3>& g = states.waves.g;
    const GIndex index(g);
    const std::size_t n_pw = g.size(),
                      row = static_cast<std::size_t>(states.waves.coefficients.extent[1]);
    std::vector<std::int32_t> source(differences.size() * row);
    for (const auto& [difference, d] : differences)
      for (std::size_t i = 0; i < row; ++i) {
        const std::int32_t found = index.find(g[i % n_pw] - difference);
        source[d * row + i] = found < 0 ? found : found + static_cast<std::int32_t>(i - i % n_pw);
      }
    std::vector<Cplx> values(perturbations.size() * differences.size());
    for (std::size_t p = 0; p < perturbations.size(); ++p)
      for (const auto& [difference, value] : perturbations[p].elements)
        values[p * differences.size() + differences.at(difference)] += value;
    const auto n_d = std::ssize(differences);
    loaded_ = kernels.hamiltonian().load_potentials(
        {states.waves.coefficients, view<const std::int32_t>(source, n_d, std::ssize(source) / n_d),
         view<const Cplx>(values, std::ssize(perturbations), n_d)});
    const SpinorsAtPoint spinors{k, g, states.waves.coefficients};
    for (const Perturbation& perturbation : perturbations) {
      if (perturbation.spin_orbit == nullptr) continue;
      spin_orbit_.resize(perturbations.size());
      spin_orbit_[static_cast<std::size_t>(&perturbation - perturbations.data())] =
          perturbation.spin_orbit->elements(spinors, spinors);
    }
  }

  void of_kets(BandRange kets, CouplingBlock& block) const override {
    loaded_->couple(kets, block);
    if (spin_orbit_.empty()) return;
    const std::int64_t n_p = std::ssize(spin_orbit_), n = n_states_ * kets.size();
    std::vector<Cplx> elements(static_cast<std::size_t>(n_p * n));
    block.read(view<Cplx>(elements, n_p, n_states_, kets.size()));
    for (std::int64_t p = 0; p < n_p; ++p)
      if (const auto& part = spin_orbit_[static_cast<std::size_t>(p)])
        part->add(kets, elements.data() + p * n);
    block.load(view<const Cplx>(elements, n_p, n_states_, kets.size()));
  }
  // V is Hermitian: V*_n'n = V_nn'.
  void of_bras(BandRange bras, CouplingBlock& block) const override { of_kets(bras, block); }

 private:
  std::int64_t n_states_;
  std::unique_ptr<const LoadedLocalPotentials> loaded_;
  /// Spin–orbit part of each perturbation. The list is empty if no perturbation has one.
  std::vector<std::optional<SeparableElements>> spin_orbit_;
};

/// Elements of any potentials, [n_bra][n_ket] of each.
class WholeElements final : public CouplingParts {
 public:
  WholeElements(const std::vector<Perturbation>& perturbations, const Vec3& k,
                const WavesAtPoint& bra, const IVec3& umklapp, const WavesAtPoint& ket)
      : n_bra_(bra.waves.coefficients.extent[0]), n_ket_(ket.waves.coefficients.extent[0]) {
    for (const Perturbation& perturbation : perturbations)
      elements_.push_back(state_coupling(perturbation, k, bra, umklapp, ket));
  }
  void of_kets(BandRange kets, CouplingBlock& block) const override {
    std::vector<Cplx> part;
    for (const std::vector<Cplx>& v : elements_)
      for (std::int64_t bra = 0; bra < n_bra_; ++bra)
        for (std::int64_t n = kets.begin; n < kets.end; ++n)
          part.push_back(v[static_cast<std::size_t>(bra * n_ket_ + n)]);
    block.load(view<const Cplx>(part, std::ssize(elements_), n_bra_, kets.size()));
  }
  void of_bras(BandRange bras, CouplingBlock& block) const override {
    std::vector<Cplx> part;
    for (const std::vector<Cplx>& v : elements_)
      for (std::int64_t ket = 0; ket < n_ket_; ++ket)
        for (std::int64_t bra = bras.begin; bra < bras.end; ++bra)
          part.push_back(std::conj(v[static_cast<std::size_t>(bra * n_ket_ + ket)]));
    block.load(view<const Cplx>(part, std::ssize(elements_), n_ket_, bras.size()));
  }

 private:
  std::int64_t n_bra_, n_ket_;
  std::vector<std::vector<Cplx>> elements_;
};

}  // namespace

std::uint64_t digest_of(const PotentialElements& elements) {
  ProblemDigest digest;
  for (const auto& [wave, value] : elements) {
    digest.add(wave.data(), sizeof wave);
    digest.add(&value, sizeof value);
  }
  return digest.value();
}

Perturbation local_perturbation(const std::string& name, const Vec3& q,
                                const PotentialElements& elements) {
  Perturbation perturbation{.name = name, .p = q, .potential = {}};
  // A potential has elements that depend on G alone only if it has the period of the lattice.
  if (q == Vec3{}) perturbation.elements = elements;
  perturbation.digest = digest_of(elements);
  std::vector<IVec3> g;
  std::vector<Cplx> values;
  for (const auto& [wave, value] : elements) {
    g.push_back(wave);
    values.push_back(value);
  }
  perturbation.potential = [index = GIndex(g), values = std::move(values)](
                               const Vec3& /*k*/, const std::vector<IVec3>& bra,
                               const std::vector<IVec3>& ket) {
    std::vector<Cplx> matrix(bra.size() * ket.size());
    for (std::size_t i = 0; i < bra.size(); ++i)
      for (std::size_t j = 0; j < ket.size(); ++j)
        if (const std::int32_t at = index.find(bra[i] - ket[j]); at >= 0)
          matrix[i * ket.size() + j] = values[static_cast<std::size_t>(at)];
    return matrix;
  };
  return perturbation;
}

bool are_local(const std::vector<Perturbation>& perturbations) {
  return std::all_of(perturbations.begin(), perturbations.end(),
                     [](const Perturbation& p) { return p.p == Vec3{} && !p.elements.empty(); });
}

std::unique_ptr<const CouplingParts> coupling_parts(const std::vector<Perturbation>& perturbations,
                                                    const Vec3& k, const WavesAtPoint& bra,
                                                    const IVec3& umklapp, const WavesAtPoint& ket,
                                                    GwKernels& kernels) {
  if (are_local(perturbations)) return std::make_unique<LocalParts>(perturbations, k, ket, kernels);
  return std::make_unique<WholeElements>(perturbations, k, bra, umklapp, ket);
}

}  // namespace quasi::gw
