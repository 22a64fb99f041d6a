#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/wave/wave_field.hpp"
#include "workers/mosfet/kernels/wave/wave_gmres.hpp"
#include "workers/mosfet/kernels/wave/wave_gradient.hpp"
#include "workers/mosfet/kernels/wave/wave_moves.hpp"
#include "workers/mosfet/kernels/wave/wave_noise_kernels.hpp"
#include "workers/mosfet/kernels/wave/wave_upload.hpp"

namespace quasi::mosfet {

/// Returns the derivatives of the electrons in the currents of source and drain by the potential at
/// fixed occupations, which come from the areas of the faces next to the contacts
/// [kWaveContacts][nodes], 1/(nm fs V).
inline std::vector<double> wave_current_slopes(const WaveProblem& p) {
  const WaveShape& s = p.shape;
  const auto nz = static_cast<std::size_t>(s.nz), nx = static_cast<std::size_t>(s.nx);
  std::vector<double> out(kWaveContacts * nx * nz, 0.0);
  for (int side = 0; side < kWaveContacts; ++side)
    for (std::size_t state = 0; state < p.level_of.size(); ++state)
      for (int o = 0; o < kFaceNodes; ++o) {
        const int face = wave_face(s, side), i = face - kFacesAhead + o;
        if (i < 0 || i >= s.nx) continue;
        const auto at = static_cast<std::size_t>(i);
        const double slope =
            wave_sign(side) * p.current_slope[static_cast<std::size_t>(side * s.n_states) + state] *
            p.face_slope[(state * (nx + 1) + static_cast<std::size_t>(face)) * kFaceNodes +
                         static_cast<std::size_t>(o)];
        const auto level = static_cast<std::size_t>(p.level_of[state]);
        for (std::size_t j = 0; j < nz; ++j)
          out[(static_cast<std::size_t>(side) * nx + at) * nz + j] +=
              slope * p.level_slope[(level * nx + at) * nz + j];
      }
  return out;
}

/// Holds the factors of WaveTransposedWeights.
struct WaveNorm {
  double rows = 0, nodes = 0;
};

/// Returns the factors with which all electrons together have the weight 1 for Ψ = 1. Φ weighs as
/// much where it moves Ψ of the electrons by 1 in the time in which they cross the device.
inline WaveNorm wave_noise_norm(const WaveProblem& p, double dx_nm) {
  const WaveShape& s = p.shape;
  double electrons = 0.0, volume = 0.0, passing = 0.0;
  for (std::size_t row = 0; row < p.electrons.size(); ++row)
    electrons += p.electrons[row] * p.density_weight[row / s.n_h / s.nx * s.n_h + row % s.n_h];
  for (const double each : p.volume) volume += each;
  const std::size_t faces = p.area.size() / p.speed.size();
  for (std::size_t at = 0; at < p.area.size(); ++at) passing += p.area[at] * p.speed[at / faces];
  const double transit_fs = s.nx * volume / passing;
  const auto middle = static_cast<std::size_t>(s.nx / 2), nz = static_cast<std::size_t>(s.nz);
  double density = 0.0;  // 1/Δz
  for (std::size_t j = 0; j < nz; ++j) density += p.psi_square[middle * nz + j];
  return {1.0 / std::sqrt(electrons), transit_fs * p.charge[middle] * density /
                                          (dx_nm * std::sqrt(static_cast<double>(s.nodes())))};
}

/// Solves the transposed equations of a small-signal problem and sums its noise on a machine
/// (docs/theory/mosfet.md 17.9). The arithmetic is in function objects that run on the host and on
/// CUDA devices. @tparam Machine  see WaveSolver
template <typename Machine>
class WaveNoiseSolver : public WaveNoiseKernels {
 public:
  template <typename T>
  using Array = typename Machine::template Array<T>;
  using Vectors = WaveVectors<Machine>;
  using Vector = typename Vectors::Vector;

