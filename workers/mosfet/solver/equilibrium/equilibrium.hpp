#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "workers/mosfet/kernels/electrostatics/poisson.hpp"
#include "workers/mosfet/kernels/electrostatics/subbands.hpp"
#include "workers/mosfet/model/bias.hpp"
#include "workers/mosfet/model/device_model.hpp"
#include "workers/mosfet/model/structure.hpp"
#include "workers/mosfet/physics/statistics.hpp"

namespace quasi::mosfet {

/// A self-consistent solution of Schrödinger and Poisson in which ϱ is a function of ε.
struct Equilibrium {
  std::vector<double> potential_v;  ///< [nx][nz]
  std::vector<double> density_nm3;  ///< N [nx][nz]
  Subbands subbands;
  std::vector<double> sheet_nm2;  ///< ϱ [n_valleys][subbands][nx], one valley of the pair
  std::vector<double> newton_v;   ///< max |δV| of every iteration

  double energy(const Structure& s, int valley, int p, int i) const {
    return subbands
               .energy_ev[(static_cast<std::size_t>(s.family_of[valley]) * s.subbands + p) * s.nx +
                          i] +
           s.valleys[valley].offset_ev;
  }
  /// Returns Σ_{ν,p} 2ϱ of one column, which counts both valleys of every pair.
  double sheet_total_nm2(const Structure& s, int i) const;
};

/// Returns ϱ and −∂ϱ/∂ε of one valley's subband at E_F − ε = gap, in the deck's statistics.
SheetDensity sheet_density(const DeviceModel& model, const ValleyPair& valley, double gap_ev);

/// Returns ϱ and −∂ϱ/∂ε of subband p of one valley of pair ν in column i, as a function of its
/// level ε without the valley's offset.
using SheetModel =
    std::function<SheetDensity(int valley, int subband, int column, double level_ev)>;

/// Holds a factorised Newton matrix of an earlier potential, with which later iterations go on.
struct KeptMatrix {
  std::optional<ColumnMatrix> matrix;
  double fall = 1.0;  ///< ratio of the last two steps of V with this matrix
};

/// Holds the start and the goal of solve_field().
struct FieldTask {
  std::vector<double> potential_v;  ///< first V [nx][nz]
  Subbands subbands;                ///< levels near those of the first V; empty: none
  bool knows_levels = false;        ///< `subbands` belong to the first V itself
  std::string what;                 ///< names the problem in a failure
  /// Size of the last Newton step. The error that it leaves is of its square.
  double tolerance_v = 1e-11;
  /// Matrix that serves as long as steps are small and fall fast (chord iteration); null: every
  /// step has a matrix of its own (Newton's iteration).
  KeptMatrix* kept = nullptr;
  /// Computes levels and densities of the last V. Otherwise levels are near those of the last V,
  /// and densities belong to the step before it.
  bool completes = true;

  /// Returns the error of V at which a chord iteration ends.
  double kept_error_v() const;
};

/// Solves Schrödinger and Poisson with densities that follow from the levels, by Newton's iteration
/// for V (docs/theory/mosfet.md 9).
/// @throws NotConverged with the Newton history
Equilibrium solve_field(const Structure& s, const PotentialBoundary& boundary,
                        const SheetModel& sheet, const FieldTask& task);
/// Computes levels and densities of `state` at its V, from levels nearby.
void complete_field(const Structure& s, const SheetModel& sheet, Equilibrium* state);

/// Solves the contact column: a one-dimensional Schrödinger–Poisson problem with Neumann ends at z
/// = 0, H, Fermi level 0 and the doping of column `i` of the device. It is neutral by Gauss' law.
/// The result has nx = 1. @throws NotConverged with the Newton history.
Equilibrium solve_contact(const DeviceModel& model, const Structure& device, int i);

/// Solves a column of the channel between its two gates, far from source and drain, with Fermi
/// level 0. @throws NotConverged with the Newton history.
Equilibrium solve_gated_column(const DeviceModel& model, const Structure& column,
                               const BiasPoint& bias);

/// Returns a Structure of one column of `device`.
Structure column_structure(const Structure& device, int i);

/// Returns the nodes with a given V for a bias. These are the gates with V_GS − (Φ_M − χ) and, for
/// contact = "column", the whole edges x = 0, L with V_b(z) and V_b(z) + V_DS.
PotentialBoundary potential_boundary(const DeviceModel& model, const Structure& s,
                                     const BiasPoint& bias, const Equilibrium& source,
                                     const Equilibrium& drain);

/// Returns the quasi-Fermi level of the start: 0 in the source, −V_DS in the drain, linear in the
/// channel.
std::vector<double> quasi_fermi_ev(const DeviceModel& model, const Structure& s, double vds_v);

/// Solves for the quasi-equilibrium of the device by Newton's iteration for V with the complete-set
/// response and −∂ϱ/∂ε. @param start_v  first V [nx][nz]; empty: V_b(z) − E_F(x) @throws
/// NotConverged with bias and Newton history.
Equilibrium solve_equilibrium(const DeviceModel& model, const Structure& s, const BiasPoint& bias,
                              const Equilibrium& source, const Equilibrium& drain,
                              const std::vector<double>& start_v = {});

/// Start of the Newton iteration of a quasi-equilibrium.
struct QuasiEquilibriumStart {
  std::vector<double> fermi_ev;     ///< E_F(x) [nx]
  std::vector<double> potential_v;  ///< first V [nx][nz]; empty: V_b(z) − E_F(x)
  double tolerance_v = 1e-11;       ///< as in FieldTask
  KeptMatrix* kept = nullptr;       ///< as in FieldTask
};

/// Solves for the quasi-equilibrium at a given quasi-Fermi level. @throws NotConverged as
/// solve_equilibrium()
Equilibrium solve_quasi_equilibrium(const DeviceModel& model, const Structure& s,
                                    const BiasPoint& bias, const Equilibrium& source,
                                    const Equilibrium& drain, const QuasiEquilibriumStart& start);

}  // namespace quasi::mosfet
