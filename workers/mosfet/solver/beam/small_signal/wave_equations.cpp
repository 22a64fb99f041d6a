#include "workers/mosfet/solver/beam/small_signal/wave_equations.hpp"

#include <algorithm>

#include "workers/mosfet/kernels/beam/beam_wave.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/beam/small_signal/terminal_field.hpp"

namespace quasi::mosfet {
namespace {

using Values = std::vector<double>;
constexpr double kValleys = 2.0;

void add_streaming(const FieldResponse& response, WaveProblem* p) {
  const BeamOperator& transport = response.transport();
  const BeamGeometry& geometry = transport.geometry();
  p->third = transport.line({}, false, 0, 0, 0).third;
  p->volume = geometry.volume;
  p->area = geometry.area;
  p->full = geometry.full;
  p->g = response.occupations();
  if (response.scattering().scatters()) p->loss = response.scattering().loss();
  for (const double factor : geometry.speed_factor)
    p->speed.push_back(factor / geometry.grid.dx_nm);
}

// Returns V ∂_t g of scattering over V for both branches, in the layout of g. Wells of a
// collisionless line relax as they do in a BeamOperator.
Values scattering_rate(const FieldResponse& response) {
  const BeamOperator& transport = response.transport();
  const BeamGeometry& geometry = transport.geometry();
  const BeamGrid& grid = geometry.grid;
  const BeamScattering& scattering = response.scattering();
  const Values& g = response.occupations();
  const std::size_t branch = g.size() / 2, nj = static_cast<std::size_t>(grid.n_kappa);
  Values rate(g.size(), 0.0);
  if (scattering.scatters()) {
    const Values gain = scattering.gain(scattering.mean(g));
    for (std::size_t at = 0; at < g.size(); ++at) {
      const std::size_t row = at % branch / nj;
      rate[at] = gain[row] - scattering.loss()[row] * g[at];
    }
    return rate;
  }
  for (int state = 0; state < geometry.n_states; ++state)
    for (int line = 0; line < static_cast<int>(geometry.lines()); ++line) {
      const int k = line / grid.n_kappa;
      const BeamWell well = beam_well(transport.line({}, false, state, k, line % grid.n_kappa));
      for (int i = well.first; i < well.last; ++i)
        for (const std::size_t b : {std::size_t{0}, branch}) {
          const std::size_t at = b + static_cast<std::size_t>(geometry.node(state, i) + line);
          rate[at] =
              kBeamWellLoss * (transport.inflow().source[static_cast<std::size_t>(k)] - g[at]);
        }
    }
  return rate;
}

// Adds the derivatives of V ∂_t g by the band edges of each cell.
void add_rate_slopes(const FieldResponse& response, WaveProblem* p) {
  const BeamGeometry& geometry = response.transport().geometry();
  const BeamOperator::AreaSlopes by_area = response.transport().area_slopes(response.occupations());
  const CellSlopes::VolumeSlopes volume = response.slopes().volume_slopes();
  const Values& area = response.slopes().area_slopes();
  const Values rate = scattering_rate(response);
  const auto cells = static_cast<std::size_t>(geometry.cells()),
             lines = static_cast<std::size_t>(geometry.lines());
#pragma omp parallel for schedule(static)
  for (std::size_t column = 0; column < cells / lines; ++column) {
    const auto nx = static_cast<std::size_t>(geometry.grid.nx);
    const std::size_t face = (column + column / nx) * lines;
    for (std::size_t line = 0; line < lines; ++line)
      for (const std::size_t b : {0, 1}) {
        const std::size_t cell = column * lines + line, at = b * cells + cell;
        double* slope = &p->cell_slopes[b * kCellEdges * cells + cell];
        slope[0] = by_area.before[at] * area[face + line] + rate[at] * volume.before[cell];
        slope[cells] = rate[at] * volume.node[cell];
        slope[2 * cells] =
            by_area.behind[at] * area[face + lines + line] + rate[at] * volume.behind[cell];
      }
  }
}

// Adds the derivatives of the storage. It depends on the node and the two faces of a cell alone, so
// that one shift of all nodes, one of all even and one of all odd faces have all of them.
void add_storage_slopes(const FieldResponse& response, WaveProblem* p) {
  const BeamGeometry& geometry = response.transport().geometry();
  const auto states = static_cast<std::size_t>(geometry.n_states),
             nx = static_cast<std::size_t>(geometry.grid.nx),
             cells = static_cast<std::size_t>(geometry.cells()),
             lines = static_cast<std::size_t>(geometry.lines());
  double* to = &p->cell_slopes[2 * kCellEdges * cells];
  const auto stored = [&](double node, const std::array<double, 2>& face) {
    LevelShift shift{Values(states * nx, node), Values(states * (nx + 1))};
    for (std::size_t at = 0; at < shift.face.size(); ++at) shift.face[at] = face[at % (nx + 1) % 2];
    return response.slopes().storage(shift, response.occupations());
  };
  const Values by_node = stored(1.0, {0.0, 0.0});
  const std::array<Values, 2> by_face{stored(0.0, {1.0, 0.0}), stored(0.0, {0.0, 1.0})};
#pragma omp parallel for schedule(static)
  for (std::size_t column = 0; column < cells / lines; ++column) {
    const std::size_t i = column % nx;
    for (std::size_t cell = column * lines; cell < (column + 1) * lines; ++cell)
      for (const std::size_t b : {0, 1}) {
        double* slope = to + b * kCellEdges * cells + cell;
        slope[0] = by_face[i % 2][b * cells + cell];
        slope[cells] = by_node[b * cells + cell];
        slope[2 * cells] = by_face[(i + 1) % 2][b * cells + cell];
      }
  }
}

// Fills the tables of scattering: the number of states D of each row (a state, a node and a cell of
// H), the electrons D ḡ in it, and the derivatives of both by the band edges.
void add_rows(const FieldResponse& response, WaveProblem* p) {
  const BeamGeometry& geometry = response.transport().geometry();
  const BeamGrid& grid = geometry.grid;
  const CellSlopes::VolumeSlopes volume = response.slopes().volume_slopes();
  const Values& g = response.occupations();
  const std::size_t branch = g.size() / 2, nj = static_cast<std::size_t>(grid.n_kappa),
                    rows = branch / nj;
  p->states = response.scattering().states();
  p->electrons.assign(rows, 0.0);
  p->states_slopes.assign(kCellEdges * rows, 0.0);
  p->electrons_slopes = p->states_slopes;
  const std::array<const Values*, kCellEdges> slopes{&volume.before, &volume.node, &volume.behind};
#pragma omp parallel for schedule(static)
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t at = row * nj; at < (row + 1) * nj; ++at) {
      const double both = g[at] + g[branch + at];
      p->electrons[row] += geometry.volume[at] * both;
      for (std::size_t edge = 0; edge < kCellEdges; ++edge) {
        p->states_slopes[edge * rows + row] += 2.0 * (*slopes[edge])[at];
        p->electrons_slopes[edge * rows + row] += (*slopes[edge])[at] * both;
      }
    }
  p->states_factor = geometry.states_factor;
  for (int state = 0; state < geometry.n_states; ++state)
    for (int k = 0; k < grid.n_h; ++k)
      p->density_weight.push_back(geometry.density_factor[static_cast<std::size_t>(state)] *
                                  grid.boltzmann(k));
}

// Adds the processes. They are the same between all states of a pair, and of two pairs.
void add_branches(const FieldResponse& response, const std::vector<ScatteringProcess>& processes,
                  WaveProblem* p) {
  const BeamGrid& grid = response.transport().geometry().grid;
  for (int k = 0; k < grid.n_h; ++k) p->inverse_full.push_back(1.0 / grid.cell(k, 0).full_ev);
  for (const BeamLink& link :
       make_beam_links(grid, p->shape.n_states, p->shape.subbands, processes, response.level_of()))
    if (link.low == 0 && (link.high == 0 || link.high == p->shape.subbands))
      p->branches.push_back({.other_pair = link.high == 0 ? 0 : 1,
                             .shift = link.shift,
                             .strength = link.strength,
                             .rise = link.rise});
}

/// States of one column of x.
struct ColumnWaves {
  std::size_t n = 0;         ///< interior nodes
  Values psi_square, slope;  ///< |ψ|² [levels][n] and ½ ∂|ψ|²/∂V [levels][n][n], 1/(nm V)
};

// Computes ψ_p(j) ∂ψ_p(j)/∂V_k = −Σ_{q≠p} ψ_p ψ_q(j) ψ_p ψ_q(k) Δz/(ε_p − ε_q).
ColumnWaves column_waves(const FieldResponse& response, int i) {
  const Structure& s = response.structure();
  ColumnWaves out{.n = static_cast<std::size_t>(s.interior())};
  const std::size_t n = out.n;
  Values energy(n), waves(n * n), product(n);
  for (int family = 0; family < s.n_families(); ++family) {
    all_states(s, family, &response.potential_v()[static_cast<std::size_t>(i) * s.nz],
               energy.data(), waves.data());
    for (std::size_t level = 0; level < static_cast<std::size_t>(s.subbands); ++level) {
      const double* own = &waves[level * n];
      const std::size_t first = out.slope.size();
      out.slope.resize(first + n * n, 0.0);
      for (std::size_t j = 0; j < n; ++j) out.psi_square.push_back(own[j] * own[j]);
      for (std::size_t q = 0; q < n; ++q) {
        if (q == level) continue;
        for (std::size_t j = 0; j < n; ++j) product[j] = own[j] * waves[q * n + j];
        const double factor = -s.dz_nm / (energy[level] - energy[q]);
        for (std::size_t j = 0; j < n; ++j)
          for (std::size_t k = 0; k < n; ++k)
            out.slope[first + j * n + k] += factor * product[j] * product[k];
      }
    }
  }
  return out;
}

// Adds the derivatives of the overlaps W_ab = Δz Σ |ψ_a|²|ψ_b|² of one column.
void add_overlap_slopes(const ColumnWaves& waves, int i, double dz_nm, WaveProblem* p) {
  const auto levels = static_cast<std::size_t>(p->shape.n_levels),
             nz = static_cast<std::size_t>(p->shape.nz), nx = static_cast<std::size_t>(p->shape.nx),
             n = waves.n;
  for (std::size_t a = 0; a < levels; ++a)
    for (std::size_t b = 0; b < levels; ++b)
      for (std::size_t j = 0; j < n; ++j) {
        const double by_a = 2.0 * dz_nm * waves.psi_square[b * n + j],
                     by_b = 2.0 * dz_nm * waves.psi_square[a * n + j];
        double* slope =
            &p->overlap_slope[((a * levels + b) * nx + static_cast<std::size_t>(i)) * nz + 1];
        for (std::size_t k = 0; k < n; ++k)
          slope[k] +=
              by_a * waves.slope[(a * n + j) * n + k] + by_b * waves.slope[(b * n + j) * n + k];
      }
}

// Adds the levels, overlaps and wave functions of all columns, and their derivatives by V.
void add_levels(const FieldResponse& response, WaveProblem* p) {
  const Structure& s = response.structure();
  const WaveShape& shape = p->shape;
  const auto nx = static_cast<std::size_t>(s.nx), nz = static_cast<std::size_t>(s.nz),
             levels = static_cast<std::size_t>(shape.n_levels);
  p->level_of = response.level_of();
  p->psi_square.assign(levels * nx * nz, 0.0);
  p->level_slope = p->psi_square;
  p->overlap_slope.assign(levels * levels * nx * nz, 0.0);
  p->density_slope.assign(nx * nz * nz, 0.0);
  const Values sheet = beam_sheet_density(response.transport().geometry(), response.occupations());
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < s.nx; ++i) {
    const ColumnWaves waves = column_waves(response, i);
    const auto column = static_cast<std::size_t>(i);
    const std::size_t n = waves.n;
    for (std::size_t level = 0; level < levels; ++level) {
      double electrons = 0.0;
      for (std::size_t state = 0; state < p->level_of.size(); ++state)
        if (p->level_of[state] == static_cast<int>(level))
          electrons += kValleys * sheet[state * nx + column];
      for (std::size_t j = 0; j < n; ++j) {
        const double density = waves.psi_square[level * n + j];
        p->psi_square[(level * nx + column) * nz + j + 1] = density;
        p->level_slope[(level * nx + column) * nz + j + 1] = -density * s.dz_nm;
        for (std::size_t k = 0; k < n; ++k)
          p->density_slope[(column * nz + j + 1) * nz + k + 1] +=
              2.0 * electrons * waves.slope[(level * n + j) * n + k];
      }
    }
    add_overlap_slopes(waves, i, s.dz_nm, p);
  }
  for (std::size_t state = 0; state < p->level_of.size(); ++state)
    for (std::size_t face = 0; face <= nx; ++face)
      for (std::size_t o = 0; o < kFaceNodes; ++o) {
        const std::size_t node = face + o - kFacesAhead;  // wraps below zero
        p->face_slope.push_back(node < nx ? response.face_slopes().at(state, face, node) : 0.0);
      }
}

