#include "workers/mosfet/solver/beam/small_signal/field_transpose.hpp"

#include <algorithm>

#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kValleys = 2.0;

}  // namespace

FieldTranspose::AllStates FieldTranspose::all_states_of(const FieldResponse& response) {
  const Structure& s = response.structure();
  const auto n = static_cast<std::size_t>(s.interior()),
             families = static_cast<std::size_t>(s.n_families());
  AllStates states;
  states.energy_ev.resize(static_cast<std::size_t>(s.nx) * families * n);
  states.wave.resize(states.energy_ev.size() * n);
  for (std::size_t at = 0; at < states.energy_ev.size() / n; ++at)
    all_states(s, static_cast<int>(at % families),
               &response.potential_v()[at / families * static_cast<std::size_t>(s.nz)],
               &states.energy_ev[at * n], &states.wave[at * n * n]);
  return states;
}

ColumnMatrix FieldTranspose::matrix_at_fixed_sheet(const FieldResponse& response,
                                                   const AllStates& states) {
  const Structure& s = response.structure();
  const auto n = static_cast<std::size_t>(s.interior()),
             families = static_cast<std::size_t>(s.n_families()),
             nx = static_cast<std::size_t>(s.nx), nz = static_cast<std::size_t>(s.nz);
  const std::vector<double> sheet =
      beam_sheet_density(response.transport().geometry(), response.occupations());
  std::vector<double> responses(nx * nz * nz);
  for (std::size_t i = 0; i < nx; ++i) {
    ColumnStates column{std::vector<const double*>(families), std::vector<const double*>(families)};
    for (std::size_t f = 0; f < families; ++f) {
      column.energies[f] = &states.energy_ev[(i * families + f) * n];
      column.vectors[f] = &states.wave[(i * families + f) * n * n];
    }
    std::vector<double> here;
    for (std::size_t at = i; at < sheet.size(); at += nx) here.push_back(sheet[at]);
    column_response(s, column, here.data(), nullptr, false, &responses[i * nz * nz]);
  }
  return {s, response.boundary(), responses};
}

FieldTranspose::FieldTranspose(const FieldResponse& response)
    : response_(response),
      states_(all_states_of(response)),
      roughness_(response),
      fixed_sheet_(matrix_at_fixed_sheet(response, states_)) {}

double FieldTranspose::weight(int state, int k) const {
  const BeamGeometry& geometry = response_.transport().geometry();
  return kValleys * geometry.density_factor[static_cast<std::size_t>(state)] * geometry.grid.dx_nm *
         geometry.grid.boltzmann(k);
}

std::vector<double> FieldTranspose::weighted(const std::vector<double>& psi) const {
  const BeamGeometry& geometry = response_.transport().geometry();
  const BeamGrid& grid = geometry.grid;
  const std::size_t branch = psi.size() / 2, nj = static_cast<std::size_t>(grid.n_kappa);
  std::vector<double> out(psi);
  for (std::size_t row = 0; row < branch / nj; ++row) {
    const double w =
        weight(static_cast<int>(row / grid.n_h / grid.nx), static_cast<int>(row % grid.n_h));
    for (std::size_t at = row * nj; at < (row + 1) * nj; ++at) {
      out[at] *= w;
      out[branch + at] *= w;
    }
  }
  return out;
}

// Adds the transpose of the shifts of levels and of their faces. A level follows V as −∫|ψ|²
// δV dz.
std::vector<double> FieldTranspose::by_potential(const LevelShift& slopes) const {
  const Structure& s = response_.structure();
  const auto nx = static_cast<std::size_t>(s.nx), nz = static_cast<std::size_t>(s.nz);
  std::vector<double> out(nx * nz, 0.0);
  for (std::size_t state = 0; state < response_.level_of().size(); ++state)
    for (std::size_t i = 0; i < nx; ++i) {
      double slope = slopes.node[state * nx + i];
      for (std::size_t n = 0; n <= nx; ++n)
        slope += slopes.face[state * (nx + 1) + n] * response_.face_slopes().at(state, n, i);
      const auto level = static_cast<std::size_t>(response_.level_of()[state]);
      const double* psi = &response_.subbands().psi[(level * nx + i) * nz];
      for (std::size_t j = 0; j < nz; ++j)
        if (response_.boundary().fixed[i * nz + j] == 0)
          out[i * nz + j] -= slope * psi[j] * psi[j] * s.dz_nm;
    }
  return out;
}