  /// Copies the tables to the machine and makes all arrays there, apart from the directions of
  /// GMRES.
  WaveNoiseSolver(const WaveProblem& problem, const WaveObservation& observation, Machine machine)
      : machine_(std::move(machine)),
        upload_(problem, machine_),
        tables_(with_fixed_inflow(upload_.tables())),
        dx_nm_(observation.dx_nm),
        field_responds_(observation.field_responds),
        lift_(problem.lift),
        current_slope_(wave_current_slopes(problem)),
        charge_slope_(observation.charge_slope),
        weights_(upload_.upload(
            std::vector<double>(static_cast<std::size_t>(tables_.shape.size()), 0.0))),
        vectors_(machine_, tables_.shape.size(), weights_.data()) {
    currents_on_machine_ = upload_.put(current_slope_);
    charges_on_machine_ = upload_.put(charge_slope_);
    filling_ = upload_.put(observation.filling);
    for (int contact = 0; contact < kWaveContacts; ++contact)
      inflow_[contact] = upload_.put(observation.inflow[contact]);
    const WaveNorm norm = wave_noise_norm(problem, dx_nm_);
    machine_.run(tables_.shape.size(),
                 WaveTransposedWeights{tables_, norm.rows, norm.nodes, weights_.data()}, "weights");
    make_arrays();
  }

  WaveNoise at(double omega_per_fs) override {
    constexpr double kTolerance = 1e-10, kTransportTolerance = 1e-11;
    omega_per_fs_ = omega_per_fs;
    WaveNoise out;
    if (field_responds_) {
      right_side({zero_.data(), true}, WaveEquations::kAll);
      vectors_.add(0.0, {}, rhs_, &total_);
      out.products += solve(WaveEquations::kAll, kTolerance, &total_);
      split(false, total_, &field_);
      split(true, total_, &means_);
    } else {
      vectors_.add(0.0, {}, zero_, &field_);
      vectors_.add(0.0, {}, zero_, &means_);
    }
    right_side({field_.data(), true}, WaveEquations::kTransport);
    out.products += solve(WaveEquations::kTransport, kTransportTolerance, &means_);
    vectors_.add(0.0, kOne, field_, &total_);
    vectors_.add(1.0, kOne, means_, &total_);
    react({total_.data(), true});
    ++out.products;
    read_admittances({total_.data(), true}, &out);
    read_densities(&out);
    return out;
  }

 private:
  static constexpr WaveFactors kOne{{{1.0, 0.0}, {1.0, 0.0}, {1.0, 0.0}}};
  static constexpr int kMaxProducts = 1000;

  static WaveTables with_fixed_inflow(WaveTables tables) {
    tables.shape.neutral = false;
    return tables;
  }

  template <typename T = WaveValue>
  Array<T> make(std::int64_t count) const {
    return machine_.template make<T>(static_cast<std::size_t>(count), "noise");
  }

  void make_arrays() {
    const WaveShape& s = tables_.shape;
    const std::int64_t rows = s.rows(), lines = s.n_states * s.lines(),
                       states = static_cast<std::int64_t>(s.n_states) * s.nx;
    potential_ = make(kWaveColumns * states);
    sums_ = make(2 * kMoveMeans * rows);
    gain_ = make(kWaveColumns * rows);
    mean_ = make(kWaveColumns * rows);
    work_ = make(s.nx * lines * kWaveWork);
    electrons_ = make(kWaveColumns * s.cells());
    psi_ = make(2 * kWaveContacts * s.cells());
    edge_ = make(kWaveContacts * kCellEdges * rows);
    for (Array<WaveValue>* each : {&gained_, &lost_}) *each = make(kWaveContacts * rows);
    for (Array<WaveValue>* each : {&of_electrons_, &of_states_})
      *each = make(2 * kWaveContacts * rows);
    overlap_ = make(kWaveContacts * s.pairs() * s.nx);
    edge_sums_ = make(kWaveContacts * kCellEdges * states);
    node_ = make(kWaveContacts * states);
    gradient_ = make(kWaveContacts * s.nodes());
    residual_ = make(kWaveColumns * s.nodes());
    parts_ = make(kInverseParts * kWaveColumns * s.nodes());
    entering_ = make(kWaveContacts * kWaveContacts * static_cast<std::int64_t>(s.n_states) * s.n_h);
    for (Array<WaveValue>* each : {&arriving_, &leaving_}) *each = make(kMoveMeans * rows);
    moves_ = make<WaveMoves>(std::max(lines, states));
    for (Vector* each : {&rhs_, &total_, &field_, &means_}) *each = vectors_.take();
    zero_ =
        upload_.upload(std::vector<WaveValue>(static_cast<std::size_t>(kWaveColumns * s.size())));
  }