// Adds the stencil of Poisson's equation and the inverse of the preconditioner.
void add_poisson(const FieldResponse& response, WaveProblem* p) {
  const Structure& s = response.structure();
  const auto nodes = static_cast<std::size_t>(p->shape.nodes());
  p->fixed = response.boundary().fixed;
  for (int i = 0; i < s.nx; ++i) {
    const double width = s.column_width_nm(i);
    p->charge.push_back(kChargeOverEpsilon0_v_nm * width * s.dz_nm);
    for (int j = 0; j < s.nz; ++j) {
      const double across = s.face_x(j) / s.dx_nm;
      p->stencil.push_back(j > 0 ? s.eps_cell[static_cast<std::size_t>(j - 1)] * width / s.dz_nm
                                 : 0.0);
      p->stencil.push_back(j + 1 < s.nz ? s.eps_cell[static_cast<std::size_t>(j)] * width / s.dz_nm
                                        : 0.0);
      p->stencil.push_back(across);
      p->stencil.push_back(across);
    }
  }
  const ColumnMatrix matrix = response.gummel_matrix();
  p->inverse.assign(nodes * nodes, 0.0);
#pragma omp parallel for schedule(static)
  for (std::size_t node = 0; node < nodes; ++node) {
    p->inverse[node * nodes + node] = 1.0;
    matrix.solve(&p->inverse[node * nodes]);
  }
}

