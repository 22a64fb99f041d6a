#include "workers/mosfet/solver/beam/field_response.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/electrostatics/largest_magnitude.hpp"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/physics/beam/face_energies.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kStep_v = 1e-4, kStep_ev = 2e-4;
constexpr double kTolerance = 1e-13;
constexpr int kMaxSweeps = 400;
constexpr double kValleys = 2.0;

std::vector<double> difference(const std::vector<double>& high, const std::vector<double>& low,
                               double width) {
  std::vector<double> out(high.size());
  for (std::size_t at = 0; at < out.size(); ++at) out[at] = (high[at] - low[at]) / width;
  return out;
}

// Returns Σ over states and cells of H of the electrons through the faces next to both contacts.
std::array<double, 2> inner_currents(const BeamOperator& transport, const std::vector<double>& g) {
  const BeamGrid& grid = transport.geometry().grid;
  const std::vector<double> currents = transport.face_currents(g);
  const std::size_t faces = static_cast<std::size_t>(grid.nx) + 1;
  std::array<double, 2> sum{};
  for (std::size_t at = 0; at < currents.size(); ++at) {
    const std::size_t n = at / grid.n_h % faces;
    if (n == 1) sum[0] += kValleys * currents[at];
    if (n + 2 == faces) sum[1] += kValleys * currents[at];
  }
  return sum;
}

// Returns Σ 2ϱ of the two contact columns, nm⁻². @param sheet  one valley [n_states][nx]
std::array<double, 2> contact_electrons(const std::vector<double>& sheet, int nx) {
  std::array<double, 2> sum{};
  for (std::size_t first = 0; first < sheet.size(); first += static_cast<std::size_t>(nx)) {
    sum[0] += kValleys * sheet[first];
    sum[1] += kValleys * sheet[first + static_cast<std::size_t>(nx) - 1];
  }
  return sum;
}

std::vector<double> overlap_of(const BeamDevice& device, const Subbands& subbands) {
  const Structure& s = device.structure;
  const std::size_t levels = static_cast<std::size_t>(s.n_families()) * s.subbands;
  std::vector<double> overlap(levels * levels * s.nx);
  overlaps(device.problem, subbands.psi.data(), overlap.data());
  return overlap;
}

}  // namespace

FieldResponse::Frame::Frame(const FieldResponse& owner, const Subbands& subbands,
                            BeamGeometry cells)
    : levels(owner.levels_of(subbands)),
      geometry(std::move(cells)),
      scattering(geometry, levels, owner.device_.problem.processes,
                 overlap_of(owner.device_, subbands), owner.level_of_),
      transport(geometry, scattering, owner.inflow_, BeamOrder::kThird) {}

FieldResponse::FieldResponse(const BeamDevice& device, const BiasPoint& bias,
                             const BeamSteadyState& state)
    : device_(device),
      boundary_(potential_boundary(device.model, device.structure, bias, device.contacts.source,
                                   device.contacts.drain)),
      grid_(state.grid),
      inflow_(
          make_beam_inflow(state.grid, state.grid.shape.kt_ev * std::log(state.inflow_scale[0]),
                           state.grid.shape.kt_ev * std::log(state.inflow_scale[1]) - bias.vds_v)),
      potential_v_(state.field.potential_v),
      subbands_(solve_subbands(device.structure, potential_v_)) {
  const Structure& s = device.structure;
  for (int valley = 0; valley < s.n_valleys(); ++valley)
    for (int subband = 0; subband < s.subbands; ++subband)
      level_of_.push_back(s.family_of[static_cast<std::size_t>(valley)] * s.subbands + subband);
  const BeamLevels levels = levels_of(subbands_);
  if (device.model.neutral_inflow) {
    neutral_.emplace(device.model, s, device.contacts, bias);
    wanted_nm2_ = neutral_->wanted_nm2(grid_, levels);
  }
  base_ = std::make_unique<Frame>(*this, subbands_, make_beam_geometry(grid_, levels));
  const BeamSolution steady =
      solve_beam(base_->transport, base_->scattering,
                 {kTolerance, kMaxSweeps, BeamNorm::kElectrons}, state.mean);
  if (!steady.converged)
    throw NotConverged(name_of(bias) + ": small signal: transport left a residual of " +
                       shown(steady.residual) + " after " + std::to_string(steady.sweeps) +
                       " line solves");
  g_ = steady.g;
  find_slopes();
}

