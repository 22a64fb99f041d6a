#include "workers/mosfet/solver/beam/small_signal/small_signal_noise.hpp"

#include <algorithm>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/beam/beam_wave.hpp"
#include "workers/mosfet/kernels/beam/gmres.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/beam/small_signal/field_transpose.hpp"
#include "workers/mosfet/solver/beam/small_signal/wave_equations.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"
#include "workers/units/constants.hpp"

namespace quasi::mosfet {
namespace {

using Complex = std::complex<double>;
using Wave = std::vector<Complex>;
constexpr double kValleys = 2.0;
constexpr double kFieldTolerance = 1e-9, kTransportTolerance = 1e-11;
constexpr int kMaxFieldProducts = 200;
constexpr std::size_t kSides = 2;  ///< source and drain; the gate has the opposite sum
/// q² of one electron/(fs nm) in A²/(Hz m).
constexpr double kNoiseUnit_a2_hz_m = kCurrentUnit_a_m * kCurrentUnit_a_m * 1e-24;

/// Responses of the two currents to an electron in each cell and to a charge at each node.
struct Adjoint {
  Wave psi;  ///< layout of g
  Wave phi;  ///< [nx][nz]
};

/// Moves of electrons along one line (state, k, j) and their parts in the currents.
struct MovesOfLine {
  const BeamGeometry& geometry;
  const std::vector<double>& g;  ///< variance of occupations in units of g, g (1 − f)
  const std::array<Adjoint, kSides>& adjoint;
  int state;
  std::int64_t line;

  std::size_t plus(int i) const { return static_cast<std::size_t>(geometry.node(state, i) + line); }
  std::size_t minus(int i) const { return plus(i) + g.size() / 2; }
  double area(int n) const {
    return geometry.area[static_cast<std::size_t>(geometry.face(state, n) + line)];
  }

  using Parts = std::array<Complex, kSides>;
  Parts at(std::size_t cell) const { return {adjoint[0].psi[cell], adjoint[1].psi[cell]}; }
  static Parts difference(const Parts& to, const Parts& from) {
    return {to[0] - from[0], to[1] - from[1]};
  }

  /// Calls action(rate, Δ) for every move, with rates in units of g A.
  template <typename Action>
  void for_each(double source, double drain, const Action& action) const {
    const int nx = geometry.grid.nx;
    const Parts none{};
    action(area(0) * source, at(plus(0)));
    action(area(0) * g[minus(0)], difference(none, at(minus(0))));
    action(area(nx) * drain, at(minus(nx - 1)));
    action(area(nx) * g[plus(nx - 1)], difference(none, at(plus(nx - 1))));
    for (int i = 0; i < nx; ++i) {
      const double closes = area(i) - area(i + 1);
      const double turning = closes > 0.0 ? closes * g[plus(i)] : -closes * g[minus(i)];
      action(turning, difference(at(minus(i)), at(plus(i))));
      if (i + 1 == nx) continue;
      // A move along x through the face next to the source is a current out of the source's
      // terminal, −1, and one next to the drain a current into it.
      const Parts passes{i == 0 ? -1.0 : 0.0, i + 2 == nx ? 1.0 : 0.0};
      Parts ahead = difference(at(plus(i + 1)), at(plus(i))),
            back = difference(at(minus(i)), at(minus(i + 1)));
      for (std::size_t side = 0; side < kSides; ++side) {
        ahead[side] += passes[side];
        back[side] -= passes[side];
      }
      action(area(i + 1) * g[plus(i)], ahead);
      action(area(i + 1) * g[minus(i + 1)], back);
    }
  }
};

double omega_of(double frequency_hz) { return 2.0 * units::kPi * frequency_hz * 1e-15; }  // 1/fs

// Sets the rows of the gate, and its column of S, so that currents add to zero. Y then follows the
// reference potential.
void close(const BiasPoint& bias, NoiseSpectrum* out) {
  for (std::size_t i = 0; i < kSides; ++i) out->s[i][2] = -out->s[i][0] - out->s[i][1];
  for (NoiseSpectrum::Matrix* m : {&out->s, &out->y})
    for (std::size_t j = 0; j < kTerminals; ++j) (*m)[2][j] = -(*m)[0][j] - (*m)[1][j];
  follow_reference(bias, &out->y);
}

}  // namespace

/// A linearised steady state of first order.
class BeamFieldNoise::Linearised {
 public:
  virtual ~Linearised() = default;
  virtual double current_a_per_m() const = 0;
  virtual NoiseSpectrum at(double frequency_hz) const = 0;
};

/// Has the transposes of the derivatives as sums on the host.
class BeamFieldNoise::HostSums : public Linearised {
 public:
  HostSums(const BeamDevice& device, const BiasPoint& bias, const BeamSteadyState& state,
           bool field_responds)
      : device_(device),
        field_responds_(field_responds),
        bias_(bias),
        response_(device, bias, state, BeamOrder::kFirst),
        transpose_(response_),
        matrix_(response_.gummel_matrix()) {}

