#include "workers/gw/solver/self_energy/quasiparticle.hpp"

#include <algorithm>
#include <cmath>
#include <map>

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

Gaps gaps(const MeanField& field, const std::vector<Quasiparticle>& list) {
  Gaps result;
  struct Edges {
    const Quasiparticle* valence = nullptr;
    const Quasiparticle* conduction = nullptr;
  };
  std::map<std::pair<int, int>, Edges> edges;
  for (const Quasiparticle& qp : list) {
    Edges& e = edges[{qp.k_index, qp.spin}];
    const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(qp.spin - 1)];
    if (qp.band <= n_v && (e.valence == nullptr || qp.band > e.valence->band)) e.valence = &qp;
    if (qp.band > n_v && (e.conduction == nullptr || qp.band < e.conduction->band))
      e.conduction = &qp;
  }
  std::optional<double> top_mf, bottom_mf, top, bottom;
  const auto raise = [](std::optional<double>& x, double y) { x = x ? std::max(*x, y) : y; };
  const auto lower = [](std::optional<double>& x, double y) { x = x ? std::min(*x, y) : y; };
  for (const auto& [key, e] : edges) {
    if (e.valence != nullptr) raise(top_mf, e.valence->mean_field_ev);
    if (e.conduction != nullptr) lower(bottom_mf, e.conduction->mean_field_ev);
    if (e.valence != nullptr && e.valence->qp1_ev) raise(top, *e.valence->qp1_ev);
    if (e.conduction != nullptr && e.conduction->qp1_ev) lower(bottom, *e.conduction->qp1_ev);
    if (e.valence == nullptr || e.conduction == nullptr) continue;
    GapAtK gap{.k = e.valence->k,
               .spin = key.second,
               .mean_field_ev = e.conduction->mean_field_ev - e.valence->mean_field_ev,
               .quasiparticle_ev = {}};
    if (e.valence->qp1_ev && e.conduction->qp1_ev)
      gap.quasiparticle_ev = *e.conduction->qp1_ev - *e.valence->qp1_ev;
    result.direct.push_back(gap);
  }
  if (top_mf && bottom_mf) result.fundamental_mean_field_ev = *bottom_mf - *top_mf;
  if (top && bottom) result.fundamental_ev = *bottom - *top;
  return result;
}

}  // namespace quasi::gw
