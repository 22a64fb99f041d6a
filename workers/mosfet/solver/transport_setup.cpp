#include "workers/mosfet/solver/transport_setup.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/mosfet/physics/kane_band.hpp"

namespace quasi::mosfet {
namespace {

KaneBand band_of(const Deck& deck, const ValleyPair& valley) {
  return {valley.mx_m0, valley.my_m0, deck.material.alpha_per_ev};
}

// Golden-rule prefactors c_μ Z, divided by ħ² so that the Jacobian s stays a mass.
ScatteringProcess make_process(const Deck& deck, const PhononProcess& phonon) {
  const auto& m = deck.material;
  const double kt = deck.kt_ev();
  const double density_ev_fs2_nm5 = m.density_kg_m3 * 1e-15 / units::kElementaryCharge_c;
  ScatteringProcess process{.kind = phonon.kind, .energy_ev = phonon.energy_ev};
  const double hbar2 = kHbar_ev_fs * kHbar_ev_fs;
  if (phonon.kind == ProcessKind::kElastic) {
    const double sound_nm_fs = m.sound_m_s * 1e-6;
    process.coupling = 0.5 * phonon.coupling_ev_per_nm * phonon.coupling_ev_per_nm * kt /
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

void make_angles(TransportProblem* problem) {
  const int n = problem->nphi, quarter = n / 4;
  const bool half = problem->range == AngleRange::kHalf;
  problem->angles = half ? n / 2 + 1 : n;
  problem->dphi = 2.0 * units::kPi / n;
  // One quadrant is computed, the others are its images: zeros exact, symmetries bitwise.
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
  p.scheme = deck.scattering.processes.empty() ? ScatteringScheme::kNone : deck.scattering.scheme;
  p.tol_v = deck.run.tol_v;
  p.cfl = deck.run.cfl;
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
  const Equilibrium none{.potential_v = std::vector<double>(static_cast<std::size_t>(structure.nz), 0.0)};
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

PointBoundary make_point_boundary(const Deck& deck, const TransportProblem& problem,
                                  const BiasPoint& bias, const Equilibrium& source,
                                  const Equilibrium& drain) {
  const Structure& s = problem.structure;
  PointBoundary boundary;
  boundary.fixed_v = potential_boundary(deck, s, bias, source, drain).value_v;
  const double correction = maxwell_correction(problem);
  const Structure column = column_structure(s, 0);
  const auto inflow = [&](const Equilibrium& contact) {
    std::vector<double> values;
    for (int v = 0; v < s.n_valleys(); ++v)
      for (int p = 0; p < s.subbands; ++p)
        for (int l = 0; l < problem.nw; ++l) {
          const double w = problem.grid().w(l);
          // At the drain ε and E_F are both lower by V_DS.
          values.push_back(correction * kStates_per_ev2_fs2 * band_jacobian(band_of(deck, s.valleys[v]), w) *
                           std::exp(-(contact.energy(column, v, p, 0) + w) / problem.kt_ev));
        }
    return values;
  };
  boundary.inflow_source = inflow(source);
  boundary.inflow_drain = inflow(drain);
  boundary.pdf_scale = *std::max_element(boundary.inflow_source.begin(), boundary.inflow_source.end());
  for (double& value : boundary.inflow_source) value /= boundary.pdf_scale;
  for (double& value : boundary.inflow_drain) value /= boundary.pdf_scale;
  return boundary;
}

PointState make_start(const Deck& deck, const TransportProblem& problem, const BiasPoint& bias,
                      const PointBoundary& boundary, const Equilibrium& equilibrium) {
  const Structure& s = problem.structure;
  PointState state;
  state.potential_v = equilibrium.potential_v;
  state.energy_ev = equilibrium.subbands.energy_ev;
  state.psi = equilibrium.subbands.psi;
  state.pdf.resize(static_cast<std::size_t>(problem.pdf_size()));
  const double factor = maxwell_correction(problem) * kStates_per_ev2_fs2 / boundary.pdf_scale;
  const std::vector<double> fermi_ev = quasi_fermi_ev(deck, s, bias.vds_v);
#pragma omp parallel for schedule(static)
  for (int cell = 0; cell < problem.n_states() * s.nx; ++cell) {
    const int i = cell % s.nx, a = cell / s.nx, v = a / s.subbands, p = a % s.subbands;
    const double gap = fermi_ev[i] - equilibrium.energy(s, v, p, i);
    for (int l = 0; l < problem.nw; ++l) {
      const double w = problem.grid().w(l);
      const double value = factor * band_jacobian(band_of(deck, s.valleys[v]), w) *
                           std::exp((gap - w) / problem.kt_ev);
      for (int m = 0; m < problem.angles; ++m)
        state.pdf[(static_cast<std::size_t>(cell) * problem.nw + l) * problem.angles + m] = value;
    }
  }
  return state;
}

}  // namespace quasi::mosfet
