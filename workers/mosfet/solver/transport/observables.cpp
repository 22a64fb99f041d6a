#include "workers/mosfet/solver/transport/observables.hpp"

#include <algorithm>
#include <cmath>

#include "workers/mosfet/physics/fermi_integral.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {

TerminalCharge terminal_charge(const TransportProblem& problem,
                               const std::vector<double>& potential_v) {
  const Structure& s = problem.structure;
  const auto v = [&](int i, int j) { return potential_v[static_cast<std::size_t>(i) * s.nz + j]; };
  TerminalCharge charge;
  // Sums ε_R times the field out of the terminal times the face, divided by e/ε0, over every face
  // between a node of given potential and a free one. The result is charge in e per nm. Positive
  // numbers are positive charge; electrons carry −1.
  const auto fixed = [&](int i, int j) {
    return problem.fixed[static_cast<std::size_t>(i) * s.nz + j] != 0;
  };
  for (int i = 0; i < s.nx; ++i)
    for (int j = 0; j < s.nz; ++j) {
      if (!fixed(i, j)) continue;
      double sum = 0.0;
      const double across = s.face_x(j) / s.dx_nm, width = s.column_width_nm(i) / s.dz_nm;
      if (i > 0 && !fixed(i - 1, j)) sum += across * (v(i, j) - v(i - 1, j));
      if (i < s.nx - 1 && !fixed(i + 1, j)) sum += across * (v(i, j) - v(i + 1, j));
      if (j > 0 && !fixed(i, j - 1))
        sum += s.eps_cell[static_cast<std::size_t>(j - 1)] * width * (v(i, j) - v(i, j - 1));
      if (j < s.nz - 1 && !fixed(i, j + 1))
        sum += s.eps_cell[static_cast<std::size_t>(j)] * width * (v(i, j) - v(i, j + 1));
      double& terminal = i == 0 ? charge.source : i == s.nx - 1 ? charge.drain : charge.gate;
      terminal += sum / kChargeOverEpsilon0_v_nm;
    }
  return charge;
}

double barrier_top_ev(const double* energy_ev, int nx) {
  const auto at = static_cast<int>(std::max_element(energy_ev, energy_ev + nx) - energy_ev);
  if (at == 0 || at == nx - 1) return energy_ev[at];
  const double a = energy_ev[at - 1], b = energy_ev[at], c = energy_ev[at + 1];
  const double bend = a - 2.0 * b + c;
  return bend < 0.0 ? b - 0.125 * (c - a) * (c - a) / bend : b;
}

double ballistic_current(const DeviceModel& model, const TransportProblem& problem,
                         const std::vector<double>& energy_ev, double vds_v) {
  const Structure& s = problem.structure;
  const double kt = problem.kt_ev, alpha = problem.alpha_per_ev;
  double total = 0.0;
  for (int v = 0; v < s.n_valleys(); ++v) {
    // ∫ e^{−E_y/kT} dk_y by the midpoint rule in k_y, which converges faster than any order for
    // this function.
    const double my = s.valleys[v].my_m0;
    const double cutoff_ev = 60.0 * kt;
    const double k_max =
        std::sqrt(cutoff_ev * (1.0 + alpha * cutoff_ev) * my / kHbar2Over2m0_ev_nm2);
    constexpr int kPoints = 4000;
    double integral = 0.0;
    std::vector<double> transverse(kPoints);
    for (int k = 0; k < kPoints; ++k) {
      const double ky = (k + 0.5) / kPoints * k_max;
      const double x = kHbar2Over2m0_ev_nm2 * ky * ky / my;  // ħ²k²/2m
      const double energy = alpha > 0.0 ? 2.0 * x / (1.0 + std::sqrt(1.0 + 4.0 * alpha * x)) : x;
      transverse[k] = energy;
      integral += std::exp(-energy / kt);
    }
    integral *= 2.0 * k_max / kPoints;
    for (int p = 0; p < s.subbands; ++p) {
      const double top =
          barrier_top_ev(
              &energy_ev[(static_cast<std::size_t>(s.family_of[v]) * s.subbands + p) * s.nx],
              s.nx) +
          s.valleys[v].offset_ev;
      const double per_k = 2.0 * (2.0 * kt / (4.0 * units::kPi * units::kPi * kHbar_ev_fs));
      if (model.statistics == StatisticsKind::kMaxwell) {
        total += per_k * integral * (std::exp(-top / kt) - std::exp((-vds_v - top) / kt));
        continue;
      }
      double flow = 0.0;  // Fermi statistics replace e^η by F0(η) under the integral over k_y
      for (const double energy : transverse)
        flow +=
            fermi_integral_0((-top - energy) / kt) - fermi_integral_0((-vds_v - top - energy) / kt);
      total += per_k * flow * 2.0 * k_max / kPoints;
    }
  }
  return total;
}

