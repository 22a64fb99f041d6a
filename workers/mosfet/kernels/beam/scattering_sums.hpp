#pragma once

#include <array>
#include <vector>

#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/model/beam/beam_grid.hpp"

namespace quasi::mosfet {

/// Matrix elements of isotropic scattering.
struct ScatteringCouplings {
  /// W [levels][levels][nx], 1/nm
  const std::vector<double>& overlap;
  /// |F|²Ŝ [n_states][subbands][nx][n_h], eV² nm²; empty: smooth interfaces
  const std::vector<double>& roughness;
};

/// Sums over the links of all processes (docs/theory/mosfet.md 17.4) with the matrix elements
/// summed first. All processes that join the same pairs of states have the same sums
///
///   y_s(k) = Σ_s' W_ss' x_s'(k),
///
/// and every process adds y with its own factor at its own distance in H. A sum over links costs
/// one product with W for each of at most three kinds of pairs, whatever the number of processes.
class ScatteringSums {
 public:
  /// Factor of a link in the sum, beside its matrix element and c N b/Ω_h =: c_h. With the rise
  /// e = e^{(H_h−H_k)/kT} and the Boltzmann factors β, the factors of the low and the high end
  /// are:
  enum class Weight {
    kRate,     ///< c_h and c_h e
    kFreed,    ///< −c_h (1 − 1/e) and c_h e (e−1)
    kFilled,   ///< c_h (e−1) and −c_h (e−1)
    kBlocked,  ///< c_h (e−1) β_h and −c_h (e−1) β_k
  };

  /// @param level_of  level of a state, its index in the overlaps [n_states]
  ScatteringSums(const BeamGrid& grid, int subbands,
                 const std::vector<ScatteringProcess>& processes, std::vector<int> level_of);

  /// Returns the sums for every cell [n_states][nx][n_h]. The low end of a link takes `x` of its
  /// high end and the other way round. Columns are summed in parallel with the same bits for any
  /// number of threads. @param x  [n_states][nx][n_h] @param transposed  exchanges the factors of
  /// both ends, which makes the transposed sum
  std::vector<double> sum(Weight weight, const ScatteringCouplings& couplings,
                          const std::vector<double>& x, bool transposed = false) const;

 private:
  /// Kinds of pairs of states: same valley pair, another one, same one by rough interfaces.
  enum Pairs { kSame, kOther, kRough, kPairKinds };
  /// One process at one distance in H.
  struct Branch {
    int shift = 0;
    double strength = 0, rise = 1;
  };
  /// Sums of one column [n_states][n_h].
  struct Column {
    std::vector<double> x, low, high;
  };
  void add_branches(const ScatteringProcess& process);
  void sum_partners(Pairs pairs, const ScatteringCouplings& couplings, int i, Column* column) const;
  /// Factors of the low and the high end of the links of a branch from every cell.
  struct LinkFactors {
    std::vector<double> low, high;
  };
  LinkFactors factors_of(Weight weight, const Branch& branch) const;
  void add_branch(const LinkFactors& factors, int shift, int i, const Column& column,
                  std::vector<double>* out) const;

  BeamGrid grid_;
  int subbands_ = 0, n_levels_ = 0;
  std::vector<int> level_of_;
  std::array<std::vector<Branch>, kPairKinds> branches_;
  std::vector<double> inverse_full_, boltzmann_;  ///< 1/Ω_k and β_k [n_h]
};

}  // namespace quasi::mosfet
