#include "workers/gw/solver/calculation/problem_digest.hpp"

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/gw/solver/mean_field/displaced/inner_states.hpp"

namespace quasi::gw {

std::uint64_t digest_of(const MeanField& field, const Plan& plan, const CoulombOptions& coulomb,
                        const Wavefunctions* outer) {
  ProblemDigest d;
  for (const double value : {1.0 * static_cast<int>(coulomb.truncation), coulomb.sphere_radius_bohr,
                             1.0 * static_cast<int>(coulomb.wing_rule),
                             1.0 * static_cast<int>(coulomb.zone_sum), 1.0 * coulomb.subsampling})
    d.add(value);
  d.add(coulomb.average_file.data(), coulomb.average_file.size());
  const Wavefunctions* const inner = field.inner != nullptr ? &field.inner->waves : nullptr;
  for (const Wavefunctions* w : {&field.waves, outer, inner}) {
    if (w == nullptr) continue;
    for (const Vec3& k : w->k) d.add(k.data(), sizeof k);
    d.add(w->energy_ry);
    for (const KPointWaves& at : w->waves) {
      d.add(at.g.data(), at.g.size() * sizeof(IVec3));
      // The states follow from H, which determines the energies. A sample of coefficients
      // distinguishes gauges.
      for (const auto& c : at.coefficients) {
        const std::size_t step = 101 * (1 + c.size() / 1000000);
        for (std::size_t i = 0; i < c.size(); i += step) d.add(&c[i], sizeof c[i]);
      }
    }
  }
  for (const auto& rho : field.density.values) d.add(rho);
  d.add(field.q0.data(), sizeof field.q0);
  d.add(field.by_velocity ? 3.0 : 0.0);  // number of directions in pieces of q → 0
  const EpsilonOptions& e = plan.epsilon;
  for (const double value : {e.epsilon_cutoff_ry, 1.0 * e.bands, 1.0 * e.n_real,
                             1.0 * static_cast<double>(e.memory_budget_bytes)})
    d.add(value);
  for (const double value : {e.subspace.tolerance, 1.0 * e.subspace.vectors,
                             e.subspace.complement ? 1.0 : 0.0, e.subspace.complement_ry})
    d.add(value);
  if (e.column_slices > 0) d.add(1.0 * e.column_slices);
  d.add(e.frequencies_ry);
  const SigmaOptions& s = plan.sigma;
  for (const double value :
       {1.0 * static_cast<int>(s.method), 1.0 * s.bands, s.bare_cutoff_ry, s.screened_cutoff_ry,
        1.0 * s.band_min, 1.0 * s.band_max, 1.0 * static_cast<int>(s.invalid),
        s.rules.half_width_ry, s.rules.max_ratio, s.rules.screened_exchange_cut,
        s.exact_static_ch ? 1.0 : 0.0, s.reduce_q ? 1.0 : 0.0, s.godby_needs_ry,
        s.slope ? 1.0 : 0.0, 1.0 * static_cast<int>(s.contour.rule), s.subspace.tolerance,
        1.0 * s.subspace.vectors, s.closed_sum_x_ry.value_or(0.0)})
    d.add(value);
  d.add(s.kpoints);
  d.add(s.offsets_ry);
  d.add(s.contour.imaginary_ry);
  d.add(s.contour.real_ry);
  d.add(s.contour.continuation_ry);
  return d.value();
}

}  // namespace quasi::gw
