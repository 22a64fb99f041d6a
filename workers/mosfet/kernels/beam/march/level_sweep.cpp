#include "workers/mosfet/kernels/beam/march/level_sweep.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "workers/mosfet/physics/beam/face_energies.hpp"

namespace quasi::mosfet {
namespace {

/// Holds the line of all cells in H at one node and one cell of κ. The symbols are those of
/// sweep_levels(). Each list has one number for each cell; `flux` has one more.
struct HLine {
  explicit HLine(int n_h)
      : old_volume(n_h), volume(n_h), held(n_h), rise(n_h), number(n_h), flux(n_h + 1) {}
  std::vector<double> old_volume, volume;  ///< V F before, and V' after
  std::vector<double> held;                ///< V̂ F
  std::vector<double> rise;                ///< U at the lower end of each cell
  std::vector<double> number;              ///< V f
  std::vector<double> flux;                ///< number that rises through the lower end of each cell
};

// Fills line->rise with U. Sums start at the top, where V F is smallest, so that rounding is small.
void find_rise(HLine* line) {
  double before = 0.0, after = 0.0;
  for (const double value : line->old_volume) before += value;
  for (const double value : line->held) after += value;
  const double ratio = after > 0.0 ? before / after : 0.0;
  double rise = 0.0;
  for (std::size_t k = line->held.size(); k-- > 0;)
    line->rise[k] = rise += ratio * line->held[k] - line->old_volume[k];
}

// Fills line->flux by the rule of Lax and Wendroff. With `donor_only` ĥ is that of the cell which
// gives electrons, and the other cell does not count.
void find_flux(bool donor_only, HLine* line) {
  const std::size_t n = line->number.size();
  line->flux[0] = line->flux[n] = 0.0;
  for (std::size_t k = 1; k < n; ++k) {
    const double rise = line->rise[k];
    const std::size_t from = rise > 0.0 ? k - 1 : k, to = rise > 0.0 ? k : k - 1;
    const double given = line->old_volume[from], taken = line->old_volume[to];
    double& flux = line->flux[k];
    flux = 0.0;
    if (!(given > 0.0)) continue;
    const double donor = line->number[from] / given;
    // `share` is the part of the donor cell that moves.
    const double share = std::min(1.0, std::fabs(rise) / given);
    if (donor_only || !(taken > 0.0))
      flux = std::copysign(share, rise) * line->number[from];
    else
      flux = rise * (0.5 * (1.0 + share) * donor + 0.5 * (1.0 - share) * line->number[to] / taken);
  }
}

// Reduces the flux so that no cell gives more than it holds.
void limit_flux(HLine* line) {
  const std::size_t n = line->number.size();
  std::vector<double> share(n, 1.0);
  for (std::size_t k = 0; k < n; ++k) {
    const double given = std::max(line->flux[k + 1], 0.0) + std::max(-line->flux[k], 0.0);
    if (given > line->number[k]) share[k] = line->number[k] / given;
  }
  for (std::size_t k = 1; k < n; ++k)
    line->flux[k] *= line->flux[k] > 0.0 ? share[k - 1] : share[k];
}

std::vector<double> moved(const HLine& line) {
  std::vector<double> out(line.number.size());
  for (std::size_t k = 0; k < out.size(); ++k)
    out[k] = line.number[k] + line.flux[k] - line.flux[k + 1];
  return out;
}

// Moves the number in every closed cell to the next open cell above. If there is none, the highest
// open cell gets it. @return the number on a line without open cells, else 0
double empty_closed_cells(const std::vector<double>& volume, std::vector<double>* number) {
  double carried = 0.0;
  std::size_t last = volume.size();
  for (std::size_t k = 0; k < volume.size(); ++k) {
    if (volume[k] > 0.0) {
      (*number)[k] += carried;
      carried = 0.0;
      last = k;
    } else {
      carried += (*number)[k];
      (*number)[k] = 0.0;
    }
  }
  if (last == volume.size()) return carried;
  (*number)[last] += carried;
  return 0.0;
}

// Replaces the numbers of a line by those after the move of the levels.
// @return the number on a line without open cells, else 0
double sweep_line(HLine* line) {
  find_flux(false, line);
  std::vector<double> number = moved(*line);
  if (std::any_of(number.begin(), number.end(), [](double value) { return value < 0.0; })) {
    find_flux(true, line);
    limit_flux(line);
    number = moved(*line);
    // Rounding may leave a negative number in a cell that gave all.
    for (std::size_t k = 0; k + 1 < number.size(); ++k)
      if (number[k] < 0.0) {
        number[k + 1] += number[k];
        number[k] = 0.0;
      }
  }
  const double left = empty_closed_cells(line->volume, &number);
  line->number = std::move(number);
  return left;
}

/// Holds e^{(ε'−ε)/kT} at the left face, the centre and the right face of a node.
struct EdgeWeights {
  double before, here, after;
};

/// Moves the electrons of all lines of one state and node, from the highest cell of κ down. A line
/// that closes as a whole gives its electrons to the next lower cell of κ.
class NodeSweep {
 public:
  NodeSweep(const PlacedLevels& before, const PlacedLevels& after)
      : before_(before), after_(after), line_(after.geometry.grid.n_h) {
    const BeamGrid& grid = after.geometry.grid;
    for (int k = 0; k < grid.n_h; ++k) {
      boltzmann_.push_back(grid.boltzmann(k));
      const double gap_kt = (grid.shape.fermi_ev - grid.centre_ev(k)) / grid.shape.kt_ev;
      reference_.push_back(grid.shape.fermi ? fermi_function(gap_kt) : boltzmann_.back());
    }
  }