BeamLevels FieldResponse::levels_of(const Subbands& subbands) const {
  const Structure& s = device_.structure;
  BeamLevels levels{.valleys = s.valleys, .subbands = s.subbands, .nx = s.nx, .edge_ev = {}};
  for (int v = 0; v < s.n_valleys(); ++v)
    for (int p = 0; p < s.subbands; ++p) {
      const auto first =
          (static_cast<std::size_t>(s.family_of[static_cast<std::size_t>(v)]) * s.subbands + p) *
          s.nx;
      for (int i = 0; i < s.nx; ++i)
        levels.edge_ev.push_back(subbands.energy_ev[first + i] +
                                 s.valleys[static_cast<std::size_t>(v)].offset_ev);
    }
  return levels;
}

// Computes the slopes of every cell at every face and node by central differences.
void FieldResponse::find_slopes() {
  const BeamGeometry& base = base_->geometry;
  slopes_.area.assign(base.area.size(), 0.0);
  slopes_.face = slopes_.count_face = slopes_.area;
  slopes_.node.assign(base.volume.size(), 0.0);
  slopes_.count_node = slopes_.node;
  const double alpha = grid_.alpha_per_ev;
  BeamShape even = grid_.shape;  // ω = 1
  even.kt_ev = 1e30;
  const auto slope = [alpha](const BeamCell& cell, const BeamShape& shape, double edge) {
    return (beam_volume(cell, shape, alpha, edge + kStep_ev) -
            beam_volume(cell, shape, alpha, edge - kStep_ev)) /
           (2.0 * kStep_ev);
  };
  for (int state = 0; state < base.n_states; ++state) {
    const double* nodes = base_->levels.edge_of(state);
    std::vector<double> faces(static_cast<std::size_t>(grid_.nx) + 1);
    face_energies(nodes, grid_.nx, faces.data());
#pragma omp parallel for schedule(dynamic)
    for (int k = 0; k < grid_.n_h; ++k)
      for (int j = 0; j < grid_.n_kappa; ++j) {
        const BeamCell cell = grid_.cell(k, j);
        const std::int64_t line = static_cast<std::int64_t>(k) * grid_.n_kappa + j;
        for (int i = 0; i <= grid_.nx; ++i) {
          const auto at = static_cast<std::size_t>(base.face(state, i) + line);
          const double edge = faces[static_cast<std::size_t>(i)];
          slopes_.face[at] = slope(cell, grid_.shape, edge);
          slopes_.count_face[at] = slope(cell, even, edge);
          const double area = base.area[at], full = base.full[static_cast<std::size_t>(line)];
          if (area > 0.0 && area != full)
            slopes_.area[at] = (beam_area(cell, grid_.shape, alpha, edge + kStep_ev) -
                                beam_area(cell, grid_.shape, alpha, edge - kStep_ev)) /
                               (2.0 * kStep_ev);
          if (i == grid_.nx) break;
          const auto inside = static_cast<std::size_t>(base.node(state, i) + line);
          slopes_.node[inside] = slope(cell, grid_.shape, nodes[i]);
          slopes_.count_node[inside] = slope(cell, even, nodes[i]);
        }
      }
  }
}

FieldResponse::LevelShift FieldResponse::shift_between(const BeamLevels& low,
                                                       const BeamLevels& high) const {
  LevelShift shift{difference(high.edge_ev, low.edge_ev, 2.0), {}};
  const auto count = static_cast<std::size_t>(grid_.nx) + 1;
  for (int state = 0; state < low.n_states(); ++state) {
    std::vector<double> below(count), above(count);
    face_energies(low.edge_of(state), grid_.nx, below.data());
    face_energies(high.edge_of(state), grid_.nx, above.data());
    const std::vector<double> faces = difference(above, below, 2.0);
    shift.face.insert(shift.face.end(), faces.begin(), faces.end());
  }
  return shift;
}

BeamGeometry FieldResponse::shifted(const LevelShift& shift, double factor) const {
  BeamGeometry out = base_->geometry;
  for (int state = 0; state < out.n_states; ++state) {
    const double* faces = &shift.face[static_cast<std::size_t>(state) * (grid_.nx + 1)];
    for (int i = 0; i <= grid_.nx; ++i)
      for (std::int64_t line = 0; line < out.lines(); ++line) {
        const auto at = static_cast<std::size_t>(out.face(state, i) + line);
        out.area[at] += factor * slopes_.area[at] * faces[i];
        if (i == grid_.nx) continue;
        const auto inside = static_cast<std::size_t>(out.node(state, i) + line),
                   after = static_cast<std::size_t>(out.face(state, i + 1) + line);
        if (out.volume[inside] > 0.0)
          out.volume[inside] += factor *
                                (slopes_.face[at] * faces[i] +
                                 4.0 * slopes_.node[inside] *
                                     shift.node[static_cast<std::size_t>(state) * grid_.nx + i] +
                                 slopes_.face[after] * faces[i + 1]) /
                                6.0;
      }
  }
  return out;
}