// Adds the electrons that enter, the neutrality of contacts and the currents next to them.
void add_contacts(const FieldResponse& response, WaveProblem* p) {
  const BeamGeometry& geometry = response.transport().geometry();
  const BeamGrid& grid = geometry.grid;
  const auto cells = static_cast<std::size_t>(geometry.cells()),
             lines = static_cast<std::size_t>(geometry.lines());
  const Values& g = p->g;
  for (int state = 0; state < geometry.n_states; ++state)
    for (int k = 0; k < grid.n_h; ++k)
      p->current_weight.push_back(
          kValleys * p->density_weight[static_cast<std::size_t>(state * grid.n_h + k)] *
          geometry.speed_factor[static_cast<std::size_t>(state)]);
  for (const int contact : {0, 1}) {
    const bool source = contact == 0;
    const Values drive = response.inflow_drive(source);
    const FieldResponse::WantedElectrons wanted = response.wanted_electrons(source, kContactNodes);
    p->excess_scale[static_cast<std::size_t>(contact)] = grid.shape.kt_ev / wanted.sum_nm2;
    p->excess_drive[static_cast<std::size_t>(contact)] = response.excess_drive(source);
    p->wanted_slope.insert(p->wanted_slope.end(), wanted.slope.begin(), wanted.slope.end());
    const int face = source ? 1 : grid.nx - 1;
    for (int state = 0; state < geometry.n_states; ++state) {
      const auto first = static_cast<std::size_t>(geometry.node(state, source ? 0 : grid.nx - 1)),
                 plus = static_cast<std::size_t>(geometry.node(state, face - 1)),
                 minus = cells + static_cast<std::size_t>(geometry.node(state, face)),
                 area = static_cast<std::size_t>(geometry.face(state, face));
      double slope = 0.0;
      for (std::size_t line = 0; line < lines; ++line) {
        p->entering.push_back(drive[(source ? 0 : cells) + first + line]);
        slope += p->current_weight[static_cast<std::size_t>(state * grid.n_h) +
                                   line / static_cast<std::size_t>(grid.n_kappa)] *
                 response.slopes().area_slopes()[area + line] * (g[plus + line] - g[minus + line]);
      }
      p->current_slope.push_back(slope);
    }
  }
}

