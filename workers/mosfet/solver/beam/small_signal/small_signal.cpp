#include "workers/mosfet/solver/beam/small_signal/small_signal.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/beam/beam_wave.hpp"
#include "workers/mosfet/kernels/beam/gmres.hpp"
#include "workers/mosfet/kernels/wave/wave_kernels.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/beam/small_signal/field_response.hpp"
#include "workers/mosfet/solver/beam/small_signal/terminal_field.hpp"
#include "workers/mosfet/solver/beam/small_signal/wave_equations.hpp"

namespace quasi::mosfet {
namespace {

using Complex = std::complex<double>;
using Wave = std::vector<Complex>;
constexpr double kTolerance = 1e-10, kTransportTolerance = 1e-11;
constexpr int kMaxProducts = 1000, kRestart = 150;

// Returns the real parts of both, followed by the imaginary parts of both.
std::vector<double> joined(const Wave& means, const Wave& fields) {
  std::vector<double> out;
  out.reserve(2 * (means.size() + fields.size()));
  for (const Wave* part : {&means, &fields})
    for (const Complex& value : *part) out.push_back(value.real());
  for (const Wave* part : {&means, &fields})
    for (const Complex& value : *part) out.push_back(value.imag());
  return out;
}

double omega_of(double frequency_hz) { return 2.0 * units::kPi * frequency_hz * 1e-15; }  // 1/fs

// Returns the currents into the device, A/m. @param electrons  through the faces next to source and
// drain, 1/(nm fs)
std::array<Complex, kTerminals> terminal_currents(const TransportProblem& problem, double omega,
                                                  const std::array<Complex, 2>& electrons,
                                                  const Wave& potential_v) {
  const auto q = terminal_charges(problem, real_part(potential_v)),
             r = terminal_charges(problem, imaginary_part(potential_v));
  const Complex i_omega(0.0, omega);
  std::array<Complex, kTerminals> current{-electrons[0], electrons[1], 0.0};
  for (std::size_t n = 0; n < current.size(); ++n)
    current[n] = kCurrentUnit_a_m * (current[n] + i_omega * Complex(q[n], r[n]));
  return current;
}

}  // namespace

double Admittance::capacitance_f_m(Terminal i, Terminal j) const {
  return frequency_hz > 0.0 ? at(i, j).imag() / (2.0 * units::kPi * frequency_hz) : 0.0;
}

double Admittance::current_gain() const {
  return std::abs(at(Terminal::kDrain, Terminal::kGate) / at(Terminal::kGate, Terminal::kGate));
}

double Admittance::unilateral_gain() const {
  const Complex y21 = at(Terminal::kDrain, Terminal::kGate),
                y12 = at(Terminal::kGate, Terminal::kDrain),
                y11 = at(Terminal::kGate, Terminal::kGate),
                y22 = at(Terminal::kDrain, Terminal::kDrain);
  return std::norm(y21 - y12) / (4.0 * (y11.real() * y22.real() - y12.real() * y21.real()));
}

/// A linearised steady state, with cells of H that stay.
class BeamSmallSignal::Linearised {
 public:
  virtual ~Linearised() = default;
  virtual Admittance at(double frequency_hz) const = 0;
};

/// Takes differences along each direction of the field.
class BeamSmallSignal::Differences : public Linearised {
 public:
  Differences(const BeamDevice& device, const BiasPoint& bias, const BeamSteadyState& state,
              BeamOrder order)
      : device_(device), response_(device, bias, state, order), matrix_(response_.gummel_matrix()) {
    if (response_.has_neutral_inflow())
      inflow_ = {response_.inflow_drive(true), response_.inflow_drive(false)};
  }

  Admittance at(double frequency_hz) const override {
    Admittance out{.frequency_hz = frequency_hz};
    const double omega = omega_of(frequency_hz);
    const BeamWave wave(response_.transport(), response_.scattering(), omega,
                        response_.occupations());
    for (int terminal = 0; terminal < kTerminals; ++terminal) {
      const auto column =
          column_of(wave, omega, static_cast<Terminal>(terminal), &out.field_products);
      for (std::size_t i = 0; i < column.size(); ++i)
        out.y[i][static_cast<std::size_t>(terminal)] = column[i];
    }
    return out;
  }

 private:
  /// The immediate effects of 1 V at a contact.
  struct ContactDrive {
    std::vector<double> entering;       ///< drive by the inflow; empty: none
    std::array<double, 2> excess_ev{};  ///< change of the electrons beyond the wanted ones
  };