// Returns δV g plus the sweep: rising levels lift electrons through the upper edges of their cells
// of H, X_{k+½} ĝ out and X_{k−½} ĝ in, with X_{k+½} = −Σ_{k'≤k} δV⁰.
std::vector<double> FieldResponse::storage_of(const LevelShift& shift) const {
  const BeamGeometry& base = base_->geometry;
  const BeamGeometry moved = shifted(shift, 1.0);
  const std::size_t branch = g_.size() / 2;
  std::vector<double> out(g_.size(), 0.0);
  const double up = std::exp(-0.5 * grid_.dh_ev / grid_.shape.kt_ev), down = 1.0 / up;
  for (int state = 0; state < base.n_states; ++state)
    for (int i = 0; i < grid_.nx; ++i)
      for (int j = 0; j < grid_.n_kappa; ++j) {
        double risen = 0.0;
        for (int k = 0; k < grid_.n_h; ++k) {
          const std::int64_t line = static_cast<std::int64_t>(k) * grid_.n_kappa + j;
          const auto at = static_cast<std::size_t>(base.node(state, i) + line),
                     before = static_cast<std::size_t>(base.face(state, i) + line),
                     after = static_cast<std::size_t>(base.face(state, i + 1) + line),
                     above = at + static_cast<std::size_t>(grid_.n_kappa);
          const double* faces = &shift.face[static_cast<std::size_t>(state) * (grid_.nx + 1) + i];
          const double node = shift.node[static_cast<std::size_t>(state) * grid_.nx + i];
          risen -= (slopes_.count_face[before] * faces[0] + 4.0 * slopes_.count_node[at] * node +
                    slopes_.count_face[after] * faces[1]) /
                   6.0;
          const double grown = moved.volume[at] - base.volume[at];
          for (const std::size_t b : {std::size_t{0}, branch}) {
            out[b + at] += grown * g_[b + at];
            if (k + 1 == grid_.n_h || !(base.volume[at] > 0.0)) continue;
            const double edge = 0.5 * (g_[b + at] + g_[b + above]);
            out[b + at] += risen * edge * up;
            out[b + above] -= risen * edge * down;
          }
        }
      }
  return out;
}

std::vector<double> FieldResponse::density_of(const Subbands& subbands,
                                              const std::vector<double>& sheet) const {
  const Structure& s = device_.structure;
  std::vector<double> density(static_cast<std::size_t>(s.nx) * s.nz, 0.0);
  for (std::size_t state = 0; state < level_of_.size(); ++state)
    for (int i = 0; i < s.nx; ++i) {
      const double* psi =
          &subbands.psi[(static_cast<std::size_t>(level_of_[state]) * s.nx + i) * s.nz];
      for (int j = 0; j < s.nz; ++j)
        density[static_cast<std::size_t>(i) * s.nz + j] +=
            kValleys * sheet[state * s.nx + i] * psi[j] * psi[j];
    }
  return density;
}

FieldDerivative FieldResponse::along(const std::vector<double>& direction) const {
  const double largest = largest_magnitude(direction);
  FieldDerivative out;
  if (!(largest > 0.0)) {
    out.rate.assign(g_.size(), 0.0);
    out.storage = out.rate;
    out.poisson.assign(direction.size(), 0.0);
    return out;
  }
  const double step = kStep_v / largest;
  std::array<std::vector<double>, 2> potential{potential_v_, potential_v_};
  std::array<Subbands, 2> subbands;
  for (const int side : {0, 1}) {
    for (std::size_t at = 0; at < direction.size(); ++at)
      potential[side][at] += (side == 0 ? -step : step) * direction[at];
    subbands[side] = solve_subbands(device_.structure, potential[side]);
  }
  const LevelShift shift = shift_between(levels_of(subbands[0]), levels_of(subbands[1]));
  std::array<std::vector<double>, 2> rate, residual;
  std::array<std::array<double, 2>, 2> current{}, excess{};
  for (const int side : {0, 1}) {
    const Frame frame(*this, subbands[side], shifted(shift, side == 0 ? -1.0 : 1.0));
    rate[side] = frame.transport.rate(g_);
    const std::vector<double> sheet = beam_sheet_density(frame.geometry, g_);
    residual[side] = poisson_residual(device_.structure, boundary_, potential[side],
                                      density_of(subbands[side], sheet));
    current[side] = inner_currents(frame.transport, g_);
    if (!neutral_) continue;
    const std::array<double, 2> present = contact_electrons(sheet, grid_.nx),
                                wanted = neutral_->wanted_nm2(grid_, frame.levels);
    excess[side] = as_shifts_ev({present[0] - wanted[0], present[1] - wanted[1]});
  }
  out.rate = difference(rate[1], rate[0], 2.0 * step);
  out.poisson = difference(residual[1], residual[0], 2.0 * step);
  for (const int n : {0, 1}) {
    out.current[n] = (current[1][n] - current[0][n]) / (2.0 * step);
    out.excess_ev[n] = (excess[1][n] - excess[0][n]) / (2.0 * step);
  }
  out.storage = storage_of(shift);
  for (double& value : out.storage) value /= step;
  return out;
}