double barrier_height_ev(const Structure& s, const std::vector<double>& energy_ev, double vds_v) {
  double lowest = INFINITY;
  for (int v = 0; v < s.n_valleys(); ++v)
    lowest = std::min(
        lowest,
        barrier_top_ev(&energy_ev[static_cast<std::size_t>(s.family_of[v]) * s.subbands * s.nx],
                       s.nx) +
            s.valleys[static_cast<std::size_t>(v)].offset_ev);
  return lowest - std::max(0.0, -vds_v);
}

double ballistic_ratio(double current_a_per_m, double ballistic_a_per_m) {
  constexpr double kZeroCurrent_a_m = 1e-3;
  return std::fabs(ballistic_a_per_m) > kZeroCurrent_a_m ? current_a_per_m / ballistic_a_per_m
                                                         : 0.0;
}

void add_per_electron(const std::string& name, const char* units, const std::vector<double>& sum,
                      const std::vector<double>& sheet_nm2, const std::vector<std::int64_t>& shape,
                      PointResult* result) {
  const auto nx = static_cast<std::size_t>(shape.back());
  std::vector<double> each(sum.size()), mean(nx, 0.0), sheet(mean);
  for (std::size_t k = 0; k < sum.size(); ++k) {
    each[k] = sheet_nm2[k] > 0.0 ? sum[k] / sheet_nm2[k] : 0.0;
    mean[k % nx] += sum[k];
    sheet[k % nx] += sheet_nm2[k];
  }
  for (std::size_t i = 0; i < nx; ++i) mean[i] /= sheet[i];
  result->add(name, each, shape, units);
  result->add(name + "_mean", mean, {shape.back()}, units);
}

void add_fields(const OutputSettings& output, const TransportProblem& problem,
                const PointState& state, const Moments& moments, PointResult* result) {
  const Structure& s = problem.structure;
  const std::int64_t nx = s.nx, nz = s.nz, nv = s.n_valleys(), np = s.subbands;
  result->add("x", s.x_nm, {nx}, "nm");
  result->add("z", s.z_nm, {nz}, "nm");
  if (output.has("potential")) result->add("potential", state.potential_v, {nx, nz}, "V");
  if (output.has("density")) {
    std::vector<double> density(static_cast<std::size_t>(nx * nz), 0.0);
    for (std::int64_t a = 0; a < nv * np; ++a)
      for (std::int64_t i = 0; i < nx; ++i) {
        const double rho = 2.0 * moments.sheet_nm2[static_cast<std::size_t>(a * nx + i)];
        const std::int64_t level = s.family_of[static_cast<std::size_t>(a / np)] * np + a % np;
        const double* psi = &state.psi[static_cast<std::size_t>((level * nx + i) * nz)];
        for (std::int64_t j = 0; j < nz; ++j)
          density[static_cast<std::size_t>(i * nz + j)] += rho * psi[j] * psi[j];
      }
    result->add("density", density, {nx, nz}, "nm^-3");
    result->add("sheet_density", moments.sheet_nm2, {nv, np, nx}, "nm^-2");
  }
  if (output.has("subbands")) {
    std::vector<double> energy;
    for (std::int64_t a = 0; a < nv * np; ++a)
      for (std::int64_t i = 0; i < nx; ++i) {
        const auto v = static_cast<std::size_t>(a / np);
        energy.push_back(
            state.energy_ev[static_cast<std::size_t>((s.family_of[v] * np + a % np) * nx + i)] +
            s.valleys[v].offset_ev);
      }
    result->add("subband_energy", energy, {nv, np, nx}, "eV");
  }
  if (output.has("velocity"))
    add_per_electron("velocity", "nm/fs", moments.flux_nm_fs, moments.sheet_nm2, {nv, np, nx},
                     result);
  if (output.has("energy"))
    add_per_electron("energy", "eV", moments.energy_ev_nm2, moments.sheet_nm2, {nv, np, nx},
                     result);
  if (output.has("psi")) result->add("psi", state.psi, {s.n_families(), np, nx, nz}, "nm^-1/2");
  if (output.has("pdf_w")) {
    std::vector<double> w;
    for (int l = 0; l < problem.nw; ++l) w.push_back(problem.grid().w(l));
    result->add("w", w, {problem.nw}, "eV");
    result->add("pdf_w", moments.pdf_w, {nv, np, nx, problem.nw}, "nm^-2 eV^-1");
  }
}

}  // namespace quasi::mosfet