// Adds the transpose of the changes of overlaps. A wave function follows V in first order, by all
// other states of its column.
std::vector<double> FieldTranspose::by_overlap(const std::vector<double>& slopes) const {
  const Structure& s = response_.structure();
  const auto nx = static_cast<std::size_t>(s.nx), nz = static_cast<std::size_t>(s.nz),
             n = static_cast<std::size_t>(s.interior()), np = static_cast<std::size_t>(s.subbands),
             families = static_cast<std::size_t>(s.n_families()), levels = families * np;
  std::vector<double> out(nx * nz, 0.0);
  for (std::size_t i = 0; i < nx; ++i)
    for (std::size_t level = 0; level < levels; ++level) {
      const double* waves = &states_.wave[(i * families + level / np) * n * n];
      const double* energy = &states_.energy_ev[(i * families + level / np) * n];
      const double* own = waves + level % np * n;
      std::vector<double> by_wave(n, 0.0);
      for (std::size_t other = 0; other < levels; ++other) {
        const double* partner = &states_.wave[((i * families + other / np) * n + other % np) * n];
        const double slope =
            slopes[(level * levels + other) * nx + i] + slopes[(other * levels + level) * nx + i];
        for (std::size_t j = 0; j < n; ++j)
          by_wave[j] += 2.0 * s.dz_nm * slope * own[j] * partner[j] * partner[j];
      }
      for (std::size_t q = 0; q < n; ++q) {
        if (q == level % np) continue;
        const double* wave = waves + q * n;
        double mixed = 0.0;
        for (std::size_t j = 0; j < n; ++j) mixed += by_wave[j] * wave[j];
        mixed /= energy[level % np] - energy[q];
        for (std::size_t j = 0; j < n; ++j)
          if (response_.boundary().fixed[i * nz + j + 1] == 0)
            out[i * nz + j + 1] -= mixed * own[j] * wave[j] * s.dz_nm;
      }
    }
  return out;
}

// The equations of a line are those of BeamOperator in first order.
void FieldTranspose::add_streaming(const std::vector<double>& weighted,
                                   std::vector<double>* area) const {
  const BeamGeometry& geometry = response_.transport().geometry();
  const BeamInflow& inflow = response_.transport().inflow();
  const BeamGrid& grid = geometry.grid;
  const std::vector<double>& g = response_.occupations();
  const std::size_t branch = g.size() / 2;
  for (int state = 0; state < geometry.n_states; ++state) {
    const double scale = geometry.speed_factor[static_cast<std::size_t>(state)] / grid.dx_nm;
    for (std::int64_t line = 0; line < geometry.lines(); ++line) {
      const auto k = static_cast<std::size_t>(line / grid.n_kappa);
      for (int i = 0; i < grid.nx; ++i) {
        const auto at = static_cast<std::size_t>(geometry.node(state, i) + line),
                   stride = static_cast<std::size_t>(geometry.lines()),
                   before = static_cast<std::size_t>(geometry.face(state, i) + line),
                   after = before + stride;
        const double plus = g[at], minus = g[branch + at];
        const double from_left = i > 0 ? g[at - stride] : inflow.source[k];
        const double from_right = i + 1 < grid.nx ? g[branch + at + stride] : inflow.drain[k];
        const double a = weighted[at], b = weighted[branch + at];
        (*area)[after] -= scale * (a * plus - b * from_right);
        (*area)[before] -= scale * (b * minus - a * from_left);
        const double turned =
            geometry.area[before] > geometry.area[after] ? (a - b) * plus : (a - b) * minus;
        (*area)[before] -= scale * turned;
        (*area)[after] += scale * turned;
      }
    }
  }
}

