#include "workers/mosfet/kernels/beam/beam_wave.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/beam/beam_transport.hpp"
#include "workers/mosfet/kernels/beam/gmres.hpp"

namespace quasi::mosfet {
namespace {

using Complex = std::complex<double>;
using Wave = std::vector<Complex>;
constexpr int kMaxProducts = 1000;

Wave complex_of(const std::vector<double>& real, const std::vector<double>& imaginary) {
  Wave out(real.size());
  for (std::size_t at = 0; at < out.size(); ++at) out[at] = {real[at], imaginary[at]};
  return out;
}

// Returns the real parts followed by the imaginary parts.
std::vector<double> unfolded(const Wave& values) {
  std::vector<double> out = real_part(values);
  const std::vector<double> imaginary = imaginary_part(values);
  out.insert(out.end(), imaginary.begin(), imaginary.end());
  return out;
}
Wave folded(const std::vector<double>& values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  return complex_of({values.begin(), half}, {half, values.end()});
}

/// Right side of one line: the drive of both branches, plus V times the gain, plus V δλ (ḡ −
/// g). Null: none.
struct LineDrive {
  const Complex* plus = nullptr;
  const Complex* minus = nullptr;
  const Complex* gain = nullptr;
  const Complex* loss = nullptr;         ///< δλ
  const double* uneven_plus = nullptr;   ///< ḡ − g⁺
  const double* uneven_minus = nullptr;  ///< ḡ − g⁻
};

// Solves one line as solve_beam_line() does, with iωV on the diagonal and a drive in every cell.
// The solution begins at `plus` and `minus` with the stride of the line. `work` has nx nodes.
void solve_line(const BeamLine& line, double omega_per_fs, const LineDrive& drive,
                std::vector<BeamEliminatedNode<Complex>>& work, Complex* plus, Complex* minus) {
  const BeamWell well = line.loss == nullptr ? beam_well(line) : BeamWell{};
  const auto is_open = [&](int n) {
    return line.third && n > 0 && n < line.nx && line.area[n * line.stride] == line.full;
  };
  const auto is_smooth = [&](int first) {
    return is_open(first) && is_open(first + 1) && is_open(first + 2) && is_open(first + 3);
  };
  const BeamEliminatedNode<Complex> none{};
  for (int i = 0; i < line.nx; ++i) {
    const double volume = line.volume[i * line.stride];
    const double rate = line.loss != nullptr               ? line.loss[i * line.row_stride]
                        : i >= well.first && i < well.last ? kBeamWellLoss
                                                           : 0.0;
    const BeamRow row = beam_row(line.scale * line.area[i * line.stride],
                                 line.scale * line.area[(i + 1) * line.stride], volume * rate,
                                 {is_smooth(i - 2), is_smooth(i - 1), is_smooth(i)});
    Complex plus_rhs = drive.plus != nullptr ? drive.plus[i * line.stride] : 0.0;
    Complex minus_rhs = drive.minus != nullptr ? drive.minus[i * line.stride] : 0.0;
    if (drive.gain != nullptr) {
      const Complex fed = volume * drive.gain[i * line.row_stride];
      plus_rhs += fed;
      minus_rhs += fed;
    }
    if (drive.loss != nullptr) {
      const Complex lost = volume * drive.loss[i * line.row_stride];
      plus_rhs += lost * drive.uneven_plus[i * line.stride];
      minus_rhs += lost * drive.uneven_minus[i * line.stride];
    }
    work[i] =
        eliminate_beam_row<Complex>(row, Complex(0.0, omega_per_fs * volume), plus_rhs, minus_rhs,
                                    i > 1 ? work[i - 2] : none, i > 0 ? work[i - 1] : none);
  }
  Complex next_plus = 0.0, next_minus = 0.0, second_minus = 0.0;
  for (int i = line.nx - 1; i >= 0; --i) {
    const BeamEliminatedNode<Complex>& w = work[i];
    const Complex here_plus = w.d0 - w.p00 * next_plus - w.p01 * next_minus - w.q0 * second_minus;
    const Complex here_minus = w.d1 - w.p10 * next_plus - w.p11 * next_minus - w.q1 * second_minus;
    plus[i * line.stride] = here_plus;
    minus[i * line.stride] = here_minus;
    second_minus = next_minus;
    next_plus = here_plus;
    next_minus = here_minus;
  }
}

}  // namespace

std::vector<double> real_part(const Wave& values) {
  std::vector<double> out;
  out.reserve(values.size());
  for (const Complex& value : values) out.push_back(value.real());
  return out;
}

std::vector<double> imaginary_part(const Wave& values) {
  std::vector<double> out;
  out.reserve(values.size());
  for (const Complex& value : values) out.push_back(value.imag());
  return out;
}

BeamWave::BeamWave(const BeamOperator& problem, const BeamScattering& scattering,
                   double omega_per_fs, const std::vector<double>& steady)
    : problem_(problem), scattering_(scattering), omega_per_fs_(omega_per_fs) {
  if (!scattering.blocks()) return;
  const auto nj = static_cast<std::size_t>(problem.geometry().grid.n_kappa);
  const std::vector<double> mean = scattering.mean(steady);
  unevenness_.resize(steady.size());
  for (std::size_t at = 0; at < steady.size(); ++at)
    unevenness_[at] = mean[at / nj % mean.size()] - steady[at];
}

BeamWave::CellFeed BeamWave::feed_of(const Wave& mean) const {
  const std::vector<double> real = real_part(mean), imaginary = imaginary_part(mean);
  CellFeed feed{complex_of(scattering_.gain(real), scattering_.gain(imaginary)), {}};
  if (scattering_.blocks())
    feed.loss = complex_of(scattering_.blocked_loss(real), scattering_.blocked_loss(imaginary));
  return feed;
}

Wave BeamWave::solve_lines(const Wave& drive, const CellFeed& feed) const {
  const BeamGeometry& geometry = problem_.geometry();
  const BeamGrid& grid = geometry.grid;
  Wave g(problem_.size());
  const std::size_t branch = g.size() / 2;
#pragma omp parallel
  {
    std::vector<BeamEliminatedNode<Complex>> work(static_cast<std::size_t>(grid.nx));
#pragma omp for schedule(dynamic)
    for (int row = 0; row < geometry.n_states * grid.n_h; ++row)
      for (int j = 0; j < grid.n_kappa; ++j) {
        const int state = row / grid.n_h, k = row % grid.n_h;
        const auto first = static_cast<std::size_t>(geometry.node(state, 0)) +
                           static_cast<std::size_t>(k) * grid.n_kappa + j;
        const std::size_t cell = static_cast<std::size_t>(state) * grid.nx * grid.n_h + k;
        LineDrive one;
        if (!drive.empty()) {
          one.plus = &drive[first];
          one.minus = &drive[branch + first];
        }
        if (!feed.gain.empty()) one.gain = &feed.gain[cell];
        if (!feed.loss.empty()) {
          one.loss = &feed.loss[cell];
          one.uneven_plus = &unevenness_[first];
          one.uneven_minus = &unevenness_[branch + first];
        }
        solve_line(problem_.line({}, false, state, k, j), omega_per_fs_, one, work, &g[first],
                   &g[branch + first]);
      }
  }
  return g;
}

Wave BeamWave::respond(const Wave& drive, const Wave& mean) const {
  return solve_lines(drive, scattering_.scatters() ? feed_of(mean) : CellFeed{});
}

Wave BeamWave::mean(const Wave& g) const {
  return complex_of(scattering_.mean(real_part(g)), scattering_.mean(imaginary_part(g)));
}

std::vector<double> BeamWave::relative_weights() const {
  const BeamGeometry& geometry = problem_.geometry();
  const std::vector<double> arriving = problem_.line_mean(scattering_.source(), true);
  std::vector<double> weights = beam_electron_weights(
      geometry.grid, problem_.inflow(), geometry.density_factor, scattering_.states(), arriving);
  double electrons = 0.0;
  for (std::size_t cell = 0; cell < weights.size(); ++cell)
    electrons += (weights[cell] * arriving[cell]) * (weights[cell] * arriving[cell]);
  for (double& weight : weights) weight /= std::sqrt(electrons);
  return weights;
}

Wave BeamWave::gmres_of(const Wave& rhs, const Wave& start, double tolerance,
                        const std::function<Wave(const Wave&)>& image) const {
  HostVectors vectors;
  vectors.weight = relative_weights();
  const std::size_t rows = vectors.weight.size();
  vectors.weight.resize(2 * rows);
  std::copy_n(vectors.weight.begin(), rows,
              vectors.weight.begin() + static_cast<std::ptrdiff_t>(rows));
  std::vector<double> x = unfolded(start);
  const auto apply = [&](const std::vector<double>& from) {
    std::vector<double> out = unfolded(image(folded(from)));
    for (std::size_t at = 0; at < out.size(); ++at) out[at] = from[at] - out[at];
    return out;
  };
  const GmresReport report = gmres(vectors, apply, unfolded(rhs), tolerance, kMaxProducts, &x);
  if (!report.converged)
    throw NotConverged("small signal: GMRES of transport left a residual of " +
                       std::to_string(report.residual) + " after " +
                       std::to_string(report.products) + " line solves");
  return folded(x);
}

Wave BeamWave::solve(const Wave& drive, double tolerance, const Wave& start) const {
  Wave first = solve_lines(drive, {});
  if (!scattering_.scatters()) return first;
  const Wave rhs = this->mean(first);
  const Wave mean = gmres_of(rhs, start.empty() ? rhs : start, tolerance, [&](const Wave& x) {
    return this->mean(solve_lines({}, feed_of(x)));
  });
  return solve_lines(drive, feed_of(mean));
}

// Returns the transposed gain of Ψ with exchanged branches, over λ.
Wave BeamWave::transposed_feed(const Wave& psi) const {
  const std::size_t branch = psi.size() / 2;
  Wave uneven(psi);
  for (std::size_t at = 0; at < psi.size(); ++at)
    uneven[at] *= unevenness_[at < branch ? at + branch : at - branch];
  const Wave even = mean(psi), spread = mean(uneven);
  Wave feed = complex_of(scattering_.transposed_gain(real_part(even), real_part(spread)),
                         scattering_.transposed_gain(imaginary_part(even), imaginary_part(spread)));
  for (std::size_t cell = 0; cell < feed.size(); ++cell) feed[cell] /= relaxation_scale(cell);
  return feed;
}

double BeamWave::relaxation_scale(std::size_t cell) const {
  const double loss = scattering_.loss()[cell];
  return loss > 0.0 ? loss : 1.0;
}

// With blocking the gain depends on two sums over each cell of H. Its own value, over λ, is the
// only unknown then.
Wave BeamWave::solve_transposed(const Wave& drive, double tolerance) const {
  if (!scattering_.blocks()) return solve(drive, tolerance);
  const auto gain_of = [&](Wave x) {
    for (std::size_t cell = 0; cell < x.size(); ++cell) x[cell] *= relaxation_scale(cell);
    return CellFeed{std::move(x), {}};
  };
  const Wave rhs = transposed_feed(solve_lines(drive, {}));
  const Wave found = gmres_of(rhs, rhs, tolerance, [&](const Wave& x) {
    return transposed_feed(solve_lines({}, gain_of(x)));
  });
  return solve_lines(drive, gain_of(found));
}

}  // namespace quasi::mosfet