std::vector<double> FieldResponse::poisson_of(const std::vector<double>& g) const {
  const Structure& s = device_.structure;
  std::vector<double> out = density_of(subbands_, beam_sheet_density(base_->geometry, g));
  for (std::size_t at = 0; at < out.size(); ++at) {
    const double width = s.column_width_nm(static_cast<int>(at) / s.nz);
    out[at] *= boundary_.fixed[at] != 0 ? 0.0 : kChargeOverEpsilon0_v_nm * width * s.dz_nm;
  }
  return out;
}

std::array<double, 2> FieldResponse::current_of(const std::vector<double>& g) const {
  return inner_currents(base_->transport, g);
}

std::array<double, 2> FieldResponse::as_shifts_ev(
    const std::array<double, 2>& electrons_nm2) const {
  const double kt = grid_.shape.kt_ev;
  return {kt * electrons_nm2[0] / wanted_nm2_[0], kt * electrons_nm2[1] / wanted_nm2_[1]};
}

std::array<double, 2> FieldResponse::excess_of(const std::vector<double>& g) const {
  if (!neutral_) return {};
  return as_shifts_ev(contact_electrons(beam_sheet_density(base_->geometry, g), grid_.nx));
}

std::vector<double> FieldResponse::inflow_drive(bool source) const {
  const BeamGeometry& base = base_->geometry;
  std::vector<double> out(g_.size(), 0.0);
  const int nx = grid_.nx;
  for (int state = 0; state < base.n_states; ++state) {
    const double scale = base.speed_factor[static_cast<std::size_t>(state)] / grid_.dx_nm;
    for (std::int64_t line = 0; line < base.lines(); ++line) {
      const auto k = static_cast<std::size_t>(line / grid_.n_kappa);
      const double entering = source ? inflow_.source[k] : inflow_.drain[k];
      const auto at = static_cast<std::size_t>(base.node(state, source ? 0 : nx - 1) + line),
                 face = static_cast<std::size_t>(base.face(state, source ? 0 : nx) + line);
      out[(source ? 0 : g_.size() / 2) + at] =
          -scale * base.area[face] * entering / grid_.shape.kt_ev;
    }
  }
  return out;
}

ColumnMatrix FieldResponse::gummel_matrix() const {
  const Structure& s = device_.structure;
  const int n = s.interior(), nf = s.n_families(), states = static_cast<int>(level_of_.size());
  const std::vector<double> sheet = beam_sheet_density(base_->geometry, g_);
  std::vector<double> responses(static_cast<std::size_t>(s.nx) * s.nz * s.nz);
  for (int i = 0; i < s.nx; ++i) {
    std::vector<double> energy(static_cast<std::size_t>(nf) * n), vectors(energy.size() * n);
    ColumnStates column{std::vector<const double*>(nf), std::vector<const double*>(nf)};
    for (int f = 0; f < nf; ++f) {
      double* levels = &energy[static_cast<std::size_t>(f) * n];
      double* waves = &vectors[static_cast<std::size_t>(f) * n * n];
      all_states(s, f, &potential_v_[static_cast<std::size_t>(i) * s.nz], levels, waves);
      column.energies[static_cast<std::size_t>(f)] = levels;
      column.vectors[static_cast<std::size_t>(f)] = waves;
    }
    std::vector<double> here, slope;
    for (int state = 0; state < states; ++state) {
      here.push_back(sheet[static_cast<std::size_t>(state) * s.nx + i]);
      slope.push_back(here.back() / grid_.shape.kt_ev);
    }
    column_response(s, column, here.data(), slope.data(), false,
                    &responses[static_cast<std::size_t>(i) * s.nz * s.nz]);
  }
  ColumnMatrix matrix(s, boundary_, responses);
  matrix.factorise();
  return matrix;
}

}  // namespace quasi::mosfet