  double current_a_per_m() const override {
    return kCurrentUnit_a_m * response_.current_of(response_.occupations())[1];
  }

  NoiseSpectrum at(double frequency_hz) const override {
    NoiseSpectrum out{.frequency_hz = frequency_hz};
    const double omega = omega_of(frequency_hz);
    const BeamWave wave(response_.transport(), response_.scattering(), omega,
                        response_.occupations());
    const std::array<Adjoint, kSides> adjoint{adjoint_of(wave, omega, Terminal::kSource),
                                              adjoint_of(wave, omega, Terminal::kDrain)};
    const auto sums = noise_of(adjoint);
    for (std::size_t i = 0; i < kSides; ++i)
      for (std::size_t j = 0; j < kSides; ++j) out.s[i][j] = kNoiseUnit_a2_hz_m * sums[i][j];
    for (int terminal = 0; terminal < kTerminals; ++terminal)
      for (std::size_t side = 0; side < kSides; ++side)
        out.y[side][static_cast<std::size_t>(terminal)] =
            admittance(adjoint[side], omega, side == 0, static_cast<Terminal>(terminal));
    close(bias_, &out);
    return out;
  }

 private:
  /// Returns the sign of the electrons' current along x in the current of a terminal.
  static double sign_of(Terminal terminal) { return terminal == Terminal::kSource ? -1.0 : 1.0; }

  /// Returns the drive of the transposed transport problem: w⁻¹(c − pᵀΦ) with the branches
  /// exchanged. @param terminal  whose current is observed; null: none
  Wave drive_of(const Terminal* terminal, const Wave& phi) const {
    const BeamGeometry& geometry = response_.transport().geometry();
    const std::size_t branch = static_cast<std::size_t>(geometry.cells()),
                      lines = static_cast<std::size_t>(geometry.lines());
    Wave drive(2 * branch, 0.0);
    if (!phi.empty()) {
      const std::vector<double> real = transpose_.potential_of_electrons(real_part(phi)),
                                imaginary = transpose_.potential_of_electrons(imaginary_part(phi));
      for (std::size_t at = 0; at < branch; ++at)
        drive[at] = drive[branch + at] = -geometry.volume[at] / geometry.grid.dx_nm *
                                         Complex(real[at / lines], imaginary[at / lines]);
    }
    if (terminal == nullptr) return drive;
    const int n = *terminal == Terminal::kSource ? 1 : geometry.grid.nx - 1;
    for (int state = 0; state < geometry.n_states; ++state)
      for (std::int64_t line = 0; line < geometry.lines(); ++line) {
        const double rate = sign_of(*terminal) *
                            geometry.speed_factor[static_cast<std::size_t>(state)] /
                            geometry.grid.dx_nm *
                            geometry.area[static_cast<std::size_t>(geometry.face(state, n) + line)];
        drive[branch + static_cast<std::size_t>(geometry.node(state, n - 1) + line)] += rate;
        drive[static_cast<std::size_t>(geometry.node(state, n) + line)] -= rate;
      }
    return drive;
  }

  /// Returns Ψ for given Φ. Motion is reversible, so that transposed streaming is streaming with
  /// the branches exchanged.
  Wave psi_of(const BeamWave& wave, const Terminal* terminal, const Wave& phi) const {
    Wave psi = wave.solve_transposed(drive_of(terminal, phi), kTransportTolerance);
    std::swap_ranges(psi.begin(), psi.begin() + static_cast<std::ptrdiff_t>(psi.size() / 2),
                     psi.begin() + static_cast<std::ptrdiff_t>(psi.size() / 2));
    return psi;
  }

  /// Returns P'ᵀΦ − (∂R/∂φ)ᵀΨ + iω (storage)ᵀΨ.
  Wave field_residual(double omega, const Wave& psi, const Wave& phi) const {
    const std::vector<double> re = real_part(psi), im = imaginary_part(psi);
    const std::vector<double> rate_re = transpose_.of_rate(re), rate_im = transpose_.of_rate(im),
                              held_re = transpose_.of_storage(re),
                              held_im = transpose_.of_storage(im);
    Wave out(rate_re.size());
    for (std::size_t at = 0; at < out.size(); ++at)
      out[at] = -Complex(rate_re[at], rate_im[at]) +
                Complex(0.0, omega) * Complex(held_re[at], held_im[at]);
    if (phi.empty()) return out;
    const std::vector<double> p = transpose_.of_poisson(real_part(phi)),
                              q = transpose_.of_poisson(imaginary_part(phi));
    for (std::size_t at = 0; at < out.size(); ++at) out[at] += Complex(p[at], q[at]);
    return out;
  }