  // Computes Ψ and its means after one solution of all lines.
  void react(const WaveInput& input) {
    const WaveShape& s = tables_.shape;
    const std::int64_t rows = kWaveColumns * s.rows(),
                       states = static_cast<std::int64_t>(kWaveColumns) * s.n_states * s.nx;
    machine_.run(states, WaveElectronPotential{tables_, input, potential_.data()}, "levels");
    machine_.run(2 * rows, WaveMeanSums{tables_, kWaveColumns, s.size(), input.x, sums_.data()},
                 "scattering");
    machine_.run(rows,
                 WaveTransposedGain{tables_, dx_nm_, sums_.data(), potential_.data(), gain_.data()},
                 "scattering");
    machine_.run(s.n_states * s.lines(),
                 WaveTransposedLines{tables_, omega_per_fs_, input.driven, gain_.data(),
                                     work_.data(), electrons_.data(), psi_.data()},
                 "lines");
    machine_.run(rows, WaveMeans{tables_, electrons_.data(), mean_.data()}, "means");
  }

  // Computes the derivatives by δV of F (wave_gradient.hpp) for the Ψ of react().
  void find_gradient(const WaveInput& input) {
    const WaveShape& s = tables_.shape;
    const std::int64_t rows = kWaveContacts * s.rows(),
                       states = static_cast<std::int64_t>(kWaveContacts) * s.n_states * s.nx;
    machine_.run(rows,
                 WaveRowTranspose{tables_,
                                  omega_per_fs_,
                                  dx_nm_,
                                  psi_.data(),
                                  {edge_.data(), gained_.data(), lost_.data()}},
                 "cells");
    machine_.run(2 * rows,
                 WaveTransposedRates{tables_, gained_.data(), lost_.data(), of_electrons_.data(),
                                     of_states_.data()},
                 "scattering");
    machine_.run(
        rows,
        WaveTransposedPartners{tables_, of_electrons_.data(), of_states_.data(), edge_.data()},
        "scattering");
    machine_.run(
        kWaveContacts * s.pairs() * s.nx,
        WaveTransposedOverlaps{tables_, of_electrons_.data(), of_states_.data(), overlap_.data()},
        "overlaps");
    machine_.run(kCellEdges * states,
                 WaveEdgeSums{tables_, edge_.data(), potential_.data(), edge_sums_.data()},
                 "levels");
    machine_.run(states, WaveNodeGradient{tables_, edge_sums_.data(), node_.data()}, "levels");
    machine_.run(
        kWaveContacts * s.nodes(),
        WavePotentialGradient{tables_, input, node_.data(), overlap_.data(), gradient_.data()},
        "field");
  }