  /// Means of δg [n_states][nx][n_h] and the field: δV [nx][nz] and, with neutral inflow, the
  /// shifts of E_F at source and drain, eV.
  struct Unknowns {
    Wave mean, field;
  };
  /// Splits the vector that joined() makes.
  static Unknowns unknowns_of(const std::vector<double>& x, std::size_t means) {
    const std::size_t half = x.size() / 2;
    Unknowns out;
    for (std::size_t at = 0; at < half; ++at)
      (at < means ? out.mean : out.field).emplace_back(x[at], x[half + at]);
    return out;
  }

  /// Response to the unknowns and to electrons that enter.
  struct Reaction {
    Wave mean;                       ///< of δg, after one solution of all lines
    Wave poisson;                    ///< δP [nx][nz]
    std::array<Complex, 2> current;  ///< through the faces next to the contacts
    std::array<Complex, 2> excess;   ///< electrons of the contact columns, eV
  };

  /// @param solves  whether transport is solved to the end, beginning with the means of x
  Reaction react(const BeamWave& wave, double omega, const Unknowns& x, const ContactDrive& driven,
                 bool solves = false) const {
    const auto nodes = static_cast<std::ptrdiff_t>(response_.boundary().fixed.size());
    const Wave potential(x.field.begin(), x.field.begin() + nodes);
    const FieldDerivative a = response_.along(real_part(potential)),
                          b = response_.along(imaginary_part(potential));
    const Complex i_omega(0.0, omega), unit(0.0, 1.0);
    Wave drive(a.rate.size());
    for (std::size_t at = 0; at < drive.size(); ++at) {
      drive[at] = a.rate[at] + unit * b.rate[at] - i_omega * (a.storage[at] + unit * b.storage[at]);
      if (!driven.entering.empty()) drive[at] += driven.entering[at];
    }
    for (std::size_t side = 0; side < inflow_.size(); ++side) {
      const Complex shift_ev = x.field[static_cast<std::size_t>(nodes) + side];
      // The drive of a terminal belongs to −δV = δE_F/e.
      for (std::size_t cell = 0; cell < drive.size(); ++cell)
        drive[cell] -= shift_ev * inflow_[side][cell];
    }
    const Wave g =
        solves ? wave.solve(drive, kTransportTolerance, x.mean) : wave.respond(drive, x.mean);
    const std::vector<double> real = real_part(g), imaginary = imaginary_part(g);
    const std::vector<double> p = response_.poisson_of(real), q = response_.poisson_of(imaginary);
    const std::array<double, 2> in_phase = response_.current_of(real),
                                quadrature = response_.current_of(imaginary),
                                held = response_.excess_of(real),
                                swung = response_.excess_of(imaginary);
    Reaction out{.mean = wave.mean(g), .poisson = Wave(p.size()), .current = {}, .excess = {}};
    for (std::size_t at = 0; at < p.size(); ++at)
      out.poisson[at] = {a.poisson[at] + p[at], b.poisson[at] + q[at]};
    for (const std::size_t n : {0, 1}) {
      out.current[n] = {a.current[n] + in_phase[n], b.current[n] + quadrature[n]};
      out.excess[n] = {a.excess_ev[n] + held[n] + driven.excess_ev[n], b.excess_ev[n] + swung[n]};
    }
    return out;
  }

  /// Returns M⁻¹ δP in the order of the unknowns, with the matrix M of a Gummel step. The excess of
  /// the contact columns is its own preconditioned residual.
  Wave preconditioned(const Reaction& reaction) const {
    std::vector<double> real = real_part(reaction.poisson),
                        imaginary = imaginary_part(reaction.poisson);
    matrix_.solve(real.data());
    matrix_.solve(imaginary.data());
    Wave out;
    for (std::size_t at = 0; at < real.size(); ++at) out.emplace_back(real[at], imaginary[at]);
    for (std::size_t side = 0; side < inflow_.size(); ++side) out.push_back(reaction.excess[side]);
    return out;
  }

  /// Returns the weights of joined unknowns: 1 for the field, and the weights of transport for the
  /// means, so that kT/e everywhere weighs as much as that change of all ln ḡ.
  std::vector<double> weights_of(const BeamWave& wave, std::size_t fields) const {
    std::vector<double> weights = wave.relative_weights();
    const double scale =
        response_.transport().geometry().grid.shape.kt_ev * std::sqrt(static_cast<double>(fields));
    for (double& weight : weights) weight *= scale;
    weights.resize(weights.size() + fields, 1.0);
    weights.insert(weights.end(), weights.begin(), weights.end());
    return weights;
  }