  /// Returns M⁻¹ of a residual, real parts before imaginary parts.
  std::vector<double> preconditioned(const Wave& residual) const {
    std::vector<double> real = real_part(residual), imaginary = imaginary_part(residual);
    matrix_.solve(real.data());
    matrix_.solve(imaginary.data());
    real.insert(real.end(), imaginary.begin(), imaginary.end());
    return real;
  }

  static Wave folded(const std::vector<double>& values) {
    Wave out(values.size() / 2);
    for (std::size_t at = 0; at < out.size(); ++at) out[at] = {values[at], values[at + out.size()]};
    return out;
  }

  Adjoint adjoint_of(const BeamWave& wave, double omega, Terminal terminal) const {
    Adjoint out{psi_of(wave, &terminal, {}), {}};
    const std::size_t nodes = response_.boundary().fixed.size();
    out.phi.assign(nodes, 0.0);
    if (!field_responds_) return out;
    const std::vector<double> current = transpose_.of_current(terminal == Terminal::kSource),
                              charge = terminal_charge_slopes(response_.structure(), terminal);
    Wave residual = field_residual(omega, out.psi, {});
    for (std::size_t at = 0; at < nodes; ++at) {
      if (response_.boundary().fixed[at] != 0) continue;
      residual[at] -= sign_of(terminal) * current[at] + Complex(0.0, omega * charge[at]);
    }
    std::vector<double> rhs = preconditioned(residual), phi(rhs.size(), 0.0);
    for (double& value : rhs) value = -value;
    const auto apply = [&](const std::vector<double>& x) {
      const Wave here = folded(x);
      return preconditioned(field_residual(omega, psi_of(wave, nullptr, here), here));
    };
    const GmresReport report =
        gmres(HostVectors{}, apply, rhs, kFieldTolerance, kMaxFieldProducts, &phi);
    if (!report.converged)
      throw NotConverged("noise: GMRES of the field left a residual of " + shown(report.residual) +
                         " after " + std::to_string(report.products) + " products");
    out.phi = folded(phi);
    out.psi = psi_of(wave, &terminal, out.phi);
    return out;
  }

  /// Returns the variance of the occupation of a cell of H in units of g: g, and g (1 − f) with
  /// Fermi statistics.
  double variance_of(double g, int k) const {
    const BeamGrid& grid = response_.transport().geometry().grid;
    return grid.shape.fermi ? g * (1.0 - g * grid.boltzmann(k)) : g;
  }
  std::vector<double> variance_of(const std::vector<double>& g) const {
    const BeamGrid& grid = response_.transport().geometry().grid;
    std::vector<double> out(g.size());
    for (std::size_t at = 0; at < g.size(); ++at)
      out[at] = variance_of(g[at], static_cast<int>(at / grid.n_kappa % grid.n_h));
    return out;
  }

  std::array<std::array<Complex, kSides>, kSides> noise_of(
      const std::array<Adjoint, kSides>& adjoint) const {
    const BeamGeometry& geometry = response_.transport().geometry();
    const BeamInflow& inflow = response_.transport().inflow();
    const std::vector<double>& g = response_.occupations();
    const std::vector<double> spread = variance_of(g);
    std::array<std::array<Complex, kSides>, kSides> sums{};
    for (int state = 0; state < geometry.n_states; ++state)
      for (std::int64_t line = 0; line < geometry.lines(); ++line) {
        const auto k = static_cast<std::size_t>(line / geometry.grid.n_kappa);
        const double factor = 2.0 * kValleys *
                              geometry.density_factor[static_cast<std::size_t>(state)] *
                              geometry.speed_factor[static_cast<std::size_t>(state)] *
                              geometry.grid.boltzmann(static_cast<int>(k));
        const int cell = static_cast<int>(k);
        MovesOfLine{geometry, spread, adjoint, state, line}.for_each(
            variance_of(inflow.source[k], cell), variance_of(inflow.drain[k], cell),
            [&](double rate, const std::array<Complex, kSides>& parts) {
              for (std::size_t i = 0; i < kSides; ++i)
                for (std::size_t j = 0; j < kSides; ++j)
                  sums[i][j] += factor * rate * parts[i] * std::conj(parts[j]);
            });
      }
    if (!response_.scattering().scatters()) return sums;
    const double factor = 2.0 * kValleys * geometry.grid.dx_nm;
    for (std::size_t i = 0; i < kSides; ++i)
      for (std::size_t j = i; j < kSides; ++j) {
        const std::vector<double> a = real_part(adjoint[i].psi), b = imaginary_part(adjoint[i].psi),
                                  c = real_part(adjoint[j].psi), d = imaginary_part(adjoint[j].psi);
        const BeamScattering& scattering = response_.scattering();
        const Complex both(scattering.noise(g, a, c) + scattering.noise(g, b, d),
                           scattering.noise(g, b, c) - scattering.noise(g, a, d));
        sums[i][j] += factor * both;
        if (i != j) sums[j][i] += factor * std::conj(both);
      }
    return sums;
  }

