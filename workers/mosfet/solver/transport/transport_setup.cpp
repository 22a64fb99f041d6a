#include "workers/mosfet/solver/transport/transport_setup.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workers/backend/error.hpp"
#include "workers/mosfet/physics/kane_band.hpp"
#include "workers/mosfet/physics/statistics.hpp"
#include "workers/mosfet/solver/transport/elastic_rates.hpp"

namespace quasi::mosfet {
namespace {

KaneBand band_of(const DeviceModel& model, const ValleyPair& valley) {
  return {valley.mx_m0, valley.my_m0, model.material.alpha_per_ev};
}

// Golden-rule prefactors c_μ Z, divided by ħ² so that the Jacobian s remains a mass.
ScatteringProcess make_process(const DeviceModel& model, const PhononProcess& phonon) {
  const auto& m = model.material;
  const double kt = model.kt_ev();
  const double density_ev_fs2_nm5 = m.density_kg_m3 * 1e-15 / units::kElementaryCharge_c;
  ScatteringProcess process{.kind = phonon.kind, .energy_ev = phonon.energy_ev};
  const double hbar2 = kHbar_ev_fs * kHbar_ev_fs;
  if (phonon.kind == ProcessKind::kElastic) {
    const double sound_nm_fs = m.sound_m_s * 1e-6;
    process.coupling =
        0.5 * phonon.coupling_ev_per_nm * phonon.coupling_ev_per_nm * kt /
        (2.0 * units::kPi * kHbar_ev_fs * density_ev_fs2_nm5 * sound_nm_fs * sound_nm_fs) / hbar2;
    return process;
  }
  const double omega_fs = phonon.energy_ev / kHbar_ev_fs;
  const double final_valleys = phonon.kind == ProcessKind::kF ? 2.0 : 1.0;
  process.coupling = final_valleys * phonon.coupling_ev_per_nm * phonon.coupling_ev_per_nm /
                     (4.0 * units::kPi * density_ev_fs2_nm5 * omega_fs) / hbar2;
  process.occupation = 1.0 / std::expm1(phonon.energy_ev / kt);
  return process;
}

// Returns the energies of the w grid.
std::vector<double> energies_of(const TransportProblem& problem) {
  std::vector<double> w_ev;
  for (int l = 0; l < problem.nw; ++l) w_ev.push_back(problem.grid().w(l));
  return w_ev;
}

// Returns the rate of momentum relaxation by impurities [n_valleys][nx][nw].
std::vector<double> impurity_rates(const TransportProblem& problem, const Impurities& impurities) {
  std::vector<double> rates;
  const std::vector<double> energies_ev = energies_of(problem);
  for (int valley = 0; valley < problem.structure.n_valleys(); ++valley)
    for (int i = 0; i < problem.structure.nx; ++i)
      for (const double w_ev : energies_ev) rates.push_back(impurities.rate_fs(valley, i, w_ev));
  return rates;
}

// Returns 2ζ/ω_p of the most heavily doped column: ∂²n/∂t² = −ω_p²(n + τ_d ∂n/∂t) has ζ times the
// critical damping.
double plasma_lead_fs(const DeviceModel& model, const Structure& s, double damping) {
  double lightness = 0.0;
  for (const ValleyPair& valley : s.valleys)
    lightness += 1.0 / (valley.mx_m0 * kElectronMass_ev_fs2_nm2 * s.n_valleys());
  const double donors = *std::max_element(s.doping_nm3.begin(), s.doping_nm3.end());
  const double omega2_fs2 = kChargeOverEpsilon0_v_nm / model.material.eps_si * donors * lightness;
  return omega2_fs2 > 0.0 ? 2.0 * damping / std::sqrt(omega2_fs2) : 0.0;
}

void make_angles(TransportProblem* problem) {
  const int n = problem->nphi, quarter = n / 4;
  const bool half = problem->range == AngleRange::kHalf;
  problem->angles = half ? n / 2 + 1 : n;
  problem->dphi = 2.0 * units::kPi / n;
  // One quadrant is computed, and the others are its images, so that zeros are exact and symmetries
  // hold bitwise.
  std::vector<double> quadrant_sin(static_cast<std::size_t>(quarter) + 1);
  for (int k = 0; k <= quarter; ++k) quadrant_sin[k] = std::sin(k * problem->dphi);
  quadrant_sin[0] = 0.0;
  quadrant_sin[quarter] = 1.0;
  for (int m = 0; m < problem->angles; ++m) {
    const int image = m <= n / 2 ? m : n - m;  // φ → −φ
    const bool forward = image <= quarter;
    const int k = forward ? image : n / 2 - image;
    problem->sin_phi.push_back(m <= n / 2 ? quadrant_sin[k] : -quadrant_sin[k]);
    problem->cos_phi.push_back(forward ? quadrant_sin[quarter - k] : -quadrant_sin[quarter - k]);
    problem->mirror.push_back(half ? n / 2 - m : (m + n / 2) % n);
    const bool end = half && (m == 0 || m == n / 2);
    problem->weight.push_back(half ? (end ? 1.0 : 2.0) * problem->dphi : problem->dphi);
  }
}

}  // namespace

TransportProblem make_transport_problem(const Deck& deck, const Structure& structure) {
  const auto& scattering = deck.scattering;
  const bool rough = scattering.roughness.height_nm > 0.0;
  const bool is_beam = deck.run.scheme == StreamingScheme::kBeam;  // has ElasticTables instead
  TransportProblem p;
  p.structure = structure;
  p.nw = deck.mesh.nw;
  p.nphi = deck.mesh.nphi;
  p.range = deck.mesh.range;
  p.phi_flux = deck.mesh.phi_flux;
  p.dw_ev = deck.mesh.wmax_ev / deck.mesh.nw;
  p.alpha_per_ev = deck.material.alpha_per_ev;
  p.kt_ev = deck.kt_ev();
  p.weno_epsilon = deck.run.weno_epsilon;
  p.scheme = scattering.processes.empty() && !rough && !scattering.impurities
                 ? ScatteringScheme::kNone
                 : scattering.scheme;
  p.pauli = deck.pauli;
  p.tol_v = deck.run.tol_v;
  p.cfl = deck.run.cfl;
  p.neutral_inflow = deck.neutral_inflow;
  p.lead_fs = plasma_lead_fs(deck, structure, deck.run.plasma_damping);
  make_angles(&p);
  for (const ValleyPair& valley : structure.valleys) {
    const KaneBand band = band_of(deck, valley);
    p.root_mass.push_back(band_jacobian(band, 0.0));
    for (int l = 0; l < p.nw; ++l) {
      p.speed_nm_fs.push_back(band_speed(band, p.grid().w(l)));
      p.turning_nm_ev_fs.push_back(band_turning(band, p.grid().w(l)));
    }
  }
  for (const PhononProcess& phonon : deck.scattering.processes)
    p.processes.push_back(make_process(deck, phonon));
  if (rough) {
    // λ = |F|² s(w') Ŝ/ħ³ = 2π c s(w') |F|² Ŝ. Each ordered pair of states has half of c.
    p.processes.push_back(
        {.kind = ProcessKind::kRoughness,
         .coupling = 0.5 / (2.0 * units::kPi * kHbar_ev_fs * kHbar_ev_fs * kHbar_ev_fs)});
    for (const ValleyPair& valley : structure.valleys) {
      if (is_beam) break;
      const std::vector<double> spectrum =
          roughness_spectrum(scattering.roughness, valley, p.alpha_per_ev, energies_of(p));
      p.roughness_spectrum.insert(p.roughness_spectrum.end(), spectrum.begin(), spectrum.end());
    }
  }
  if (scattering.impurities && !is_beam)
    p.elastic_rate_fs = impurity_rates(p, make_impurities(deck, structure));
  const Equilibrium none{.potential_v =
                             std::vector<double>(static_cast<std::size_t>(structure.nz), 0.0)};
  p.fixed = potential_boundary(deck, structure, {}, none, none).fixed;
  return p;
}

double maxwell_correction(const TransportProblem& problem) {
  const double kt = problem.kt_ev, alpha = problem.alpha_per_ev;
  double sum = 0.0;
  for (int l = 0; l < problem.nw; ++l) {
    const double w = problem.grid().w(l);
    sum += (1.0 + 2.0 * alpha * w) * std::exp(-w / kt);
  }
  return kt * (1.0 + 2.0 * alpha * kt) / (problem.dw_ev * sum);
}

double contact_shift_ev(const DeviceModel& model, const TransportProblem& problem,
                        const Equilibrium& contact) {
  const double kt = problem.kt_ev;
  if (model.statistics == StatisticsKind::kMaxwell)
    return kt * std::log(maxwell_correction(problem));
  const Structure& s = problem.structure;
  const Structure column = column_structure(s, 0);
  double target = 0.0;
  for (int v = 0; v < s.n_valleys(); ++v)
    for (int p = 0; p < s.subbands; ++p)
      target += sheet_density(model, s.valleys[v], -contact.energy(column, v, p, 0)).density_nm2;
  // The sum grows with the shift. Newton's iteration from zero is safe, because the sum is convex
  // to second order.
  double shift = 0.0;
  for (int step = 0; step < 50; ++step) {
    double sum = 0.0, slope = 0.0;
    for (int v = 0; v < s.n_valleys(); ++v)
      for (int p = 0; p < s.subbands; ++p)
        for (int l = 0; l < problem.nw; ++l) {
          const double w = problem.grid().w(l);
          const double f = fermi_function((shift - contact.energy(column, v, p, 0) - w) / kt);
          const double states = 2.0 * units::kPi * problem.dw_ev * kStates_per_ev2_fs2 *
                                band_jacobian(band_of(model, s.valleys[v]), w);
          sum += states * f;
          slope += states * f * (1.0 - f) / kt;
        }
    const double change = (target - sum) / slope;
    shift += change;
    if (std::fabs(change) < 1e-15) return shift;
  }
  throw NotConverged(
      "the w grid cannot hold the contact's density; refine mesh.nw or raise mesh.wmax_ev");
}

double occupation(const DeviceModel& model, double gap_ev) {
  return model.statistics == StatisticsKind::kFermi ? fermi_function(gap_ev / model.kt_ev())
                                                    : std::exp(gap_ev / model.kt_ev());
}

PointBoundary make_point_boundary(const DeviceModel& model, const TransportProblem& problem,
                                  const BiasPoint& bias, const Equilibrium& source,
                                  const Equilibrium& drain) {
  const Structure& s = problem.structure;
  PointBoundary boundary;
  boundary.fixed_v = potential_boundary(model, s, bias, source, drain).value_v;
  const Structure column = column_structure(s, 0);
  const auto inflow = [&](const Equilibrium& contact) {
    const double shift = contact_shift_ev(model, problem, contact);
    std::vector<double> values;
    for (int v = 0; v < s.n_valleys(); ++v)
      for (int p = 0; p < s.subbands; ++p)
        for (int l = 0; l < problem.nw; ++l) {
          const double w = problem.grid().w(l);
          // At the drain both ε and E_F are lower by V_DS.
          values.push_back(kStates_per_ev2_fs2 * band_jacobian(band_of(model, s.valleys[v]), w) *
                           occupation(model, shift - contact.energy(column, v, p, 0) - w));
        }
    return values;
  };
  boundary.inflow_source = inflow(source);
  boundary.inflow_drain = inflow(drain);
  boundary.pdf_scale =
      *std::max_element(boundary.inflow_source.begin(), boundary.inflow_source.end());
  for (double& value : boundary.inflow_source) value /= boundary.pdf_scale;
  for (double& value : boundary.inflow_drain) value /= boundary.pdf_scale;
  double entering = 0.0;
  for (int m = 0; m < problem.angles; ++m)
    if (problem.cos_phi[m] > 0.0) entering += problem.weight[m];
  for (const int side : {0, 1}) {
    const std::vector<double>& entered = side == 0 ? boundary.inflow_source : boundary.inflow_drain;
    const Equilibrium& contact = side == 0 ? source : drain;
    boundary.neutral[side].sheet = 0.5 * contact.sheet_total_nm2(column, 0) / boundary.pdf_scale;
    boundary.neutral[side].entering =
        entering * problem.dw_ev * std::accumulate(entered.begin(), entered.end(), 0.0);
  }
  return boundary;
}

PointState make_start(const DeviceModel& model, const TransportProblem& problem,
                      const BiasPoint& bias, const PointBoundary& boundary,
                      const Contacts& contacts, const Equilibrium& equilibrium) {
  const Structure& s = problem.structure;
  PointState state;
  state.potential_v = equilibrium.potential_v;
  state.energy_ev = equilibrium.subbands.energy_ev;
  state.psi = equilibrium.subbands.psi;
  state.pdf.resize(static_cast<std::size_t>(problem.pdf_size()));
  const double source_shift_ev = contact_shift_ev(model, problem, contacts.source),
               drain_shift_ev = contact_shift_ev(model, problem, contacts.drain);
  const double factor = kStates_per_ev2_fs2 / boundary.pdf_scale;
  const std::vector<double> fermi_ev = quasi_fermi_ev(model, s, bias.vds_v);
#pragma omp parallel for schedule(static)
  for (int cell = 0; cell < problem.n_states() * s.nx; ++cell) {
    const int i = cell % s.nx, a = cell / s.nx, v = a / s.subbands, p = a % s.subbands;
    const double share = s.x_nm[i] / s.x_nm.back();
    const double gap = fermi_ev[i] + (1.0 - share) * source_shift_ev + share * drain_shift_ev -
                       equilibrium.energy(s, v, p, i);
    for (int l = 0; l < problem.nw; ++l) {
      const double w = problem.grid().w(l);
      const double value =
          factor * band_jacobian(band_of(model, s.valleys[v]), w) * occupation(model, gap - w);
      for (int m = 0; m < problem.angles; ++m)
        state.pdf[(static_cast<std::size_t>(cell) * problem.nw + l) * problem.angles + m] = value;
    }
  }
  return state;
}

}  // namespace quasi::mosfet
