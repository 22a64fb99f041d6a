#include "workers/mosfet/solver/beam/small_signal/small_signal.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/beam/beam_wave.hpp"
#include "workers/mosfet/kernels/beam/gmres.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/beam/small_signal/field_response.hpp"
#include "workers/mosfet/solver/beam/small_signal/terminal_field.hpp"

namespace quasi::mosfet {
namespace {

using Complex = std::complex<double>;
using Wave = std::vector<Complex>;
constexpr double kFieldTolerance = 1e-9, kTransportTolerance = 1e-11;
constexpr int kMaxFieldProducts = 200;

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

/// A linearised steady state.
class BeamSmallSignal::Linearised {
 public:
  Linearised(const BeamDevice& device, const BiasPoint& bias, const BeamSteadyState& state,
             BeamOrder order)
      : device_(device), response_(device, bias, state, order), matrix_(response_.gummel_matrix()) {
    if (response_.has_neutral_inflow())
      inflow_ = {response_.inflow_drive(true), response_.inflow_drive(false)};
  }

  Admittance at(double frequency_hz) const {
    Admittance out{.frequency_hz = frequency_hz};
    const double omega = 2.0 * units::kPi * frequency_hz * 1e-15;  // 1/fs
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

  /// Response to complex unknowns and to electrons that enter.
  struct Reaction {
    Wave poisson;                    ///< δP [nx][nz]
    std::array<Complex, 2> current;  ///< through the faces next to the contacts
    std::array<Complex, 2> excess;   ///< electrons of the contact columns, eV
  };

  /// Computes the reaction to unknowns, given as real parts followed by imaginary parts. Each half
  /// has δV [nx][nz] and, with neutral inflow, the shifts of E_F at source and drain, eV.
  Reaction react(const BeamWave& wave, double omega, const std::vector<double>& unknowns,
                 const ContactDrive& driven) const {
    const auto first = unknowns.begin(),
               half = first + static_cast<std::ptrdiff_t>(unknowns.size() / 2);
    const auto nodes = static_cast<std::ptrdiff_t>(response_.boundary().fixed.size());
    const FieldDerivative a = response_.along({first, first + nodes}),
                          b = response_.along({half, half + nodes});
    const Complex i_omega(0.0, omega), unit(0.0, 1.0);
    Wave drive(a.rate.size());
    for (std::size_t at = 0; at < drive.size(); ++at) {
      drive[at] = a.rate[at] + unit * b.rate[at] - i_omega * (a.storage[at] + unit * b.storage[at]);
      if (!driven.entering.empty()) drive[at] += driven.entering[at];
    }
    for (std::size_t side = 0; side < inflow_.size(); ++side) {
      const auto at = nodes + static_cast<std::ptrdiff_t>(side);
      const Complex shift_ev(first[at], half[at]);
      // The drive of a terminal belongs to −δV = δE_F/e.
      for (std::size_t cell = 0; cell < drive.size(); ++cell)
        drive[cell] -= shift_ev * inflow_[side][cell];
    }
    const Wave g = wave.solve(drive, kTransportTolerance);
    const std::vector<double> real = real_part(g), imaginary = imaginary_part(g);
    const std::vector<double> p = response_.poisson_of(real), q = response_.poisson_of(imaginary);
    const std::array<double, 2> in_phase = response_.current_of(real),
                                quadrature = response_.current_of(imaginary),
                                held = response_.excess_of(real),
                                swung = response_.excess_of(imaginary);
    Reaction out{.poisson = Wave(p.size()), .current = {}, .excess = {}};
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
  std::vector<double> preconditioned(const Reaction& reaction) const {
    std::vector<double> real = real_part(reaction.poisson),
                        imaginary = imaginary_part(reaction.poisson);
    matrix_.solve(real.data());
    matrix_.solve(imaginary.data());
    for (std::size_t side = 0; side < inflow_.size(); ++side) {
      real.push_back(reaction.excess[side].real());
      imaginary.push_back(reaction.excess[side].imag());
    }
    real.insert(real.end(), imaginary.begin(), imaginary.end());
    return real;
  }

  /// Returns the column of Y that belongs to 1 V at a terminal.
  std::array<Complex, kTerminals> column_of(const BeamWave& wave, double omega, Terminal terminal,
                                            int* products) const {
    std::vector<double> lift = terminal_lift(device_.structure, response_.boundary(), terminal);
    ContactDrive driven;
    const std::size_t nodes = lift.size(), half_size = nodes + inflow_.size();
    lift.resize(2 * half_size, 0.0);
    if (terminal != Terminal::kGate) {
      const bool source = terminal == Terminal::kSource;
      driven.entering = response_.inflow_drive(source);
      driven.excess_ev[source ? 0 : 1] = response_.excess_drive(source);
    }
    std::vector<double> rhs = preconditioned(react(wave, omega, lift, driven));
    for (double& value : rhs) value = -value;
    std::vector<double> field(2 * half_size, 0.0);
    const HostVectors vectors;
    const auto apply = [&](const std::vector<double>& x) {
      ++*products;
      return preconditioned(react(wave, omega, x, {}));
    };
    const GmresReport report =
        gmres(vectors, apply, rhs, kFieldTolerance, kMaxFieldProducts, &field);
    if (!report.converged)
      throw NotConverged("small signal: GMRES of the field left a residual of " +
                         shown(report.residual) + " after " + std::to_string(report.products) +
                         " products");
    vectors.add(1.0, lift, &field);
    const Reaction last = react(wave, omega, field, driven);
    const auto count = static_cast<std::ptrdiff_t>(nodes);
    const auto half = field.begin() + static_cast<std::ptrdiff_t>(half_size);
    const auto q = terminal_charges(device_.problem, {field.begin(), field.begin() + count}),
               r = terminal_charges(device_.problem, {half, half + count});
    const Complex i_omega(0.0, omega);
    std::array<Complex, kTerminals> current{-last.current[0], last.current[1], 0.0};
    for (std::size_t n = 0; n < current.size(); ++n)
      current[n] = kCurrentUnit_a_m * (current[n] + i_omega * Complex(q[n], r[n]));
    return current;
  }

  const BeamDevice& device_;
  FieldResponse response_;
  ColumnMatrix matrix_;
  std::vector<std::vector<double>> inflow_;  ///< drives of source and drain; empty: fixed inflow
};

BeamSmallSignal::BeamSmallSignal(const BeamDevice& device, const BiasPoint& bias,
                                 const BeamSteadyState& state, BeamOrder order)
    : linearised_(std::make_unique<Linearised>(device, bias, state, order)) {}
BeamSmallSignal::~BeamSmallSignal() = default;

Admittance BeamSmallSignal::at(double frequency_hz) const { return linearised_->at(frequency_hz); }

}  // namespace quasi::mosfet
