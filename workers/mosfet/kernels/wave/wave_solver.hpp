#pragma once

#include <string>
#include <utility>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/wave/wave_field.hpp"
#include "workers/mosfet/kernels/wave/wave_gmres.hpp"
#include "workers/mosfet/kernels/wave/wave_kernels.hpp"
#include "workers/mosfet/kernels/wave/wave_line.hpp"
#include "workers/mosfet/kernels/wave/wave_upload.hpp"

namespace quasi::mosfet {

/// Solves a small-signal problem (docs/theory/mosfet.md 17.8) on a machine, which is the host or a
/// CUDA device. The arithmetic is in function objects that run on both, index by index.
/// @tparam Machine  has Array<T> with data() and size(), make<T>(count, what), upload(address,
/// count, what), download(address, count, what), and run(count, body, what), which calls body(i)
/// for every i in [0, count)
template <typename Machine>
class WaveSolver : public WaveKernels {
 public:
  template <typename T>
  using Array = typename Machine::template Array<T>;
  using Vectors = WaveVectors<Machine>;
  using Vector = typename Vectors::Vector;

  /// Copies the tables of a problem to the machine and makes all arrays there, apart from the
  /// directions of GMRES.
  WaveSolver(const WaveProblem& problem, Machine machine)
      : machine_(std::move(machine)),
        upload_(problem, machine_),
        tables_(upload_.tables()),
        vectors_(machine_, problem.shape.size(), tables_.weights) {
    const WaveShape& s = tables_.shape;
    const auto rows = kWaveColumns * s.rows(), lines = s.n_states * s.lines(),
               states = static_cast<std::int64_t>(kWaveColumns) * s.n_states;
    node_ = make(states * s.nx);
    face_ = make(states * (s.nx + 1));
    overlap_ = make(kWaveColumns * s.pairs() * s.nx);
    for (Array<WaveValue>* each : {&of_row_[0], &of_row_[1], &loss_, &gain_, &mean_})
      *each = make(rows);
    for (Array<WaveValue>& each : sums_) each = make(2 * rows);
    work_ = make(s.nx * lines * kWaveWork);
    electrons_ = make(kWaveColumns * s.cells());
    ends_ = make(kWaveColumns * kWaveEnds * lines);
    sheet_ = make(states * s.nx);
    poisson_ = make(kWaveColumns * s.nodes());
    parts_ = make(kInverseParts * kWaveColumns * s.nodes());
    current_ = make(states * kWaveContacts * s.n_h);
    for (Vector* each : {&lift_, &field_, &means_, &rhs_, &total_}) *each = vectors_.take();
    fill_lift(problem);
  }

  WaveResponses respond(double omega_per_fs) override {
    constexpr double kTolerance = 1e-10, kTransportTolerance = 1e-11;
    omega_per_fs_ = omega_per_fs;
    WaveResponses out;
    right_side({lift_.data(), true}, WaveEquations::kAll);
    vectors_.add(0.0, {}, rhs_, &total_);
    out.products += solve(WaveEquations::kAll, kTolerance, &total_);
    vectors_.add(1.0, kOne, lift_, &total_);
    split(false, total_, &field_);
    split(true, total_, &means_);
    right_side({field_.data(), true}, WaveEquations::kTransport);
    out.products += solve(WaveEquations::kTransport, kTransportTolerance, &means_);
    vectors_.add(0.0, kOne, field_, &total_);
    vectors_.add(1.0, kOne, means_, &total_);
    react({total_.data(), true}, ends_.data());
    ++out.products;
    read_currents(&out);
    read_potentials(&out);
    return out;
  }

 private:
  static constexpr WaveFactors kOne{{{1.0, 0.0}, {1.0, 0.0}, {1.0, 0.0}}};
  static constexpr int kMaxProducts = 1000;

  Array<WaveValue> make(std::int64_t count) const {
    return machine_.template make<WaveValue>(static_cast<std::size_t>(count), "small signal");
  }
  void fill_lift(const WaveProblem& problem) {
    const WaveShape& s = problem.shape;
    std::vector<WaveValue> lift(static_cast<std::size_t>(kWaveColumns * s.size()));
    for (std::int64_t column = 0; column < kWaveColumns; ++column)
      for (std::int64_t node = 0; node < s.nodes(); ++node)
        lift[static_cast<std::size_t>(column * s.size() + s.rows() + node)].re =
            problem.lift[static_cast<std::size_t>(column * s.nodes() + node)];
    lift_ = upload_.upload(lift);
  }

  WaveShifts shifts() const { return {node_.data(), face_.data(), overlap_.data()}; }