  /// Solves for the unknowns that 1 V at a terminal leaves beside its lift.
  Unknowns solve(const BeamWave& wave, double omega, const Unknowns& lift,
                 const ContactDrive& driven, int* products) const {
    const std::size_t means = lift.mean.size();
    const Reaction driving = react(wave, omega, lift, driven);
    Wave field = preconditioned(driving);
    for (Complex& value : field) value = -value;
    const std::vector<double> rhs = joined(driving.mean, field);
    std::vector<double> found(rhs.size(), 0.0);
    HostVectors vectors;
    vectors.weight = weights_of(wave, field.size());
    const auto apply = [&](const std::vector<double>& x) {
      ++*products;
      const Unknowns at = unknowns_of(x, means);
      Reaction reaction = react(wave, omega, at, {});
      for (std::size_t cell = 0; cell < means; ++cell)
        reaction.mean[cell] = at.mean[cell] - reaction.mean[cell];
      return joined(reaction.mean, preconditioned(reaction));
    };
    const GmresReport report =
        gmres<kRestart>(vectors, apply, rhs, kTolerance, kMaxProducts, &found);
    if (!report.converged)
      throw NotConverged("small signal: GMRES left a residual of " + shown(report.residual) +
                         " after " + std::to_string(report.products) + " products");
    return unknowns_of(found, means);
  }

  /// Returns the column of Y that belongs to 1 V at a terminal.
  std::array<Complex, kTerminals> column_of(const BeamWave& wave, double omega, Terminal terminal,
                                            int* products) const {
    const std::vector<double> raised =
        terminal_lift(device_.structure, response_.boundary(), terminal);
    Unknowns lift{Wave(response_.scattering().states().size()), Wave(raised.begin(), raised.end())};
    lift.field.resize(raised.size() + inflow_.size());
    ContactDrive driven;
    if (terminal != Terminal::kGate) {
      const bool source = terminal == Terminal::kSource;
      driven.entering = response_.inflow_drive(source);
      driven.excess_ev[source ? 0 : 1] = response_.excess_drive(source);
    }
    Unknowns x = solve(wave, omega, lift, driven, products);
    for (std::size_t at = 0; at < x.field.size(); ++at) x.field[at] += lift.field[at];
    const Reaction last = react(wave, omega, x, driven, true);
    x.field.resize(raised.size());
    return terminal_currents(device_.problem, omega, last.current, x.field);
  }

  const BeamDevice& device_;
  FieldResponse response_;
  ColumnMatrix matrix_;
  std::vector<std::vector<double>> inflow_;  ///< drives of source and drain; empty: fixed inflow
};

/// Has the derivatives as tables on a device.
class BeamSmallSignal::Tables : public Linearised {
 public:
  Tables(const BeamDevice& device, const BiasPoint& bias, const BeamSteadyState& state,
         const SmallSignalMethod& method)
      : device_(device),
        kernels_(make_wave_kernels(
            make_wave_problem(FieldResponse(device, bias, state, method.order, method.device)),
            method.device)) {}

  Admittance at(double frequency_hz) const override {
    const double omega = omega_of(frequency_hz);
    const WaveResponses found = kernels_->respond(omega);
    Admittance out{.frequency_hz = frequency_hz, .field_products = kTerminals * found.products};
    for (std::size_t from = 0; from < kTerminals; ++from) {
      const WaveResponse& one = found.of[from];
      const auto column = terminal_currents(device_.problem, omega, one.current, one.potential_v);
      for (std::size_t to = 0; to < kTerminals; ++to) out.y[to][from] = column[to];
    }
    return out;
  }

 private:
  const BeamDevice& device_;
  std::unique_ptr<WaveKernels> kernels_;
};

BeamSmallSignal::BeamSmallSignal(const BeamDevice& device, const BiasPoint& bias,
                                 const BeamSteadyState& state, const SmallSignalMethod& method)
    : bias_(bias) {
  if (method.takes_differences || !has_wave_tables(device))
    linearised_ = std::make_unique<Differences>(device, bias, state, method.order);
  else
    linearised_ = std::make_unique<Tables>(device, bias, state, method);
}
BeamSmallSignal::~BeamSmallSignal() = default;

Admittance BeamSmallSignal::at(double frequency_hz) const {
  Admittance out = linearised_->at(frequency_hz);
  out.row_sums = follow_reference(bias_, &out.y);
  return out;
}

}  // namespace quasi::mosfet