// Adds the lifts of the terminals and the weights of the norm, in which kT/e everywhere weighs as
// much as that change of all ln ḡ.
void add_norm(const FieldResponse& response, WaveProblem* p) {
  for (const Terminal terminal : {Terminal::kSource, Terminal::kDrain, Terminal::kGate}) {
    const Values lift = terminal_lift(response.structure(), response.boundary(), terminal);
    p->lift.insert(p->lift.end(), lift.begin(), lift.end());
  }
  const BeamWave wave(response.transport(), response.scattering(), 0.0, response.occupations());
  p->weights = wave.relative_weights();
  const std::size_t size = static_cast<std::size_t>(p->shape.size());
  const double scale = response.transport().geometry().grid.shape.kt_ev *
                       std::sqrt(static_cast<double>(size - p->weights.size()));
  for (double& weight : p->weights) weight *= scale;
  p->weights.resize(size, 1.0);
}

}  // namespace

bool has_wave_tables(const BeamDevice& device) {
  return device.elastic.empty() &&
         (device.model.statistics != StatisticsKind::kFermi || device.problem.processes.empty());
}

WaveProblem make_wave_problem(const FieldResponse& response) {
  const BeamGeometry& geometry = response.transport().geometry();
  const Structure& s = response.structure();
  WaveProblem p{.shape = {.n_states = geometry.n_states,
                          .nx = geometry.grid.nx,
                          .n_h = geometry.grid.n_h,
                          .n_kappa = geometry.grid.n_kappa,
                          .nz = s.nz,
                          .n_levels = s.n_families() * s.subbands,
                          .subbands = s.subbands,
                          .neutral = response.has_neutral_inflow()}};
  p.cell_slopes.resize(static_cast<std::size_t>(kCellSlopes * p.shape.cells()));
  add_streaming(response, &p);
  add_rate_slopes(response, &p);
  add_storage_slopes(response, &p);
  add_rows(response, &p);
  add_branches(response, response.processes(), &p);
  p.overlap = response.overlap();
  add_levels(response, &p);
  add_poisson(response, &p);
  add_contacts(response, &p);
  add_norm(response, &p);
  return p;
}

WaveObservation make_wave_observation(const FieldResponse& response, bool field_responds) {
  const BeamInflow& inflow = response.transport().inflow();
  const BeamGrid& grid = response.transport().geometry().grid;
  WaveObservation out{.charge_slope = {},
                      .inflow = {inflow.source, inflow.drain},
                      .filling = {},
                      .dx_nm = grid.dx_nm,
                      .field_responds = field_responds};
  for (const Terminal terminal : {Terminal::kSource, Terminal::kDrain}) {
    const Values slopes = terminal_charge_slopes(response.structure(), terminal);
    out.charge_slope.insert(out.charge_slope.end(), slopes.begin(), slopes.end());
  }
  for (int k = 0; k < grid.n_h; ++k)
    out.filling.push_back(grid.shape.fermi ? grid.boltzmann(k) : 0.0);
  return out;
}

}  // namespace quasi::mosfet
