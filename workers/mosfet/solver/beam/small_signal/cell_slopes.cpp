#include "workers/mosfet/solver/beam/small_signal/cell_slopes.hpp"

#include <cmath>

#include "workers/mosfet/physics/beam/face_energies.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kStep_ev = 1e-6;

std::vector<double> half_difference(const std::vector<double>& high,
                                    const std::vector<double>& low) {
  std::vector<double> out(high.size());
  for (std::size_t at = 0; at < out.size(); ++at) out[at] = 0.5 * (high[at] - low[at]);
  return out;
}

}  // namespace

FaceSlopes::FaceSlopes(const BeamLevels& levels) : nx_(static_cast<std::size_t>(levels.nx)) {
  const auto states = static_cast<std::size_t>(levels.n_states());
  slopes_.resize(states * (nx_ + 1) * nx_);
#pragma omp parallel for schedule(static)
  for (std::size_t state = 0; state < states; ++state) {
    const double* edges = levels.edge_of(static_cast<int>(state));
    std::vector<double> nodes(edges, edges + nx_), below(nx_ + 1), above(nx_ + 1);
    for (std::size_t i = 0; i < nx_; ++i) {
      nodes[i] = edges[i] - kStep_ev;
      face_energies(nodes.data(), levels.nx, below.data());
      nodes[i] = edges[i] + kStep_ev;
      face_energies(nodes.data(), levels.nx, above.data());
      nodes[i] = edges[i];
      for (std::size_t n = 0; n <= nx_; ++n)
        slopes_[(state * (nx_ + 1) + n) * nx_ + i] = (above[n] - below[n]) / (2.0 * kStep_ev);
    }
  }
}

LevelShift FaceSlopes::shift_between(const BeamLevels& low, const BeamLevels& high) const {
  LevelShift shift{half_difference(high.edge_ev, low.edge_ev), {}};
  for (std::size_t state = 0; state < shift.node.size() / nx_; ++state)
    for (std::size_t n = 0; n <= nx_; ++n) {
      double moved = 0.0;
      for (std::size_t i = 0; i < nx_; ++i) moved += at(state, n, i) * shift.node[state * nx_ + i];
      shift.face.push_back(moved);
    }
  return shift;
}

CellSlopes::CellSlopes(const BeamGeometry& base, const BeamLevels& levels) : base_(base) {
  const BeamGrid& grid = base.grid;
  area_.assign(base.area.size(), 0.0);
  face_ = count_face_ = area_;
  node_.assign(base.volume.size(), 0.0);
  count_node_ = node_;
  const double alpha = grid.alpha_per_ev;
  BeamShape even = grid.shape;  // ω = 1
  even.kt_ev = 1e30;
  const auto slope = [alpha](const BeamCell& cell, const BeamShape& shape, double edge) {
    return (beam_volume(cell, shape, alpha, edge + kStep_ev) -
            beam_volume(cell, shape, alpha, edge - kStep_ev)) /
           (2.0 * kStep_ev);
  };
  for (int state = 0; state < base.n_states; ++state) {
    const double* nodes = levels.edge_of(state);
    std::vector<double> faces(static_cast<std::size_t>(grid.nx) + 1);
    face_energies(nodes, grid.nx, faces.data());
#pragma omp parallel for schedule(dynamic)
    for (int k = 0; k < grid.n_h; ++k)
      for (int j = 0; j < grid.n_kappa; ++j) {
        const BeamCell cell = grid.cell(k, j);
        const std::int64_t line = static_cast<std::int64_t>(k) * grid.n_kappa + j;
        for (int i = 0; i <= grid.nx; ++i) {
          const auto at = static_cast<std::size_t>(base.face(state, i) + line);
          const double edge = faces[static_cast<std::size_t>(i)];
          face_[at] = slope(cell, grid.shape, edge);
          count_face_[at] = slope(cell, even, edge);
          const double area = base.area[at], full = base.full[static_cast<std::size_t>(line)];
          if (area > 0.0 && area != full)
            area_[at] = (beam_area(cell, grid.shape, alpha, edge + kStep_ev) -
                         beam_area(cell, grid.shape, alpha, edge - kStep_ev)) /
                        (2.0 * kStep_ev);
          if (i == grid.nx) break;
          const auto inside = static_cast<std::size_t>(base.node(state, i) + line);
          node_[inside] = slope(cell, grid.shape, nodes[i]);
          count_node_[inside] = slope(cell, even, nodes[i]);
        }
      }
  }
}