  // Computes the means of δg after one solution of all lines, and δϱ. @param ends  may be null
  void react(const WaveInput& input, WaveValue* ends) {
    const WaveShape& s = tables_.shape;
    const std::int64_t rows = kWaveColumns * s.rows(),
                       states = static_cast<std::int64_t>(kWaveColumns) * s.n_states;
    machine_.run(states * s.nx, WaveNodeShifts{tables_, input, node_.data()}, "levels");
    machine_.run(states * (s.nx + 1), WaveFaceShifts{tables_, node_.data(), face_.data()},
                 "levels");
    machine_.run(kWaveColumns * s.pairs() * s.nx,
                 WaveOverlapShifts{tables_, input, overlap_.data()}, "overlaps");
    machine_.run(rows, WavePartners{tables_, input, shifts(), of_row_[0].data(), of_row_[1].data()},
                 "scattering");
    machine_.run(2 * rows,
                 WavePartnerSums{tables_, shifts(), of_row_[0].data(), of_row_[1].data(),
                                 sums_[0].data(), sums_[1].data()},
                 "scattering");
    machine_.run(rows,
                 WaveRates{tables_, sums_[0].data(), sums_[1].data(), loss_.data(), gain_.data()},
                 "scattering");
    machine_.run(s.n_states * s.lines(),
                 WaveLines{tables_, omega_per_fs_, input, shifts(), loss_.data(), gain_.data(),
                           work_.data(), electrons_.data(), ends},
                 "lines");
    machine_.run(rows, WaveMeans{tables_, electrons_.data(), mean_.data()}, "means");
    machine_.run(states * s.nx, WaveSheet{tables_, shifts(), mean_.data(), sheet_.data()},
                 "electrons");
  }

  void residual(const WaveInput& input, WaveEquations equations, bool is_right_side,
                const Vector& out) {
    const WaveShape& s = tables_.shape;
    react(input, nullptr);
    if (equations == WaveEquations::kAll) {
      machine_.run(kWaveColumns * s.nodes(),
                   WavePoisson{tables_, input, sheet_.data(), poisson_.data()}, "field");
      machine_.run(kInverseParts * s.nodes(), WaveInverse{tables_, poisson_.data(), parts_.data()},
                   "field");
    }
    machine_.run(kWaveColumns * s.size(),
                 WaveResidual{tables_, input, shifts(), equations, is_right_side, mean_.data(),
                              sheet_.data(), parts_.data(), out.data()},
                 "residual");
  }
  void right_side(const WaveInput& input, WaveEquations equations) {
    residual(input, equations, true, rhs_);
  }

  int solve(WaveEquations equations, double tolerance, Vector* x) {
    const auto apply = [&](const Vector& from, Vector* to) {
      residual({from.data(), false}, equations, false, *to);
    };
    const WaveReport report = wave_gmres(vectors_, apply, rhs_, tolerance, kMaxProducts, x);
    if (!report.converged)
      throw NotConverged("small signal: GMRES left a residual of " +
                         std::to_string(report.residual) + " after " +
                         std::to_string(report.products) + " products");
    return report.products;
  }

  void split(bool takes_means, const Vector& from, Vector* to) const {
    machine_.run(kWaveColumns * tables_.shape.size(),
                 WaveSplit{tables_.shape, takes_means, from.data(), to->data()}, "parts");
  }

  void read_currents(WaveResponses* out) const {
    const WaveShape& s = tables_.shape;
    const std::int64_t each = static_cast<std::int64_t>(s.n_states) * s.n_h,
                       count = each * kWaveContacts * kWaveColumns;
    machine_.run(count, WaveCurrents{tables_, shifts(), ends_.data(), current_.data()}, "currents");
    const std::vector<WaveValue> parts =
        machine_.download(current_.data(), static_cast<std::size_t>(count), "currents");
    for (std::int64_t at = 0; at < count; ++at) {
      const WaveValue part = parts[static_cast<std::size_t>(at)];
      out->of[static_cast<std::size_t>(at / each / kWaveContacts)]
          .current[static_cast<std::size_t>(at / each % kWaveContacts)] +=
          std::complex<double>(part.re, part.im);
    }
  }

  void read_potentials(WaveResponses* out) const {
    const WaveShape& s = tables_.shape;
    for (std::int64_t column = 0; column < kWaveColumns; ++column)
      for (const WaveValue value :
           machine_.download(total_.data() + column * s.size() + s.rows(),
                             static_cast<std::size_t>(s.nodes()), "potentials"))
        out->of[static_cast<std::size_t>(column)].potential_v.emplace_back(value.re, value.im);
  }

  Machine machine_;
  WaveUpload<Machine> upload_;
  WaveTables tables_;
  Vectors vectors_;
  double omega_per_fs_ = 0;
  Array<WaveValue> node_, face_, overlap_;  ///< arrays of WaveShifts
  Array<WaveValue> of_row_[2], sums_[2];    ///< arrays of WavePartners and WavePartnerSums
  Array<WaveValue> loss_, gain_, mean_, work_, electrons_, ends_, sheet_, poisson_, parts_,
      current_;
  Vector lift_, field_, means_, rhs_, total_;
};

}  // namespace quasi::mosfet
