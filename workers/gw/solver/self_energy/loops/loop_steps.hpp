#pragma once

#include <vector>

#include "workers/gw/solver/self_energy/outer_loop.hpp"

// Steps that the loop over energies (outer_loop.cpp) and the loop over states (state_loop.cpp)
// share. Begin with outer_loop.hpp, which declares both loops.
namespace quasi::gw {

/// Element of a list [spin][k][band] of the states `waves`.
double& element_of(std::vector<double>& list, const Wavefunctions& waves, int spin, int ik,
                   int band);
/// Energy of one state, Ry.
double& energy_of(Wavefunctions& waves, int spin, int ik, int band);

/// @throws InvalidInput unless Σ is calculated at every irreducible k and V_xc is known
void require_every_k_and_vxc(const OuterLoopProblem& problem, bool has_vxc);

/// Keeps the mean field's energies aside and starts from them, with the empty bands shifted.
void start_from_mean_field(MeanField& field, double shift_ry);
/// Moves the bands outside the window of outer states with the nearest one inside, at one k.
void move_outer_bands(MeanField& field, const SigmaOptions& options, int spin, int ik);

/// Reports the largest change of an energy in one turn, and the gap of the energies that now enter
/// G.
void report_turn(const OuterLoopProblem& problem, double change_ev, OuterLoopReport* report);
/// @throws NotConverged always, with the change of the last turn
[[noreturn]] void give_up(const OuterLoopOptions& loop, double change_ev);

/// State of a loop between two turns, in the checkpoint. The rest of the loop follows from it and
/// from the mean field.
class LoopState {
 public:
  explicit LoopState(const OuterLoopProblem& problem) : p_(problem) {}

  /// Names the parts that follow by this turn.
  void enter(int turn);
  /// Keeps the values with which a finished turn ends, and forgets the parts of all turns so far.
  void leave(int turn, const OuterLoopReport& report,
             const std::vector<std::vector<double>*>& values);
  /// Fills lists of the right lengths with the values that leave() kept. All ranks call it
  /// together.
  /// @return the turn to begin with; 0: nothing was kept
  int resume(OuterLoopReport* report, const std::vector<std::vector<double>*>& values);

 private:
  const OuterLoopProblem& p_;
};

}  // namespace quasi::gw