  void sweep(int state, int i, const EdgeWeights& weights, std::vector<double>* g) {
    const BeamGeometry& geometry = after_.geometry;
    std::array<double, 2> carried{};
    for (int j = geometry.grid.n_kappa; j-- > 0;) {
      load_volumes(state, i, j, weights);
      const auto first = static_cast<std::size_t>(geometry.node(state, i)) + j;
      for (const int branch : {0, 1}) {
        double* values = g->data() + static_cast<std::size_t>(branch) * geometry.cells() + first;
        carried[branch] = sweep_branch(values, carried[branch], j == 0);
      }
    }
  }

 private:
  void load_volumes(int state, int i, int j, const EdgeWeights& weights) {
    const BeamGeometry& geometry = after_.geometry;
    const int nj = geometry.grid.n_kappa;
    const auto node = static_cast<std::size_t>(geometry.node(state, i)) + j,
               face = static_cast<std::size_t>(geometry.face(state, i)) + j,
               next = static_cast<std::size_t>(geometry.face(state, i + 1)) + j;
    for (int k = 0; k < geometry.grid.n_h; ++k) {
      const auto at = static_cast<std::size_t>(k) * nj;
      const double weighted = (weights.before * after_.edges.face[face + at] +
                               4.0 * weights.here * after_.edges.node[node + at] +
                               weights.after * after_.edges.face[next + at]) /
                              6.0;
      line_.old_volume[k] = before_.geometry.volume[node + at] * reference_[k];
      line_.volume[k] = geometry.volume[node + at];
      line_.held[k] = weighted * reference_[k];
    }
    find_rise(&line_);
  }

  double sweep_branch(double* values, double carried, bool is_last) {
    const int nj = after_.geometry.grid.n_kappa, nk = after_.geometry.grid.n_h;
    for (int k = 0; k < nk; ++k)
      line_.number[k] = line_.old_volume[k] / reference_[k] * boltzmann_[k] * values[k * nj];
    double left = sweep_line(&line_);
    if (carried > 0.0 && left == 0.0)
      for (int k = nk; k-- > 0;)
        if (line_.volume[k] > 0.0) {
          line_.number[k] += carried;
          carried = 0.0;
          break;
        }
    for (int k = 0; k < nk; ++k)
      values[k * nj] =
          line_.volume[k] > 0.0 ? line_.number[k] / (line_.volume[k] * boltzmann_[k]) : 0.0;
    // The lowest line of κ is open if any line is, so that it has nothing left to give.
    return is_last ? 0.0 : carried + left;
  }

  const PlacedLevels& before_;
  const PlacedLevels& after_;
  HLine line_;
  std::vector<double> boltzmann_, reference_;
};

}  // namespace

void sweep_levels(const PlacedLevels& before, const PlacedLevels& after, std::vector<double>* g) {
  const BeamGeometry& geometry = after.geometry;
  const BeamGrid& grid = geometry.grid;
  for (int state = 0; state < geometry.n_states; ++state) {
    std::vector<double> old_faces(static_cast<std::size_t>(grid.nx) + 1), faces(old_faces.size());
    const double *old_nodes = before.levels.edge_of(state), *nodes = after.levels.edge_of(state);
    face_energies(old_nodes, grid.nx, old_faces.data());
    face_energies(nodes, grid.nx, faces.data());
    const auto weight = [&](double from_ev, double to_ev) {
      return std::exp((to_ev - from_ev) / grid.shape.kt_ev);
    };
#pragma omp parallel
    {
      NodeSweep node(before, after);
#pragma omp for schedule(dynamic)
      for (int i = 0; i < grid.nx; ++i)
        node.sweep(state, i,
                   {weight(old_faces[i], faces[i]), weight(old_nodes[i], nodes[i]),
                    weight(old_faces[i + 1], faces[i + 1])},
                   g);
    }
  }
}

}  // namespace quasi::mosfet