  /// Returns Y of one current and one terminal: the response to the drive by 1 V.
  Complex admittance(const Adjoint& adjoint, double omega, bool source, Terminal terminal) const {
    const BeamGeometry& geometry = response_.transport().geometry();
    const Complex i_omega(0.0, omega);
    Wave drive(response_.occupations().size(), 0.0);
    Complex direct = 0.0;
    if (field_responds_) {
      const std::vector<double> lift =
          terminal_lift(response_.structure(), response_.boundary(), terminal);
      const FieldDerivative a = response_.along(lift);
      for (std::size_t at = 0; at < drive.size(); ++at)
        drive[at] = a.rate[at] - i_omega * a.storage[at];
      for (std::size_t at = 0; at < lift.size(); ++at) direct -= adjoint.phi[at] * a.poisson[at];
      direct += source ? -a.current[0] : a.current[1];
      direct += i_omega * terminal_charges(device_.problem, lift)[source ? 0 : 1];
    }
    if (terminal != Terminal::kGate) {
      const std::vector<double> entering = response_.inflow_drive(terminal == Terminal::kSource);
      for (std::size_t at = 0; at < drive.size(); ++at) drive[at] += entering[at];
    }
    const std::size_t branch = drive.size() / 2, lines = static_cast<std::size_t>(geometry.lines());
    for (std::size_t at = 0; at < branch; ++at)
      direct += transpose_.weight(static_cast<int>(at / lines / geometry.grid.nx),
                                  static_cast<int>(at % lines / geometry.grid.n_kappa)) *
                (adjoint.psi[at] * drive[at] + adjoint.psi[branch + at] * drive[branch + at]);
    return kCurrentUnit_a_m * direct;
  }

  const BeamDevice& device_;
  bool field_responds_;
  BiasPoint bias_;
  FieldResponse response_;
  FieldTranspose transpose_;
  ColumnMatrix matrix_;
};

/// Has the derivatives as tables on a device.
class BeamFieldNoise::Tables : public Linearised {
 public:
  Tables(const BeamDevice& device, const BiasPoint& bias, const BeamSteadyState& state,
         const NoiseMethod& method)
      : bias_(bias) {
    const FieldResponse response(device, bias, state, BeamOrder::kFirst, method.device);
    current_a_per_m_ = kCurrentUnit_a_m * response.current_of(response.occupations())[1];
    kernels_ = make_wave_noise_kernels(make_wave_problem(response),
                                       make_wave_observation(response, method.field_responds),
                                       method.device);
  }

  double current_a_per_m() const override { return current_a_per_m_; }

  NoiseSpectrum at(double frequency_hz) const override {
    const WaveNoise found = kernels_->at(omega_of(frequency_hz));
    NoiseSpectrum out{.frequency_hz = frequency_hz};
    for (std::size_t i = 0; i < kSides; ++i) {
      for (std::size_t j = 0; j < kSides; ++j)
        out.s[i][j] = kNoiseUnit_a2_hz_m * found.density[i][j];
      for (std::size_t j = 0; j < kTerminals; ++j)
        out.y[i][j] = kCurrentUnit_a_m * found.admittance[i][j];
    }
    close(bias_, &out);
    return out;
  }

 private:
  BiasPoint bias_;
  double current_a_per_m_ = 0;
  std::unique_ptr<WaveNoiseKernels> kernels_;
};

BeamFieldNoise::BeamFieldNoise(const BeamDevice& device, const BiasPoint& bias,
                               const BeamSteadyState& state, const NoiseMethod& method) {
  if (method.sums_on_host || !has_wave_tables(device))
    linearised_ = std::make_unique<HostSums>(device, bias, state, method.field_responds);
  else
    linearised_ = std::make_unique<Tables>(device, bias, state, method);
}
BeamFieldNoise::~BeamFieldNoise() = default;

NoiseSpectrum BeamFieldNoise::at(double frequency_hz) const {
  return linearised_->at(frequency_hz);
}

double BeamFieldNoise::current_a_per_m() const { return linearised_->current_a_per_m(); }

}  // namespace quasi::mosfet