CellSlopes::VolumeSlopes CellSlopes::volume_slopes() const {
  VolumeSlopes slopes;
  for (std::vector<double>* each : {&slopes.before, &slopes.node, &slopes.behind})
    each->assign(base_.volume.size(), 0.0);
#pragma omp parallel for schedule(static)
  for (int column = 0; column < base_.n_states * base_.grid.nx; ++column)
    for (std::int64_t line = 0; line < base_.lines(); ++line) {
      const int state = column / base_.grid.nx, i = column % base_.grid.nx;
      const auto at = static_cast<std::size_t>(base_.node(state, i) + line);
      if (!(base_.volume[at] > 0.0)) continue;
      slopes.before[at] = face_[static_cast<std::size_t>(base_.face(state, i) + line)] / 6.0;
      slopes.node[at] = 4.0 * node_[at] / 6.0;
      slopes.behind[at] = face_[static_cast<std::size_t>(base_.face(state, i + 1) + line)] / 6.0;
    }
  return slopes;
}

BeamGeometry CellSlopes::shifted(const LevelShift& shift, double factor) const {
  BeamGeometry out = base_;
#pragma omp parallel for collapse(2) schedule(static)
  for (int state = 0; state < out.n_states; ++state)
    for (int i = 0; i <= base_.grid.nx; ++i) {
      const double* faces = &shift.face[static_cast<std::size_t>(state) * (base_.grid.nx + 1)];
      for (std::int64_t line = 0; line < out.lines(); ++line) {
        const auto at = static_cast<std::size_t>(out.face(state, i) + line);
        out.area[at] += factor * area_[at] * faces[i];
        if (i == base_.grid.nx) continue;
        const auto inside = static_cast<std::size_t>(out.node(state, i) + line);
        out.volume[inside] += factor * volume_change(shift, state, i, line);
      }
    }
  return out;
}

// Returns the weights of the upper edge of every cell of H. With the shape ω of the cells the
// occupation there is ½(g_k e^{−H_k/kT} ω_k + g_{k+1} e^{−H_{k+1}/kT} ω_{k+1}), which is
// divided by e^{−H/kT} of the edge.
CellSlopes::EdgeWeights CellSlopes::edge_weights() const {
  const BeamGrid& grid = base_.grid;
  const double half = 0.5 * grid.dh_ev / grid.shape.kt_ev;
  EdgeWeights weights;
  for (int k = 0; k < grid.n_h; ++k) {
    const double edge_ev = grid.h_low_ev(k + 1);
    weights.below.push_back(0.5 * grid.shape.at(edge_ev, grid.centre_ev(k)) * std::exp(half));
    weights.above.push_back(0.5 * grid.shape.at(edge_ev, grid.centre_ev(k + 1)) * std::exp(-half));
  }
  return weights;
}

double CellSlopes::volume_change(const LevelShift& shift, int state, int i,
                                 std::int64_t line) const {
  const int nx = base_.grid.nx;
  const double* faces = &shift.face[static_cast<std::size_t>(state) * (nx + 1) + i];
  const auto at = static_cast<std::size_t>(base_.node(state, i) + line),
             before = static_cast<std::size_t>(base_.face(state, i) + line),
             after = static_cast<std::size_t>(base_.face(state, i + 1) + line);
  if (!(base_.volume[at] > 0.0)) return 0.0;
  return (face_[before] * faces[0] +
          4.0 * node_[at] * shift.node[static_cast<std::size_t>(state) * nx + i] +
          face_[after] * faces[1]) /
         6.0;
}

double CellSlopes::count_change(const LevelShift& shift, int state, int i,
                                std::int64_t line) const {
  const int nx = base_.grid.nx;
  const double* faces = &shift.face[static_cast<std::size_t>(state) * (nx + 1) + i];
  const auto at = static_cast<std::size_t>(base_.node(state, i) + line),
             before = static_cast<std::size_t>(base_.face(state, i) + line),
             after = static_cast<std::size_t>(base_.face(state, i + 1) + line);
  return (count_face_[before] * faces[0] +
          4.0 * count_node_[at] * shift.node[static_cast<std::size_t>(state) * nx + i] +
          count_face_[after] * faces[1]) /
         6.0;
}

