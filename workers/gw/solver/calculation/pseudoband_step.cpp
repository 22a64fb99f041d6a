#include "workers/gw/solver/calculation/pseudoband_step.hpp"

#include <iterator>
#include <optional>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

void require_protected(int band_max, const PseudobandPlan& p) {
  if (band_max > p.kept)
    throw InvalidInput("sigma.band_max = " + std::to_string(band_max) + " exceeds the " +
                       std::to_string(p.kept) +
                       " protected bands, which pseudobands leave as they are; raise "
                       "pseudobands.protected_ry or lower sigma.band_max");
}

}  // namespace

Wavefunctions replace_by_pseudobands(const Deck& deck, Calculation& run) {
  run.pseudobands = plan_pseudobands(run.field, deck.pseudobands, deck.mean_field.empirical);
  require_protected(deck.sigma.band_max, *run.pseudobands);
  Wavefunctions made = pseudobands(run.field.waves, *run.pseudobands, PseudobandUse::kScreening);
  return std::exchange(run.field.waves, std::move(made));
}

void note_pseudobands(const Deck& deck, Calculation& run) {
  const PseudobandPlan& p = *run.pseudobands;
  if (!deck.stop_after_epsilon) require_protected(run.plan.sigma.band_max, p);
  run.plan.notes.push_back(
      p.keeps_all()
          ? "pseudobands: all " + std::to_string(p.given) +
                " bands are kept, because there would be no fewer random vectors"
          : "pseudobands: " + std::to_string(p.kept) + " protected bands and " +
                std::to_string(p.used.size()) + " windows of " + std::to_string(p.vectors) +
                " random vectors stand for " + std::to_string(p.given) +
                " bands; the windows add up to 1 within " + shown(p.identity_error) +
                (deck.pseudobands.blocks > 0
                     ? "; " + std::to_string(deck.pseudobands.blocks) +
                           " blocks of vectors give the statistical error of the energies"
                     : std::string("; the statistical error of the energies is not examined: set "
                                   "pseudobands.blocks")));
}

std::int64_t bytes_of(const Wavefunctions& waves) {
  std::int64_t bytes = 0;
  for (const KPointWaves& at : waves.waves)
    for (const auto& spin : at.coefficients) bytes += std::ssize(spin) * 16;
  return bytes;
}

std::vector<SelfCheck> unexamined_states() {
  std::vector<SelfCheck> list;
  for (const char* law : {"multiplets", "ch_truncation"})
    list.push_back({law, std::nullopt, 0.0, 0.0, "eV", "pseudobands replace states"});
  return list;
}

}  // namespace quasi::gw
