#pragma once

namespace quasi::gw {

/// Use of the closed sum over all states, which is known (docs/theory/gw.md 9.4).
enum class Closure {
  kAutomatic,  ///< subtracted from Σ where the given states reach five plasma energies
  kSigma,      ///< subtracted from Σ
  kNone        ///< not used
};

/// Form of windows that polynomials of H make (docs/theory/gw.md 9.5).
enum class WindowForm {
  kSplines,  ///< roots of cubic B-splines, whose squares add up to 1
  kJackson   ///< indicators of slices damped by Jackson factors, which lose weight at every edge
};

/// Calculation of the energies without one block of vectors (docs/theory/gw.md 9.3).
enum class BlockSums {
  kAutomatic,   ///< kFirstOrder with the poles of Hybertsen and Louie, else kExact
  kFirstOrder,  ///< Σ to first order in the change of W and of the vectors
  kExact        ///< Σ of each block is summed anew
};

/// Table [pseudobands] of a deck (docs/theory/gw.md 9.3).
struct PseudobandOptions {
  int vectors = 0;            ///< random vectors of each window; 0: no pseudobands
  int sigma_factor = 1;       ///< vectors of Σ over those of χ
  double protected_ry = 0.5;  ///< states below midgap plus this energy are kept
  double ratio = 0.2;         ///< width of a window over its distance from midgap
  int seed = 1;               ///< key of the random numbers
  int blocks = 0;             ///< blocks of vectors for error bars; 0: no error bars
  BlockSums block_sums = BlockSums::kAutomatic;
  Closure closure = Closure::kAutomatic;
  WindowForm windows = WindowForm::kSplines;
  int degree = 0;                    ///< of the polynomials; 0: by max_identity_error
  double max_identity_error = 1e-3;  ///< largest departure of Σ_k p_k² from 1
  double target_error_ev = 0.0;      ///< largest half-width of a 95 % interval; 0: none wanted
  bool chooses_ratio = false;        ///< the target has chosen `ratio`, and may narrow it
  bool chooses_vectors = false;      ///< the target has chosen `vectors` of the first job
  bool chooses_blocks = false;       ///< the target has chosen `blocks`
  int left_out = -1;                 ///< block whose vectors are left out; −1: none
  /// False: energies of windows are their nodes, without the excess of the second moment.
  bool moved_nodes = true;

  bool wanted() const { return vectors > 0; }
  /// True for a job that only serves the error bars of another one.
  bool serves_errors() const { return left_out >= 0 || !moved_nodes; }
};

}  // namespace quasi::gw