  void residual(const WaveInput& input, WaveEquations equations, bool is_right_side,
                const Vector& out) {
    const WaveShape& s = tables_.shape;
    react(input);
    if (equations == WaveEquations::kAll) {
      find_gradient(input);
      machine_.run(kWaveColumns * s.nodes(),
                   WaveFieldResidual{tables_, omega_per_fs_, input.driven, currents_on_machine_,
                                     charges_on_machine_, gradient_.data(), residual_.data()},
                   "field");
      machine_.run(kInverseParts * s.nodes(), WaveInverse{tables_, residual_.data(), parts_.data()},
                   "field");
    }
    machine_.run(kWaveColumns * s.size(),
                 WaveResidual{tables_,
                              input,
                              {},
                              equations,
                              is_right_side,
                              mean_.data(),
                              nullptr,
                              parts_.data(),
                              out.data()},
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
      throw NotConverged("noise: GMRES left a residual of " + std::to_string(report.residual) +
                         " after " + std::to_string(report.products) + " products");
    return report.products;
  }

  void split(bool takes_means, const Vector& from, Vector* to) const {
    machine_.run(kWaveColumns * tables_.shape.size(),
                 WaveSplit{tables_.shape, takes_means, from.data(), to->data()}, "parts");
  }

  void read_admittances(const WaveInput& input, WaveNoise* out) {
    const WaveShape& s = tables_.shape;
    const std::int64_t each = static_cast<std::int64_t>(s.n_states) * s.n_h,
                       count = kWaveContacts * kWaveContacts * each, nodes = s.nodes();
    machine_.run(count, WaveEntering{tables_, dx_nm_, psi_.data(), entering_.data()}, "contacts");
    const std::vector<WaveValue> entering =
        machine_.download(entering_.data(), static_cast<std::size_t>(count), "contacts");
    for (std::int64_t at = 0; at < count; ++at) {
      const WaveValue part = entering[static_cast<std::size_t>(at)];
      out->admittance[static_cast<std::size_t>(at / each / kWaveContacts)]
                     [static_cast<std::size_t>(at / each % kWaveContacts)] +=
          WaveNoise::Value(part.re, part.im);
    }
    if (!field_responds_) return;
    find_gradient(input);
    const std::vector<WaveValue> gradient = machine_.download(
        gradient_.data(), static_cast<std::size_t>(kWaveContacts * nodes), "field");
    for (std::size_t at = 0; at < gradient.size(); ++at) {
      const WaveNoise::Value value(gradient[at].re + current_slope_[at],
                                   gradient[at].im + omega_per_fs_ * charge_slope_[at]);
      const auto n = static_cast<std::size_t>(nodes);
      for (std::size_t terminal = 0; terminal < kWaveColumns; ++terminal)
        out->admittance[at / n][terminal] += lift_[terminal * n + at % n] * value;
    }
  }

  // Adds the moves that lie in the array of moves.
  void add_moves(std::int64_t count, WaveNoise* out) const {
    for (const WaveMoves& moves :
         machine_.download(moves_.data(), static_cast<std::size_t>(count), "moves")) {
      out->density[0][0] += moves.own.re;
      out->density[1][1] += moves.own.im;
      out->density[0][1] += WaveNoise::Value(moves.both.re, moves.both.im);
    }
  }

  void read_densities(WaveNoise* out) {
    const WaveShape& s = tables_.shape;
    const std::int64_t lines = s.n_states * s.lines(),
                       states = static_cast<std::int64_t>(s.n_states) * s.nx;
    machine_.run(
        lines, WaveLineMoves{tables_, filling_, inflow_[0], inflow_[1], psi_.data(), moves_.data()},
        "moves");
    add_moves(lines, out);
    if (tables_.loss != nullptr) {
      machine_.run(s.rows(), WaveMoveMeans{tables_, psi_.data(), arriving_.data(), leaving_.data()},
                   "means");
      machine_.run(2 * kMoveMeans * s.rows(),
                   WaveMeanSums{tables_, kMoveMeans, s.rows(), arriving_.data(), sums_.data()},
                   "scattering");
      machine_.run(
          states,
          WaveScatteringMoves{tables_, dx_nm_, sums_.data(), leaving_.data(), moves_.data()},
          "moves");
      add_moves(states, out);
    }
    out->density[1][0] = std::conj(out->density[0][1]);
  }

  Machine machine_;
  WaveUpload<Machine> upload_;
  WaveTables tables_;
  double dx_nm_;
  bool field_responds_;
  std::vector<double> lift_, current_slope_, charge_slope_;
  Array<double> weights_;
  Vectors vectors_;
  const double *currents_on_machine_, *charges_on_machine_, *filling_, *inflow_[kWaveContacts];
  double omega_per_fs_ = 0;
  Array<WaveValue> potential_, sums_, gain_, mean_, work_, electrons_, psi_;
  Array<WaveValue> edge_, gained_, lost_, of_electrons_, of_states_, overlap_, edge_sums_, node_,
      gradient_, residual_, parts_, entering_, arriving_, leaving_;
  Array<WaveMoves> moves_;
  Vector rhs_, total_, field_, means_, zero_;
};

}  // namespace quasi::mosfet
