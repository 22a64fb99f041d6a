#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workers/gw/kernels/hamiltonian/hamiltonian_operator.hpp"
#include "workers/gw/kernels/hamiltonian/local_coupling.hpp"

namespace quasi::gw {

/// Estimates of eigenstates by Rayleigh–Ritz, in ascending order of energy.
struct RitzPairs {
  std::vector<double> energy_ry;    ///< E
  std::vector<double> residual_ry;  ///< ‖Hψ − Eψ‖
};

/// Holds states of one Hamiltonian in the memory of one device, [size()][n_pw]. Here n_pw is the
/// order of H, which counts the plane waves of both components of spinors. The coefficients are
/// real numbers if HamiltonianOperator::is_real(). The first states may be fixed: steps act on the
/// states from `first` on.
class StateBlock {
 public:
  virtual ~StateBlock() = default;
  virtual std::int64_t size() const = 0;
  /// Adds real states at the end; [n_states][n_pw].
  virtual void append(View<const double, 2> states) = 0;
  /// Replaces the states from `first` on by p(H) of them.
  virtual void filter(const ChebyshevFilter& filter, std::int64_t first) = 0;
  /// Makes the states from `first` on orthonormal, and orthogonal to those before, which are
  /// orthonormal. Cholesky factors of the overlaps are applied until the overlaps differ from 1 by
  /// less than 1e-13. @throws NotConverged if the states stay linearly dependent
  virtual void orthonormalise(std::int64_t first) = 0;
  /// Makes the states from `first` on eigenstates of H within the space that they span.
  virtual RitzPairs project(std::int64_t first) = 0;
  /// Returns the first states; [count][n_pw].
  virtual std::vector<Cplx> read(std::int64_t count) const = 0;
};

/// Holds the Hamiltonian of one k-point on one device. n_pw is its order, as in StateBlock.
class LoadedHamiltonian {
 public:
  virtual ~LoadedHamiltonian() = default;
  /// Returns a block without states.
  virtual std::unique_ptr<StateBlock> make_block() = 0;
  /// Calculates result[n] = H states[n], Ry; both [n_states][n_pw].
  virtual void apply(View<const Cplx, 2> states, View<Cplx, 2> result) = 0;
  /// Calculates functions of H as HamiltonianOperator::expand does; [n_functions][n_states][n_pw].
  /// @pre is_real() for real states
  virtual double expand(const ChebyshevSeries& series, View<const Cplx, 2> states,
                        View<Cplx, 3> result) = 0;
  virtual double expand(const ChebyshevSeries& series, View<const double, 2> states,
                        View<double, 3> result) = 0;
  /// Makes x [n][n_pw] orthogonal to orthonormal states [n_states][n_pw]: x −= Σ_s ⟨s|x⟩ s.
  virtual void remove(View<const Cplx, 2> states, View<Cplx, 2> x) = 0;
  virtual void remove(View<const double, 2> states, View<double, 2> x) = 0;
};

/// Begin here: the Hamiltonian as an operator on one device (docs/theory/gw.md 9.1, 9.2).
/// hamiltonian_operator.hpp applies it on the processor, and block_algebra.hpp holds the linear
/// algebra of blocks there. operator_cuda.cu applies it on a GPU, hamiltonian_cuda.cu expands
/// functions of it, and state_block_cuda.cu iterates blocks there.
class HamiltonianKernels {
 public:
  virtual ~HamiltonianKernels() = default;
  /// Copies H to the device. `h` outlives the result.
  virtual std::unique_ptr<LoadedHamiltonian> load(const HamiltonianOperator& h) = 0;
  /// Copies states and first orders of a potential to the device.
  virtual std::unique_ptr<const LoadedLocalPotentials> load_potentials(
      const LocalPotentials& potentials) = 0;
  /// Makes an empty block of elements of perturbations.
  virtual std::unique_ptr<CouplingBlock> make_couplings() = 0;
};

}  // namespace quasi::gw