// The rate V (gain − λ g) of a cell depends on its own volume and, through the states D and
// electrons D ḡ of the cells of H, on the volumes at the other ends of links.
void FieldTranspose::add_scattering(const std::vector<double>& psi,
                                    std::vector<double>* volume) const {
  const BeamScattering& scattering = response_.scattering();
  const BeamGrid& grid = response_.transport().geometry().grid;
  const std::vector<double>& g = response_.occupations();
  const std::size_t branch = g.size() / 2, nj = static_cast<std::size_t>(grid.n_kappa);
  const std::vector<double> held = scattering.mean(g), weights = scattering.mean(psi);
  std::vector<double> both(g), uneven(g);
  for (std::size_t at = 0; at < both.size(); ++at) {
    both[at] *= psi[at];
    uneven[at] = (held[at % branch / nj] - g[at]) * psi[at];
  }
  const std::vector<double> gain = scattering.gain(held), source = scattering.source(),
                            by_electrons =
                                scattering.transposed_gain(weights, scattering.mean(uneven));
  std::vector<double> by_states = scattering.link_gain(scattering.mean(both));
  for (std::size_t row = 0; row < scattering.relaxation_fs().size(); ++row)
    by_states[row] += scattering.relaxation_fs()[row] * held[row] * weights[row];
  for (std::size_t at = 0; at < branch; ++at) {
    const std::size_t row = at / nj;
    const double w =
        weight(static_cast<int>(row / grid.n_h / grid.nx), static_cast<int>(row % grid.n_h));
    const double fed = gain[row] + (source.empty() ? 0.0 : source[row]);
    for (const std::size_t b : {std::size_t{0}, branch})
      (*volume)[at] += w * (psi[b + at] * (fed - scattering.loss()[row] * g[b + at]) +
                            g[b + at] * by_electrons[row] - by_states[row]);
  }
}

void FieldTranspose::add_relaxation(const std::vector<double>& psi,
                                    std::vector<double>* level) const {
  const BeamGeometry& geometry = response_.transport().geometry();
  const BeamGrid& grid = geometry.grid;
  const std::vector<double>&g = response_.occupations(), &slope = response_.relaxation_slope();
  const std::vector<double> held = response_.scattering().mean(g);
  const std::size_t branch = g.size() / 2, nj = static_cast<std::size_t>(grid.n_kappa);
  for (std::size_t row = 0; row < slope.size(); ++row) {
    double sum = 0.0;
    for (std::size_t at = row * nj; at < (row + 1) * nj; ++at)
      sum += geometry.volume[at] *
             (psi[at] * (held[row] - g[at]) + psi[branch + at] * (held[row] - g[branch + at]));
    const std::size_t node = row / grid.n_h;
    (*level)[node] += weight(static_cast<int>(node / grid.nx), static_cast<int>(row % grid.n_h)) *
                      slope[row] * sum;
  }
}

std::vector<double> FieldTranspose::of_rate(const std::vector<double>& psi) const {
  const BeamScattering& scattering = response_.scattering();
  const BeamGeometry& geometry = response_.transport().geometry();
  std::vector<double> area(geometry.area.size(), 0.0);
  add_streaming(weighted(psi), &area);
  if (!scattering.scatters()) return by_potential(response_.slopes().level_slopes(area, {}, {}));
  std::vector<double> volume(geometry.volume.size(), 0.0);
  add_scattering(psi, &volume);
  BeamScattering::CouplingSlopes coupling =
      scattering.coupling_slopes(response_.occupations(), psi);
  const double both_valleys = kValleys * geometry.grid.dx_nm;
  for (std::vector<double>* slopes : {&coupling.overlap, &coupling.roughness})
    for (double& slope : *slopes) slope *= both_valleys;
  const RoughnessSlopes::Found rough = roughness_.of(coupling.roughness);
  LevelShift levels = response_.slopes().level_slopes(area, volume, {});
  for (std::size_t at = 0; at < levels.node.size(); ++at) levels.node[at] += rough.level[at];
  add_relaxation(psi, &levels.node);
  std::vector<double> out = by_potential(levels);
  const std::vector<double> waves = by_overlap(coupling.overlap);
  for (std::size_t at = 0; at < out.size(); ++at) out[at] += waves[at] + rough.potential[at];
  return out;
}

