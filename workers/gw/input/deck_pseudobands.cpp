#include "workers/gw/input/deck_pseudobands.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/input/deck_sigma.hpp"

namespace quasi::gw {
namespace {

/// Reads the keys of windows that polynomials of H make.
void read_windows(TableReader& reader, Eigensolver solver, PseudobandOptions& p) {
  p.windows = static_cast<WindowForm>(reader.choice("windows", 0, {"splines", "jackson"}));
  p.degree = reader.integer("degree", 0, 10, 100000);
  p.max_identity_error = reader.number("max_identity_error", p.max_identity_error, 1e-8, 0.1);
  for (const char* key : {"windows", "degree", "max_identity_error"})
    if (reader.has(key) && solver != Eigensolver::kOperator)
      reader.fail(key, "belongs to meanfield.solver = \"operator\"; remove it or set that");
  if (reader.has("max_identity_error") && p.windows == WindowForm::kJackson)
    reader.fail("max_identity_error",
                "has no effect with windows = \"jackson\", which lose weight at every edge");
}

/// Reads the target of the half-widths, and chooses what it needs and the deck does not give
/// (docs/theory/gw.md 9.3).
void read_target(TableReader& reader, PseudobandOptions& p) {
  // Half-widths are about 60 meV over the root of the vectors. The bound of the window width is
  // about 0.14 eV F² at F = 0.2 to 0.5, of which two thirds of the target are allowed.
  constexpr double kNoise_ev = 0.06, kWidth_ev = 0.14;
  constexpr int kBlocks = 8, kMostVectors = 64;
  p.target_error_ev = reader.number("target_error_ev", 0.0, 1e-4, 10.0);
  if (p.target_error_ev == 0.0) return;
  if (!reader.has("ratio")) {
    p.chooses_ratio = true;
    const double ratio = std::sqrt(p.target_error_ev / (1.5 * kWidth_ev));
    p.ratio = std::clamp(std::floor(100.0 * ratio) / 100.0, 0.05, 0.5);
  }
  if (!reader.has("blocks")) {
    p.chooses_blocks = true;
    p.blocks = kBlocks;
    while (reader.has("vectors") && p.blocks > 2 && p.vectors % p.blocks != 0) --p.blocks;
    if (p.blocks < 3)
      reader.fail("vectors", "= " + std::to_string(p.vectors) +
                                 " has no divisor from 3 to 8 for the blocks that target_error_ev "
                                 "needs; choose a multiple of 8, or leave vectors out");
  }
  if (reader.has("vectors")) return;
  p.chooses_vectors = true;
  const int wanted = static_cast<int>(
      std::min<double>(kMostVectors, std::ceil(std::pow(kNoise_ev / p.target_error_ev, 2))));
  p.vectors = (wanted + p.blocks - 1) / p.blocks * p.blocks;
}

}  // namespace

void read_pseudobands(TableReader reader, Deck* deck) {
  PseudobandOptions& p = deck->pseudobands;
  p.vectors = reader.integer("vectors", 0, 1, kMaxBandCount);
  p.sigma_factor = reader.integer("sigma_factor", p.sigma_factor, 1, 64);
  p.protected_ry = reader.number("protected_ry", p.protected_ry, 0.01, 1000.0);
  p.ratio = reader.number("ratio", p.ratio, 0.01, 1.0);
  p.seed = reader.integer("seed", p.seed, 0, 2147483647);
  p.blocks = reader.integer("blocks", 0, 3, 16);
  read_target(reader, p);
  p.block_sums =
      static_cast<BlockSums>(reader.choice("block_sums", 0, {"auto", "first-order", "exact"}));
  if (reader.has("block_sums") && p.blocks == 0)
    reader.fail("block_sums", "needs blocks, whose sums it chooses");
  read_windows(reader, deck->mean_field.eigensolver.method, p);
  p.closure = static_cast<Closure>(reader.choice("closure", 0, {"auto", "sigma", "none"}));
  if (p.blocks > 0 && p.vectors % p.blocks != 0)
    reader.fail("blocks", "= " + std::to_string(p.blocks) + " does not divide vectors = " +
                              std::to_string(p.vectors) + "; blocks must be of equal size");
  for (const char* key : {"sigma_factor", "protected_ry", "ratio", "seed", "blocks", "closure"})
    if (!p.wanted() && reader.has(key))
      reader.fail(key, "has no effect without vectors, the random vectors of each window");
  reader.finish();
}

void check_pseudobands(const Deck& deck, const std::string& where) {
  if (!deck.pseudobands.wanted()) return;
  const auto refuse_if = [&](bool condition, const char* key, const char* why) {
    if (condition)
      throw InvalidInput(where + ": pseudobands.vectors is not allowed with " + key + ", " + why);
  };
  refuse_if(deck.epsilon.bands > 0, "epsilon.bands",
            "since pseudobands stand for all bands of the mean field; leave it out");
  refuse_if(deck.sigma.bands > 0, "sigma.bands",
            "since pseudobands stand for all bands of the mean field; leave it out");
  refuse_if(uses_frequencies(deck.sigma.method) && !deck.stop_after_epsilon, "this sigma.method",
            "which needs resonances of single states; use \"hl-gpp\", \"gn-gpp\" or \"cohsex\"");
  refuse_if(deck.epsilon.frequencies == FrequencySet::kReal ||
                deck.epsilon.frequencies == FrequencySet::kBoth,
            "this epsilon.frequencies", "whose real axis meets resonances of single states");
  refuse_if(deck.sigma.outer.kind != OuterLoop::kNone, "sigma.outer_loop",
            "which changes the energies of single states");
  refuse_if(deck.sigma.wants_matrix(), "sigma.full_matrix", "which is not tested with them");
  refuse_if(!deck.sigma.path.corners.empty(), "sigma.band_path",
            "which compares single states with those along the path");
  refuse_if(!deck.mean_field.wfn_outer.empty(), "meanfield.wfn_outer",
            "whose states would need vectors of their own");
  refuse_if(deck.pseudobands.blocks > 0 && deck.stop_after_epsilon, "stop_after = \"epsilon\"",
            "which has no energies; leave out pseudobands.blocks");
  refuse_if(deck.study.wanted, "--converge", "whose changes the noise would hide");
}

}  // namespace quasi::gw
