#include "workers/gw/input/deck_sigma.hpp"

namespace quasi::gw {
namespace {

/// Reads the keys of the full matrix, the Dyson equation and the outer loops.
void read_matrix(TableReader& reader, SigmaRequest& s) {
  const bool poles = uses_plasmon_poles(s.method);
  s.outer.kind = static_cast<OuterLoop>(
      reader.choice("outer_loop", 0, {"none", "evgw0", "evgw", "qsgw0", "qsgw"}));
  s.outer.tolerance_ev = reader.number("outer_tolerance_ev", s.outer.tolerance_ev, 1e-9, 1.0);
  s.outer.max_iterations = reader.integer("outer_iterations", s.outer.max_iterations, 1, 1000);
  s.outer.start_shift_ev = reader.number("outer_start_shift_ev", 0.0, -100.0, 100.0);
  if (s.outer.kind == OuterLoop::kNone)
    for (const char* key : {"outer_tolerance_ev", "outer_iterations", "outer_start_shift_ev"})
      if (reader.has(key)) reader.fail(key, "has no effect without sigma.outer_loop");
  s.full_matrix = reader.boolean("full_matrix", s.solution == Solution::kDyson);
  if (s.solution == Solution::kDyson && !s.full_matrix)
    reader.fail("full_matrix", "= false leaves sigma.solution = \"dyson\" without its matrix");
  const bool wanted = s.wants_matrix();
  using Kernel = OffDiagonalOptions;
  auto& k = s.matrix.kernel;
  k.method = static_cast<Kernel::Method>(
      reader.choice("matrix_method", 0, {"two-products", "exponential", "rational"}));
  k.products = static_cast<Kernel::Products>(
      reader.choice("matrix_products", 0, {"native", "three-multiplications", "emulated"}));
  k.tolerance_relative = reader.number("matrix_tolerance", 1e-7, 1e-14, 1e-2);
  s.matrix.step_ry = reader.number("matrix_step_ev", 0.5, 1e-3, 10.0) / kRydberg_ev;
  s.matrix.margin_ry = reader.number("matrix_margin_ev", 4.0, 0.1, 100.0) / kRydberg_ev;
  if (!wanted)
    for (const char* key : {"matrix_method", "matrix_products", "matrix_tolerance",
                            "matrix_step_ev", "matrix_margin_ev"})
      if (reader.has(key)) reader.fail(key, "has no effect without sigma.full_matrix = true");
  if (!wanted) return;
  const char* key = s.full_matrix ? "full_matrix" : "outer_loop";
  if (!poles && s.method != SigmaMethod::kCohsex && s.method != SigmaMethod::kContour)
    reader.fail(key,
                "needs the matrix Σ_lm, which exists for plasmon poles, contour and cohsex; set "
                "sigma.method");
  if (!poles)
    for (const char* of_poles : {"matrix_method", "matrix_products", "matrix_tolerance"})
      if (reader.has(of_poles))
        reader.fail(of_poles, "belongs to the matrix of plasmon poles; this sigma.method has none");
  if (s.invalid == InvalidMode::kImaginary)
    reader.fail(
        "invalid_modes",
        "= \"imaginary\" has no full-matrix form; choose \"static\", \"two-rydberg\" or \"skip\"");
  if (s.remainder || s.exact_ch)
    reader.fail(s.remainder ? "static_remainder" : "exact_ch",
                "has no full-matrix form; leave it out");
}

void read_states(TableReader& reader, SigmaRequest& s) {
  s.bands = reader.integer("bands", 0, 1, kMaxBandCount);
  s.bare_cutoff_ry = reader.number("bare_cutoff_ry", 0.0, 0.1, 10000.0);
  s.screened_cutoff_ry = reader.number("screened_cutoff_ry", 0.0, 0.1, 10000.0);
  s.band_min = reader.integer("band_min", 1, 1, kMaxBandCount);
  s.band_max = reader.integer("band_max", 0, 1, kMaxBandCount);
  for (const auto& k : reader.vectors("kpoints", 3).value_or(std::vector<std::vector<double>>{}))
    s.kpoints.push_back({k[0], k[1], k[2]});
}

void read_path(TableReader& reader, const MeanFieldOptions& mean_field, SigmaRequest& s) {
  for (const auto& k : reader.vectors("band_path", 3).value_or(std::vector<std::vector<double>>{}))
    s.path.corners.push_back({k[0], k[1], k[2]});
  s.path.points_per_segment =
      reader.integer("band_path_points", s.path.points_per_segment, 2, 10000);
  s.path_order =
      static_cast<BandOrder>(reader.choice("band_order", 0, {"auto", "character", "energy"}));
  if (s.path.corners.size() == 1) reader.fail("band_path", "must hold at least two corners");
  for (const char* key : {"band_path_points", "band_order"})
    if (s.path.corners.empty() && reader.has(key))
      reader.fail(key, "has no effect without sigma.band_path");
  if (s.path_order == BandOrder::kCharacter && !mean_field.empirical && mean_field.vkb.empty())
    reader.fail("band_order",
                "= \"character\" needs the states between the k-points: give meanfield.vsc and "
                "meanfield.vkb, which make their Hamiltonian, or choose \"energy\"");
  if (!s.path.corners.empty() && !s.kpoints.empty())
    reader.fail("band_path", "needs Σ at every irreducible k-point; leave out sigma.kpoints");
}

void read_subspace(TableReader& reader, bool compatible, SigmaRequest& s) {
  s.subspace.tolerance = reader.number("subspace_tolerance", 0.0, 1e-12, 1.0);
  s.subspace.vectors = reader.integer("subspace_vectors", 0, 1, kMaxBandCount);
  for (const char* key : {"subspace_tolerance", "subspace_vectors"}) {
    if (!reader.has(key)) continue;
    if (!uses_frequencies(s.method))
      reader.fail(key,
                  "belongs to the full-frequency methods \"contour\", \"real-axis\" and "
                  "\"imaginary-axis\"");
    if (compatible)
      reader.fail(key, "needs a Hermitian W, which compat = \"bgw\" and its wing rule do not give");
  }
  if (reader.has("subspace_tolerance") && reader.has("subspace_vectors"))
    reader.fail("subspace_vectors", "and subspace_tolerance exclude each other; give one of them");
}

/// Reads the keys of the slope of Σ and of the solution.
void read_solution(TableReader& reader, bool compatible, SigmaRequest& s) {
  const Derivative fallback = compatible                     ? Derivative::kForward
                              : uses_plasmon_poles(s.method) ? Derivative::kAnalytic
                                                             : Derivative::kCentral;
  s.derivative = static_cast<Derivative>(reader.choice(
      "derivative", static_cast<std::size_t>(fallback), {"analytic", "central", "forward"}));
  if (s.derivative == Derivative::kAnalytic && uses_frequencies(s.method))
    reader.fail("derivative",
                "= \"analytic\" belongs to the plasmon-pole methods; ε⁻¹ on a grid of frequencies "
                "has no derivative at its points");
  s.derivative_step_ev = reader.number(
      "derivative_step_ev", s.derivative == Derivative::kForward ? 1.0 : 0.02, 1e-4, 10.0);
  s.solution =
      static_cast<Solution>(reader.choice("solution", 0, {"linearised", "graphical", "dyson"}));
}

/// Reads the keys of a spectrum on energies that all states share.
void read_shared_energies(TableReader& reader, const SigmaRequest& s, SpectrumGrid& g) {
  g.origin =
      static_cast<SpectrumOrigin>(reader.choice("spectrum_origin", 0, {"state", "zero", "midgap"}));
  g.first_ev = reader.number("spectrum_first_ev", 0.0, -1e4, 1e4);
  g.points = reader.integer("spectrum_points", 0, 4, 100000);
  if (g.origin == SpectrumOrigin::kState) {
    for (const char* key : {"spectrum_first_ev", "spectrum_points"})
      if (reader.has(key)) reader.fail(key, "belongs to spectrum_origin = \"zero\" or \"midgap\"");
    return;
  }
  if (g.points == 0) reader.fail("spectrum_points", "is missing: the number of energies");
  if (reader.has("spectrum_window_ev"))
    reader.fail("spectrum_window_ev", "belongs to spectrum_origin = \"state\"");
  if (s.outer.kind != OuterLoop::kNone)
    reader.fail("spectrum_origin", "other than \"state\" is not allowed with outer_loop");
}

void read_spectrum(TableReader& reader, SigmaRequest& s) {
  SpectrumGrid& g = s.spectrum;
  read_shared_energies(reader, s, g);
  const bool around_state = g.origin == SpectrumOrigin::kState;
  g.window_ev =
      reader.number("spectrum_window_ev",
                    around_state && s.solution == Solution::kGraphical ? 5.0 : 0.0, 0.0, 200.0);
  g.step_ev = reader.number("spectrum_step_ev", g.step_ev, 1e-3, 5.0);
  g.broadening_ev = reader.number("spectrum_broadening_ev", g.broadening_ev, 0.0, 10.0);
  if (s.solution == Solution::kGraphical && !g.wanted())
    reader.fail("spectrum_window_ev", "= 0 leaves the graphical solution without a grid");
  if (around_state && g.wanted() && g.window_ev < 2.0 * g.step_ev)
    reader.fail("spectrum_step_ev", "must be at most half of sigma.spectrum_window_ev");
  if (g.wanted() && s.method == SigmaMethod::kCohsex)
    reader.fail("spectrum_window_ev", "has no meaning for the static method \"cohsex\"");
}

}  // namespace

void read_sigma(TableReader reader, Deck* deck) {
  SigmaRequest& s = deck->sigma;
  s.method = static_cast<SigmaMethod>(reader.choice(
      "method", 1, {"cohsex", "hl-gpp", "gn-gpp", "contour", "real-axis", "imaginary-axis"}));
  read_states(reader, s);
  read_path(reader, deck->mean_field, s);
  s.invalid = static_cast<InvalidMode>(
      reader.choice("invalid_modes", 3, {"skip", "imaginary", "two-rydberg", "static"}));
  s.imaginary_rule = static_cast<ImaginaryRule>(
      reader.choice("imaginary_rule", deck->compatible ? 0 : 1, {"constant", "quadratic"}));
  read_subspace(reader, deck->compatible, s);
  s.remainder = reader.boolean("static_remainder", false);
  s.exact_ch = reader.boolean("exact_ch", false);
  read_solution(reader, deck->compatible, s);
  read_matrix(reader, s);
  if (s.path_order == BandOrder::kCharacter && replaces_states(s.outer.kind))
    reader.fail("band_order",
                "= \"character\" compares states of the mean field, which this sigma.outer_loop "
                "replaces; choose \"energy\"");
  read_spectrum(reader, s);
  s.imaginary_frequency_ev =
      reader.number("imaginary_frequency_ev", s.imaginary_frequency_ev, 0.1, 1000.0);
  s.rules.half_width_ry = reader.number("pole_half_width_ev", 0.5, 0.0, 10.0) / kRydberg_ev;
  s.rules.screened_exchange_cut = reader.number("sx_cut", 4.0, 0.0, 1e6);
  if (s.exact_ch && s.method != SigmaMethod::kCohsex)
    reader.fail("exact_ch", "belongs to method = \"cohsex\"; with poles use static_remainder");
  if (s.remainder && !uses_plasmon_poles(s.method))
    reader.fail("static_remainder",
                "belongs to the plasmon-pole methods; with cohsex use exact_ch");
  reader.finish();
}

}  // namespace quasi::gw
