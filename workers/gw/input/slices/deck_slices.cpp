#include "workers/gw/input/slices/deck_slices.hpp"

#include <utility>
#include <vector>

#include "workers/backend/error.hpp"

namespace quasi::gw {

std::optional<SlicesObstacle> obstacle_to_slices(const Deck& deck) {
  struct Rule {
    bool violated;
    const char* setting;
    const char* remedy;
  };
  const SigmaRequest& s = deck.sigma;
  const bool with_sigma = !deck.stop_after_epsilon;
  const auto& frequencies = deck.epsilon.frequencies;
  const std::vector<Rule> rules{
      {with_sigma && s.method != SigmaMethod::kHybertsenLouie, "this sigma.method",
       "use \"hl-gpp\""},
      {frequencies != FrequencySet::kAutomatic && frequencies != FrequencySet::kStatic,
       "this epsilon.frequencies", "use \"static\""},
      {deck.epsilon.subspace.wanted(), "a static subspace of ε", "leave epsilon.subspace_* out"},
      {s.remainder, "sigma.static_remainder", "leave it out"},
      {s.exact_ch, "sigma.exact_ch", "leave it out"},
      {s.wants_matrix(), "sigma.full_matrix or a loop over states", "leave them out"},
      {s.outer.kind != OuterLoop::kNone, "sigma.outer_loop", "leave it out"},
      {deck.perturbation.wanted, "[perturbation]", "leave the table out"},
      {deck.coulomb.truncation != Truncation::kNone, "coulomb.truncation", "use \"none\""},
      {deck.compatible, "compat = \"bgw\"", "leave it out"},
      {deck.study.wanted, "--converge", "study a smaller cell"},
  };
  for (const Rule& rule : rules)
    if (rule.violated) return SlicesObstacle{rule.setting, rule.remedy};
  return std::nullopt;
}

std::string remedy_of_slices(const Deck& deck) {
  const auto obstacle = obstacle_to_slices(deck);
  if (!obstacle) return {};
  return ". Slices (epsilon.column_slices) would need less, but " + obstacle->setting +
         " is not calculated in slices; " + obstacle->remedy;
}

void check_column_slices(const Deck& deck, const std::string& where) {
  if (deck.epsilon.column_slices == 0) return;
  if (const auto obstacle = obstacle_to_slices(deck))
    throw InvalidInput(
        where + ": epsilon.column_slices = " + std::to_string(deck.epsilon.column_slices) +
        " is not allowed with " + obstacle->setting + ", which is not calculated in slices; " +
        obstacle->remedy + ", or leave epsilon.column_slices out");
}

}  // namespace quasi::gw
