#include "workers/mosfet/kernels/beam/beam_operator.hpp"

#include <algorithm>
#include <cmath>

namespace quasi::mosfet {

BeamOperator::BeamOperator(const BeamGeometry& geometry, const BeamScattering& scattering,
                           const BeamInflow& inflow, BeamOrder order)
    : geometry_(geometry), scattering_(scattering), inflow_(inflow), order_(order) {
  if (!scattering.scatters()) find_isolated();
}

void BeamOperator::find_isolated() {
  const BeamGrid& grid = geometry_.grid;
  isolated_.assign(static_cast<std::size_t>(geometry_.cells()), 0);
  for (int state = 0; state < geometry_.n_states; ++state)
    for (int k = 0; k < grid.n_h; ++k)
      for (int j = 0; j < grid.n_kappa; ++j) {
        const BeamWell well = beam_well(line({}, false, state, k, j));
        for (int i = well.first; i < well.last; ++i) isolated_[cell(state, i, k) + j] = 1;
      }
}

double BeamOperator::loss(int state, int i, int k, int j) const {
  if (scattering_.scatters())
    return scattering_
        .loss()[(static_cast<std::size_t>(state) * geometry_.grid.nx + i) * geometry_.grid.n_h + k];
  return isolated_[cell(state, i, k) + j] != 0 ? kBeamWellLoss : 0.0;
}

void BeamOperator::find_open_faces(int state, int k, std::vector<char>* open) const {
  const BeamGrid& grid = geometry_.grid;
  const int nj = grid.n_kappa;
  open->assign(static_cast<std::size_t>(grid.nx + 1) * nj, 0);
  if (order_ == BeamOrder::kFirst) return;
  const double* full = &geometry_.full[static_cast<std::size_t>(k) * nj];
  for (int n = 1; n < grid.nx; ++n) {
    const double* here = &geometry_.area[static_cast<std::size_t>(geometry_.face(state, n)) +
                                         static_cast<std::size_t>(k) * nj];
    for (int j = 0; j < nj; ++j)
      (*open)[static_cast<std::size_t>(n) * nj + j] = here[j] == full[j] ? 1 : 0;
  }
}

void BeamOperator::face_values(const std::vector<double>& g, bool includes_inflow, int state, int k,
                               FaceValues* out) const {
  const BeamGrid& grid = geometry_.grid;
  const int nx = grid.nx, nj = grid.n_kappa;
  const std::size_t branch = g.size() / 2;
  out->forward.resize(static_cast<std::size_t>(nx + 1) * nj);
  out->backward.resize(out->forward.size());
  find_open_faces(state, k, &out->open);
  const auto is_smooth = [&](int first, int j) {
    if (first < 1 || first + 3 > nx - 1) return false;
    const char* open = &out->open[static_cast<std::size_t>(first) * nj + j];
    return (open[0] & open[nj] & open[2 * nj] & open[3 * nj]) != 0;
  };
  const auto plus = [&](int i, int j) { return g[cell(state, i, k) + j]; };
  const auto minus = [&](int i, int j) { return g[branch + cell(state, i, k) + j]; };
  for (int n = 0; n <= nx; ++n)
    for (int j = 0; j < nj; ++j) {
      double forward = n > 0 ? plus(n - 1, j) : includes_inflow ? inflow_.source[k] : 0.0;
      double backward = n < nx ? minus(n, j) : includes_inflow ? inflow_.drain[k] : 0.0;
      // Upwind parabolas are used where all cells that they join are fully open.
      if (is_smooth(n - 2, j)) forward = (2.0 * plus(n, j) + 5.0 * forward - plus(n - 2, j)) / 6.0;
      if (is_smooth(n - 1, j))
        backward = (2.0 * minus(n - 1, j) + 5.0 * backward - minus(n + 1, j)) / 6.0;
      out->forward[static_cast<std::size_t>(n) * nj + j] = forward;
      out->backward[static_cast<std::size_t>(n) * nj + j] = backward;
    }
}

std::vector<double> BeamOperator::apply(const std::vector<double>& g) const {
  const BeamGrid& grid = geometry_.grid;
  const int nx = grid.nx, nj = grid.n_kappa, nk = grid.n_h;
  const std::size_t branch = g.size() / 2;
  std::vector<double> gain;
  if (scattering_.scatters()) gain = scattering_.gain(scattering_.mean(g));
  std::vector<double> out(g.size());
#pragma omp parallel
  {
    FaceValues face;
#pragma omp for schedule(dynamic)
    for (int line = 0; line < geometry_.n_states * nk; ++line) {
      const int state = line / nk, k = line % nk;
      const double scale = geometry_.speed_factor[static_cast<std::size_t>(state)] / grid.dx_nm;
      face_values(g, false, state, k, &face);
      for (int i = 0; i < nx; ++i)
        for (int j = 0; j < nj; ++j) {
          const std::size_t at = cell(state, i, k) + j, left = static_cast<std::size_t>(i) * nj + j,
                            right = left + nj;
          const double a = area(state, i, k, j), after = area(state, i + 1, k, j);
          const double closes = std::max(a - after, 0.0), opens = std::max(after - a, 0.0);
          const double plus = g[at], minus = g[branch + at], volume = geometry_.volume[at];
          const double lost = loss(state, i, k, j);
          const double fed =
              gain.empty() ? 0.0 : gain[(static_cast<std::size_t>(state) * nx + i) * nk + k];
          out[at] = scale * (after * face.forward[right] - a * face.forward[left] + closes * plus -
                             opens * minus) +
                    volume * (lost * plus - fed);
          out[branch + at] = scale * (a * face.backward[left] - after * face.backward[right] +
                                      opens * minus - closes * plus) +
                             volume * (lost * minus - fed);
        }
    }
  }
  return out;
}

std::vector<double> BeamOperator::inflow_rhs() const {
  const BeamGrid& grid = geometry_.grid;
  const int nx = grid.nx, nj = grid.n_kappa;
  std::vector<double> rhs(size(), 0.0);
  const std::size_t branch = rhs.size() / 2;
  for (int state = 0; state < geometry_.n_states; ++state) {
    const double scale = geometry_.speed_factor[static_cast<std::size_t>(state)] / grid.dx_nm;
    for (int k = 0; k < grid.n_h; ++k)
      for (int j = 0; j < nj; ++j) {
        for (int i = 0; i < nx && !scattering_.source().empty(); ++i) {
          const std::size_t at = cell(state, i, k) + j;
          rhs[at] = rhs[branch + at] = geometry_.volume[at] * scattering_.source()[at / nj];
        }
        for (int i = 0; i < nx && !isolated_.empty(); ++i)
          if (const std::size_t at = cell(state, i, k) + j; isolated_[at] != 0)
            rhs[at] = rhs[branch + at] = kBeamWellLoss * geometry_.volume[at] * inflow_.source[k];
        rhs[cell(state, 0, k) + j] += scale * area(state, 0, k, j) * inflow_.source[k];
        rhs[branch + cell(state, nx - 1, k) + j] +=
            scale * area(state, nx, k, j) * inflow_.drain[k];
      }
  }
  return rhs;
}

std::vector<double> BeamOperator::rate(const std::vector<double>& g) const {
  std::vector<double> out = inflow_rhs();
  const std::vector<double> lost = apply(g);
  for (std::size_t at = 0; at < out.size(); ++at) out[at] -= lost[at];
  return out;
}

BeamLine BeamOperator::line(const std::vector<double>& feed, bool has_inflow, int state, int k,
                            int j) const {
  const BeamGrid& grid = geometry_.grid;
  const std::size_t row = static_cast<std::size_t>(state) * grid.nx * grid.n_h + k,
                    at = static_cast<std::size_t>(k) * grid.n_kappa + j;
  const auto h = static_cast<std::size_t>(k);
  return {.volume = &geometry_.volume[static_cast<std::size_t>(geometry_.node(state, 0)) + at],
          .area = &geometry_.area[static_cast<std::size_t>(geometry_.face(state, 0)) + at],
          .stride = geometry_.lines(),
          .loss = scattering_.scatters() ? &scattering_.loss()[row] : nullptr,
          .feed = feed.empty() ? nullptr : &feed[row],
          .row_stride = grid.n_h,
          .nx = grid.nx,
          .full = geometry_.full[at],
          .scale = geometry_.speed_factor[static_cast<std::size_t>(state)] / grid.dx_nm,
          .source = has_inflow ? inflow_.source[h] : 0.0,
          .drain = has_inflow ? inflow_.drain[h] : 0.0,
          .well_g = has_inflow ? inflow_.source[h] : 0.0,
          .third = order_ == BeamOrder::kThird};
}

std::vector<double> BeamOperator::solve_lines(const std::vector<double>& feed,
                                              bool has_inflow) const {
  const BeamGrid& grid = geometry_.grid;
  std::vector<double> g(size());
  const std::size_t branch = g.size() / 2;
#pragma omp parallel
  {
    std::vector<double> work(static_cast<std::size_t>(grid.nx) * kBeamLineWork);
#pragma omp for schedule(dynamic)
    for (int row = 0; row < geometry_.n_states * grid.n_h; ++row)
      for (int j = 0; j < grid.n_kappa; ++j) {
        const int state = row / grid.n_h, k = row % grid.n_h;
        const std::size_t first = cell(state, 0, k) + j;
        solve_beam_line(line(feed, has_inflow, state, k, j), work.data(), 1,
                        {&g[first], &g[branch + first], geometry_.lines()});
      }
  }
  return g;
}

std::vector<double> BeamOperator::line_mean(const std::vector<double>& feed,
                                            bool has_inflow) const {
  const BeamGrid& grid = geometry_.grid;
  const int nx = grid.nx;
  const std::vector<double>& states = scattering_.states();
  std::vector<double> mean(states.size(), 0.0);
#pragma omp parallel
  {
    std::vector<double> work(static_cast<std::size_t>(nx) * kBeamLineWork), plus(nx), minus(nx);
#pragma omp for schedule(dynamic)
    for (int row = 0; row < geometry_.n_states * grid.n_h; ++row) {
      const int state = row / grid.n_h, k = row % grid.n_h;
      const std::size_t first = static_cast<std::size_t>(state) * nx * grid.n_h + k;
      for (int j = 0; j < grid.n_kappa; ++j) {
        const BeamLine one = line(feed, has_inflow, state, k, j);
        solve_beam_line(one, work.data(), 1, {plus.data(), minus.data(), 1});
        for (int i = 0; i < nx; ++i)
          mean[first + static_cast<std::size_t>(i) * grid.n_h] +=
              one.volume[i * one.stride] * (plus[i] + minus[i]);
      }
      for (int i = 0; i < nx; ++i)
        if (const std::size_t at = first + static_cast<std::size_t>(i) * grid.n_h; states[at] > 0.0)
          mean[at] /= states[at];
    }
  }
  return mean;
}

std::vector<double> BeamOperator::face_currents(const std::vector<double>& g) const {
  const BeamGrid& grid = geometry_.grid;
  const int nx = grid.nx, nj = grid.n_kappa, nk = grid.n_h;
  std::vector<double> current(static_cast<std::size_t>(geometry_.n_states) * (nx + 1) * nk);
#pragma omp parallel
  {
    FaceValues face;
#pragma omp for schedule(dynamic)
    for (int line = 0; line < geometry_.n_states * nk; ++line) {
      const int state = line / nk, k = line % nk;
      face_values(g, true, state, k, &face);
      const double factor = geometry_.density_factor[static_cast<std::size_t>(state)] *
                            geometry_.speed_factor[static_cast<std::size_t>(state)] *
                            grid.boltzmann(k);
      for (int n = 0; n <= nx; ++n) {
        double sum = 0.0;
        for (int j = 0; j < nj; ++j) {
          const std::size_t at = static_cast<std::size_t>(n) * nj + j;
          sum += area(state, n, k, j) * (face.forward[at] - face.backward[at]);
        }
        current[(static_cast<std::size_t>(state) * (nx + 1) + n) * nk + k] = factor * sum;
      }
    }
  }
  return current;
}

BeamOperator::AreaSlopes BeamOperator::area_slopes(const std::vector<double>& g) const {
  const BeamGrid& grid = geometry_.grid;
  const int nx = grid.nx, nj = grid.n_kappa, nk = grid.n_h;
  const std::size_t branch = g.size() / 2;
  AreaSlopes slopes{std::vector<double>(g.size()), std::vector<double>(g.size())};
#pragma omp parallel
  {
    FaceValues face;
#pragma omp for schedule(dynamic)
    for (int line = 0; line < geometry_.n_states * nk; ++line) {
      const int state = line / nk, k = line % nk;
      const double scale = geometry_.speed_factor[static_cast<std::size_t>(state)] / grid.dx_nm;
      face_values(g, true, state, k, &face);
      for (int i = 0; i < nx; ++i)
        for (int j = 0; j < nj; ++j) {
          const std::size_t at = cell(state, i, k) + j, left = static_cast<std::size_t>(i) * nj + j,
                            right = left + nj;
          const double closing = area(state, i, k, j) - area(state, i + 1, k, j);
          const double turning = closing > 0.0   ? g[at]
                                 : closing < 0.0 ? g[branch + at]
                                                 : 0.5 * (g[at] + g[branch + at]);
          slopes.before[at] = scale * (face.forward[left] - turning);
          slopes.behind[at] = scale * (turning - face.forward[right]);
          slopes.before[branch + at] = scale * (turning - face.backward[left]);
          slopes.behind[branch + at] = scale * (face.backward[right] - turning);
        }
    }
  }
  return slopes;
}

double BeamOperator::largest_step_fs() const {
  const BeamGrid& grid = geometry_.grid;
  double fastest = 0.0;
  for (int state = 0; state < geometry_.n_states; ++state) {
    const double scale = geometry_.speed_factor[static_cast<std::size_t>(state)] / grid.dx_nm;
    for (int i = 0; i < grid.nx; ++i)
      for (int k = 0; k < grid.n_h; ++k)
        for (int j = 0; j < grid.n_kappa; ++j) {
          const double volume = geometry_.volume[cell(state, i, k) + j];
          const double larger = std::max(area(state, i, k, j), area(state, i + 1, k, j));
          if (volume > 0.0)
            fastest = std::max(fastest, scale * larger / volume + loss(state, i, k, j));
        }
  }
  return 1.0 / fastest;
}

}  // namespace quasi::mosfet
