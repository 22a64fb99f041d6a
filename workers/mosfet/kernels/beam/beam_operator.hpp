#pragma once

#include <vector>

#include "workers/mosfet/kernels/beam/beam_line.hpp"
#include "workers/mosfet/kernels/beam/beam_scattering.hpp"

namespace quasi::mosfet {

enum class BeamOrder { kFirst, kThird };

/// Inflow at the two contacts in units of g, with one value for each cell of H.
struct BeamInflow {
  std::vector<double> source, drain;  ///< [n_h]
};

/// Streaming along x and scattering at fixed levels, in g = f e^{(H−E_F)/kT}
/// (docs/theory/mosfet.md 17.3).
///
/// g holds the branch k_x > 0 and then k_x < 0, each [n_states][nx][n_h][n_kappa]. With a =
/// A_{i−½}, a' = A_{i+½}, the equations of one line are
///
///   V_i ∂_t g⁺_i = −(c/Δx) [a' ĝ⁺_{i+½} − a ĝ⁺_{i−½} + (a−a')₊ g⁺_i − (a'−a)₊ g⁻_i]
///                + V_i (G − λ g⁺_i)
///
/// and the mirror image for g⁻. The terms (·)₊ are the turning points. Constant g solves them.
class BeamOperator {
 public:
  BeamOperator(const BeamGeometry& geometry, const BeamScattering& scattering,
               const BeamInflow& inflow, BeamOrder order);

  const BeamGeometry& geometry() const { return geometry_; }
  const BeamInflow& inflow() const { return inflow_; }
  std::size_t size() const { return 2 * static_cast<std::size_t>(geometry_.cells()); }

  /// Returns V ∂_t g, eV/fs, which is zero in the steady state.
  std::vector<double> rate(const std::vector<double>& g) const;
  /// Returns the homogeneous part of −rate(): V ∂_t g without inflow, with the sign changed.
  std::vector<double> apply(const std::vector<double>& g) const;
  /// Solves streaming with loss along every line, exactly and to the order of the operator
  /// (beam_line.hpp). @param feed  g that enters each cell of H per time [n_states][nx][n_h], 1/fs;
  /// empty: none @param has_inflow  whether electrons enter at the contacts
  std::vector<double> solve_lines(const std::vector<double>& feed, bool has_inflow) const;
  /// Returns ḡ of solve_lines() [n_states][nx][n_h], without storing g.
  std::vector<double> line_mean(const std::vector<double>& feed, bool has_inflow) const;

  /// Returns the line (state, k, j) of solve_lines().
  BeamLine line(const std::vector<double>& feed, bool has_inflow, int state, int k, int j) const;

  /// Returns the electron current through the faces i − ½ of every state and cell of H, per valley
  /// and in units of g [n_states][nx+1][n_h], 1/(nm fs).
  std::vector<double> face_currents(const std::vector<double>& g) const;

  /// The change of rate() in each cell when the face before or behind the cell gets a larger area
  /// and everything else, g and the values at the faces, stays. The layout is that of g; the unit
  /// is 1/(fs √eV).
  struct AreaSlopes {
    std::vector<double> before, behind;
  };
  /// Returns these derivatives. Where both areas are equal, the turning point has the mean of its
  /// one-sided derivatives.
  AreaSlopes area_slopes(const std::vector<double>& g) const;

  /// Returns the largest explicit time step, fs.
  double largest_step_fs() const;

 private:
  /// Face values of one (state, k): ĝ⁺ and ĝ⁻ at the faces [nx+1][n_kappa].
  struct FaceValues {
    std::vector<double> forward, backward;
    std::vector<char> open;  ///< 1: an inner face is fully open, and upwind parabolas are allowed
  };
  void face_values(const std::vector<double>& g, bool includes_inflow, int state, int k,
                   FaceValues* out) const;
  void find_open_faces(int state, int k, std::vector<char>* open) const;
  double area(int state, int n, int k, int j) const {
    return geometry_.area[static_cast<std::size_t>(geometry_.face(state, n)) +
                          static_cast<std::size_t>(k) * geometry_.grid.n_kappa + j];
  }
  std::size_t cell(int state, int i, int k) const {
    return static_cast<std::size_t>(geometry_.node(state, i)) +
           static_cast<std::size_t>(k) * geometry_.grid.n_kappa;
  }
  double loss(int state, int i, int k, int j) const;
  std::vector<double> inflow_rhs() const;
  void find_isolated();

  const BeamGeometry& geometry_;
  const BeamScattering& scattering_;
  const BeamInflow& inflow_;
  BeamOrder order_;
  std::vector<char> isolated_;  ///< cells that no contact reaches; empty if scattering reaches them
};

}  // namespace quasi::mosfet