std::vector<double> CellSlopes::storage(const LevelShift& shift,
                                        const std::vector<double>& g) const {
  const BeamGrid& grid = base_.grid;
  const std::size_t branch = g.size() / 2;
  std::vector<double> out(g.size(), 0.0);
  const EdgeWeights edge_of = edge_weights();
  const double leaving = std::exp(-0.5 * grid.dh_ev / grid.shape.kt_ev), entering = 1.0 / leaving;
#pragma omp parallel for schedule(static)
  for (int column = 0; column < base_.n_states * grid.nx; ++column)
    for (int j = 0; j < grid.n_kappa; ++j) {
      const int state = column / grid.nx, i = column % grid.nx;
      double risen = 0.0;
      for (int k = 0; k < grid.n_h; ++k) {
        const std::int64_t line = static_cast<std::int64_t>(k) * grid.n_kappa + j;
        const auto at = static_cast<std::size_t>(base_.node(state, i) + line),
                   above = at + static_cast<std::size_t>(grid.n_kappa),
                   n = static_cast<std::size_t>(k);
        risen -= count_change(shift, state, i, line);
        const double grown = volume_change(shift, state, i, line);
        for (const std::size_t b : {std::size_t{0}, branch}) {
          out[b + at] += grown * g[b + at];
          if (k + 1 == grid.n_h || !(base_.volume[at] > 0.0)) continue;
          const double edge = edge_of.below[n] * g[b + at] + edge_of.above[n] * g[b + above];
          out[b + at] += risen * edge * leaving;
          out[b + above] -= risen * edge * entering;
        }
      }
    }
  return out;
}

LevelShift CellSlopes::level_slopes(const std::vector<double>& area,
                                    const std::vector<double>& volume,
                                    const std::vector<double>& count) const {
  const int nx = base_.grid.nx;
  LevelShift slopes{std::vector<double>(static_cast<std::size_t>(base_.n_states) * nx),
                    std::vector<double>(static_cast<std::size_t>(base_.n_states) * (nx + 1))};
  for (int state = 0; state < base_.n_states; ++state) {
    double* node = &slopes.node[static_cast<std::size_t>(state) * nx];
    double* face = &slopes.face[static_cast<std::size_t>(state) * (nx + 1)];
    for (int i = 0; i <= nx; ++i)
      for (std::int64_t line = 0; line < base_.lines(); ++line) {
        const auto before = static_cast<std::size_t>(base_.face(state, i) + line);
        if (!area.empty()) face[i] += area[before] * area_[before];
        if (i == nx) continue;
        const auto inside = static_cast<std::size_t>(base_.node(state, i) + line),
                   after = static_cast<std::size_t>(base_.face(state, i + 1) + line);
        const double by_volume =
            volume.empty() || !(base_.volume[inside] > 0.0) ? 0.0 : volume[inside] / 6.0;
        const double by_count = count.empty() ? 0.0 : count[inside] / 6.0;
        face[i] += by_volume * face_[before] + by_count * count_face_[before];
        node[i] += 4.0 * (by_volume * node_[inside] + by_count * count_node_[inside]);
        face[i + 1] += by_volume * face_[after] + by_count * count_face_[after];
      }
  }
  return slopes;
}

CellSlopes::StorageSlopes CellSlopes::storage_slopes(const std::vector<double>& g,
                                                     const std::vector<double>& weighted) const {
  const BeamGrid& grid = base_.grid;
  const std::size_t branch = g.size() / 2, nj = static_cast<std::size_t>(grid.n_kappa);
  const EdgeWeights edge_of = edge_weights();
  const double leaving = std::exp(-0.5 * grid.dh_ev / grid.shape.kt_ev), entering = 1.0 / leaving;
  StorageSlopes slopes{std::vector<double>(base_.volume.size()),
                       std::vector<double>(base_.volume.size())};
  for (int column = 0; column < base_.n_states * grid.nx; ++column)
    for (std::size_t j = 0; j < nj; ++j) {
      // X_{k+½} contains the changes of all cells up to k, so that their slopes add from the top.
      double risen = 0.0;
      for (int k = grid.n_h - 1; k >= 0; --k) {
        const std::size_t at = (static_cast<std::size_t>(column) * grid.n_h + k) * nj + j,
                          above = at + nj, n = static_cast<std::size_t>(k);
        for (const std::size_t b : {std::size_t{0}, branch}) {
          slopes.volume[at] += weighted[b + at] * g[b + at];
          if (k + 1 == grid.n_h || !(base_.volume[at] > 0.0)) continue;
          const double edge = edge_of.below[n] * g[b + at] + edge_of.above[n] * g[b + above];
          risen += edge * (weighted[b + at] * leaving - weighted[b + above] * entering);
        }
        slopes.count[at] = -risen;
      }
    }
  return slopes;
}

}  // namespace quasi::mosfet
