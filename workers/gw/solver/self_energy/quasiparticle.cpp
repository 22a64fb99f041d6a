#include "workers/gw/solver/self_energy/quasiparticle.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "workers/backend/error.hpp"

namespace quasi::gw {

std::vector<Quasiparticle> quasiparticles(const MeanField& field,
                                          const std::vector<SelfEnergyAtK>& sigma,
                                          const std::vector<std::vector<double>>& vxc_ev,
                                          const SigmaOptions& options, const DerivativeRule& rule,
                                          bool remainder) {
  std::vector<Quasiparticle> list;
  for (std::size_t i = 0; i < sigma.size(); ++i) {
    const SelfEnergyAtK& at = sigma[i];
    const int first = options.band_min - 1;
    for (const auto& [begin, end] :
         multiplets(field.waves, at.spin, at.k_index, first, options.band_max)) {
      const auto average = [&](const auto& value) {
        double sum = 0.0;
        for (int n = begin; n < end; ++n) sum += value(static_cast<std::size_t>(n - first));
        return sum / (end - begin) * kRydberg_ev;
      };
      Quasiparticle qp;
      qp.k = field.waves.k[static_cast<std::size_t>(at.k_index)];
      qp.k_index = at.k_index;
      qp.spin = at.spin + 1;
      qp.x_ev = average([&](std::size_t l) { return at.x_ry[l]; });
      qp.sx_ev = average([&](std::size_t l) { return at.sx_ry[0][l].real(); });
      qp.ch_bare_ev = average([&](std::size_t l) { return at.ch_ry[0][l].real(); });
      qp.ch_ev = qp.ch_bare_ev;
      if (remainder)
        qp.ch_ev += 0.5 * average([&](std::size_t l) {
                      return (at.ch_exact_ry[l] - at.ch_static_ry[l]).real();
                    });
      qp.sigma_ev = qp.x_ev + qp.sx_ev + qp.ch_ev;
      std::vector<double> dynamic;  // SX + CH at the energies of the rule
      for (std::size_t e = 0; e < rule.offsets_ry().size() && e < at.sx_ry.size(); ++e)
        dynamic.push_back(
            average([&](std::size_t l) { return (at.sx_ry[e][l] + at.ch_ry[e][l]).real(); }));
      const double step_ev = rule.step_ry * kRydberg_ev;
      double slope = 0.0;
      if (options.method != SigmaMethod::kCohsex) {
        if (rule.kind == Derivative::kAnalytic)
          slope = average([&](std::size_t l) { return at.slope[l].real(); }) / kRydberg_ev;
        if (rule.kind == Derivative::kCentral) slope = (dynamic[2] - dynamic[1]) / (2.0 * step_ev);
        if (rule.kind == Derivative::kForward) slope = (dynamic[1] - dynamic[0]) / step_ev;
      }
      qp.z = 1.0 / (1.0 - slope);
      if (!std::isfinite(qp.sigma_ev) || !std::isfinite(qp.z))
        throw NotConverged("the self-energy of band " + std::to_string(begin + 1) + " at k-point " +
                           std::to_string(at.k_index + 1) + " is not finite");
      std::optional<double> vxc;
      if (!vxc_ev.empty()) {
        double sum = 0.0;
        for (int n = begin; n < end; ++n) sum += vxc_ev[i][static_cast<std::size_t>(n - first)];
        vxc = sum / (end - begin);
      }
      for (int n = begin; n < end; ++n) {
        qp.band = n + 1;
        qp.mean_field_ev = field.reference_energy(at.spin, at.k_index, n) * kRydberg_ev;
        const double evaluated_ev = field.waves.energy(at.spin, at.k_index, n) * kRydberg_ev;
        if (vxc) {
          qp.vxc_ev = vxc;
          qp.qp0_ev = qp.mean_field_ev - *vxc + qp.sigma_ev;
          qp.qp1_ev = evaluated_ev + qp.z * (*qp.qp0_ev - evaluated_ev);
        }
        list.push_back(qp);
      }
    }
  }
  return list;
}

namespace {

/// The states of a list at one k and spin.
struct StatesAtK {
  Vec3 k{};
  std::size_t n_occupied = 0;
  std::vector<double> mean_field_ev, quasiparticle_ev;
  double highest_occupied_ev = -1e300, lowest_empty_ev = 1e300;  ///< by the mean field's bands
};

/// Highest occupied and lowest empty energy.
struct BandEdges {
  std::optional<double> valence_ev, conduction_ev;

  void extend(const BandEdges& other) {
    if (other.valence_ev) valence_ev = std::max(valence_ev.value_or(-1e300), *other.valence_ev);
    if (other.conduction_ev)
      conduction_ev = std::min(conduction_ev.value_or(1e300), *other.conduction_ev);
  }
  std::optional<double> gap_ev() const {
    if (!valence_ev || !conduction_ev) return std::nullopt;
    return *conduction_ev - *valence_ev;
  }
};

BandEdges edges_of(std::vector<double> energy_ev, std::size_t n_occupied) {
  std::sort(energy_ev.begin(), energy_ev.end());
  BandEdges edges;
  if (n_occupied > 0 && n_occupied <= energy_ev.size())
    edges.valence_ev = energy_ev[n_occupied - 1];
  if (n_occupied < energy_ev.size()) edges.conduction_ev = energy_ev[n_occupied];
  return edges;
}

}  // namespace

Gaps gaps(const MeanField& field, const std::vector<Quasiparticle>& list) {
  std::map<std::pair<int, int>, StatesAtK> states;
  std::set<int> listed;
  for (const Quasiparticle& qp : list) {
    StatesAtK& at = states[{qp.k_index, qp.spin}];
    listed.insert(qp.k_index);
    at.k = qp.k;
    const bool occupied =
        qp.band <= field.n_occupied_of_spin[static_cast<std::size_t>(qp.spin - 1)];
    at.n_occupied += occupied ? 1 : 0;
    at.mean_field_ev.push_back(qp.mean_field_ev);
    if (!qp.qp1_ev) continue;
    at.quasiparticle_ev.push_back(*qp.qp1_ev);
    if (occupied)
      at.highest_occupied_ev = std::max(at.highest_occupied_ev, *qp.qp1_ev);
    else
      at.lowest_empty_ev = std::min(at.lowest_empty_ev, *qp.qp1_ev);
  }
  Gaps result{.listed_k = static_cast<int>(listed.size()), .all_k = field.waves.n_k()};
  BandEdges mean_field, quasiparticle;
  std::vector<BandEdges> of_spin(field.n_occupied_of_spin.size());
  for (const auto& [key, at] : states) {
    const BandEdges edges_mf = edges_of(at.mean_field_ev, at.n_occupied);
    BandEdges edges;
    if (at.quasiparticle_ev.size() == at.mean_field_ev.size())
      edges = edges_of(at.quasiparticle_ev, at.n_occupied);
    mean_field.extend(edges_mf);
    quasiparticle.extend(edges);
    of_spin[static_cast<std::size_t>(key.second - 1)].extend(edges);
    if (edges_mf.gap_ev())
      result.direct.push_back({.k = at.k,
                               .spin = key.second,
                               .mean_field_ev = *edges_mf.gap_ev(),
                               .quasiparticle_ev = edges.gap_ev(),
                               .inverted = at.highest_occupied_ev > at.lowest_empty_ev});
  }
  result.fundamental_mean_field_ev = mean_field.gap_ev();
  result.fundamental_ev = quasiparticle.gap_ev();
  for (const BandEdges& edges : of_spin) result.fundamental_of_spin_ev.push_back(edges.gap_ev());
  return result;
}

}  // namespace quasi::gw
