#include "workers/mosfet/kernels/beam/march/beam_march.hpp"

#include <algorithm>

#include "workers/mosfet/kernels/beam/march/beam_march_line.hpp"

namespace quasi::mosfet {
namespace {

/// Takes Euler steps at fixed levels and adds up what passes the faces.
class EulerSteps {
 public:
  EulerSteps(const BeamOperator& problem, const BeamScattering& scattering, BeamMarched* marched)
      : problem_(problem), scattering_(scattering), marched_(*marched) {}

  /// Sets `to` to share × `to` + (1 − share) × (`from` after an Euler step). The electrons that
  /// pass the faces in the Euler step are counted with the factor passed_share.
  void take(const std::vector<double>& from, double dt_fs, double share, double passed_share,
            std::vector<double>* to) {
    const BeamGeometry& geometry = problem_.geometry();
    const BeamGrid& grid = geometry.grid;
    const int nx = grid.nx, nj = grid.n_kappa, nk = grid.n_h;
    const auto branch = static_cast<std::size_t>(geometry.cells());
    const std::vector<double> feed = feed_of(from);
    double least = 0.0;
    int first_order_lines = 0;
#pragma omp parallel reduction(min : least) reduction(+ : first_order_lines)
    {
      std::vector<double> plus(nx), minus(nx), flux(static_cast<std::size_t>(nx) + 1),
          sum(flux.size());
#pragma omp for schedule(dynamic)
      for (int row = 0; row < geometry.n_states * nk; ++row) {
        const int state = row / nk, k = row % nk;
        std::fill(sum.begin(), sum.end(), 0.0);
        for (int j = 0; j < nj; ++j) {
          const BeamLine line = problem_.line(feed, true, state, k, j);
          const std::size_t first = static_cast<std::size_t>(geometry.node(state, 0)) +
                                    static_cast<std::size_t>(k) * nj + j;
          const BeamLineValues g{&from[first], &from[branch + first], line.stride};
          const BeamLineSolution out{plus.data(), minus.data(), 1};
          double smallest = march_beam_line(line, g, dt_fs, line.third, out, flux.data());
          if (smallest < 0.0 && line.third) {
            smallest = march_beam_line(line, g, dt_fs, false, out, flux.data());
            ++first_order_lines;
          }
          least = std::min(least, smallest);
          for (int n = 0; n <= nx; ++n) sum[n] += flux[n];
          mix(share, plus, line.stride, &(*to)[first]);
          mix(share, minus, line.stride, &(*to)[branch + first]);
        }
        add_passed(state, k, passed_share * dt_fs, sum);
      }
    }
    marched_.least = std::min(marched_.least, least);
    marched_.first_order_lines += first_order_lines;
  }

 private:
  std::vector<double> feed_of(const std::vector<double>& g) const {
    if (!scattering_.scatters()) return {};
    std::vector<double> feed = scattering_.gain(scattering_.mean(g));
    const std::vector<double>& source = scattering_.source();
    for (std::size_t at = 0; at < source.size(); ++at) feed[at] += source[at];
    return feed;
  }

  static void mix(double share, const std::vector<double>& values, std::int64_t stride,
                  double* to) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      double& value = to[static_cast<std::int64_t>(i) * stride];
      value = share == 0.0 ? values[i] : share * value + (1.0 - share) * values[i];
    }
  }

  void add_passed(int state, int k, double time_fs, const std::vector<double>& sum) {
    const BeamGeometry& geometry = problem_.geometry();
    const BeamGrid& grid = geometry.grid;
    // The flux of a line has the factor c_ν/Δx, and a current has c_ν, so that Δx multiplies.
    const double factor = geometry.density_factor[static_cast<std::size_t>(state)] *
                          grid.boltzmann(k) * grid.dx_nm * time_fs;
    for (int n = 0; n <= grid.nx; ++n)
      marched_.passed[(static_cast<std::size_t>(state) * (grid.nx + 1) + n) * grid.n_h + k] +=
          factor * sum[static_cast<std::size_t>(n)];
  }

  const BeamOperator& problem_;
  const BeamScattering& scattering_;
  BeamMarched& marched_;
};

}  // namespace

BeamMarched march_beam(const BeamOperator& problem, const BeamScattering& scattering, double dt_fs,
                       int steps, std::vector<double>* g) {
  const BeamGeometry& geometry = problem.geometry();
  BeamMarched marched;
  marched.passed.resize(static_cast<std::size_t>(geometry.n_states) * (geometry.grid.nx + 1) *
                        geometry.grid.n_h);
  EulerSteps euler(problem, scattering, &marched);
  std::vector<double> stage(g->size());
  for (int step = 0; step < steps; ++step) {
    euler.take(*g, dt_fs, 0.0, 0.5, &stage);
    euler.take(stage, dt_fs, 0.5, 0.5, g);
  }
  return marched;
}

}  // namespace quasi::mosfet