std::vector<double> FieldTranspose::of_storage(const std::vector<double>& psi) const {
  const CellSlopes& slopes = response_.slopes();
  const CellSlopes::StorageSlopes found =
      slopes.storage_slopes(response_.occupations(), weighted(psi));
  return by_potential(slopes.level_slopes({}, found.volume, found.count));
}

std::vector<double> FieldTranspose::potential_of_electrons(const std::vector<double>& phi) const {
  const Structure& s = response_.structure();
  const auto nx = static_cast<std::size_t>(s.nx), nz = static_cast<std::size_t>(s.nz);
  std::vector<double> out(response_.level_of().size() * nx, 0.0);
  for (std::size_t at = 0; at < out.size(); ++at) {
    const auto level = static_cast<std::size_t>(response_.level_of()[at / nx]);
    const std::size_t i = at % nx;
    const double* psi = &response_.subbands().psi[(level * nx + i) * nz];
    for (std::size_t j = 0; j < nz; ++j) out[at] += phi[i * nz + j] * psi[j] * psi[j];
    out[at] *= kChargeOverEpsilon0_v_nm * s.column_width_nm(static_cast<int>(i)) * s.dz_nm;
  }
  return out;
}

std::vector<double> FieldTranspose::of_poisson(const std::vector<double>& phi) const {
  const BeamGeometry& geometry = response_.transport().geometry();
  const BeamGrid& grid = geometry.grid;
  const std::vector<double>& g = response_.occupations();
  const std::size_t branch = g.size() / 2, nj = static_cast<std::size_t>(grid.n_kappa),
                    lines = static_cast<std::size_t>(geometry.lines());
  const std::vector<double> electron = potential_of_electrons(phi);
  std::vector<double> volume(branch);
  for (std::size_t at = 0; at < branch; ++at)
    volume[at] =
        weight(static_cast<int>(at / lines / grid.nx), static_cast<int>(at / nj % grid.n_h)) /
        grid.dx_nm * electron[at / lines] * (g[at] + g[branch + at]);
  std::vector<double> out = by_potential(response_.slopes().level_slopes({}, volume, {}));
  const std::vector<double> fixed = fixed_sheet_.multiply(phi);
  for (std::size_t at = 0; at < out.size(); ++at)
    if (response_.boundary().fixed[at] == 0) out[at] += fixed[at];
  return out;
}

std::vector<double> FieldTranspose::of_current(bool source) const {
  const BeamGeometry& geometry = response_.transport().geometry();
  const std::vector<double>& g = response_.occupations();
  const int n = source ? 1 : geometry.grid.nx - 1;
  std::vector<double> area(geometry.area.size(), 0.0);
  for (int state = 0; state < geometry.n_states; ++state)
    for (std::int64_t line = 0; line < geometry.lines(); ++line) {
      const double w = weight(state, static_cast<int>(line / geometry.grid.n_kappa)) *
                       geometry.speed_factor[static_cast<std::size_t>(state)] / geometry.grid.dx_nm;
      area[static_cast<std::size_t>(geometry.face(state, n) + line)] =
          w * (g[static_cast<std::size_t>(geometry.node(state, n - 1) + line)] -
               g[g.size() / 2 + static_cast<std::size_t>(geometry.node(state, n) + line)]);
    }
  return by_potential(response_.slopes().level_slopes(area, {}, {}));
}

}  // namespace quasi::mosfet
