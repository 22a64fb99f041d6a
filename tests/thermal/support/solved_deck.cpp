#include "tests/thermal/support/solved_deck.hpp"

namespace quasi::thermal::test {

std::vector<Setting> settings_of(const std::vector<std::string>& texts) {
  std::vector<Setting> settings;
  for (const auto& text : texts) settings.push_back(parse_setting(text));
  return settings;
}

std::unique_ptr<SolvedDeck> solve_deck(const std::filesystem::path& directory,
                                       const std::vector<std::string>& settings,
                                       const Device& device,
                                       const std::function<void(SolvedDeck&)>& adjust) {
  return solve_model(read_deck(directory, settings_of(settings)), device, adjust);
}

std::unique_ptr<SolvedDeck> solve_model(Deck deck, const Device& device,
                                        const std::function<void(SolvedDeck&)>& adjust) {
  auto solved = std::make_unique<SolvedDeck>();
  SilentProgress silent;
  solved->deck = std::move(deck);
  solved->run = start_run(solved->deck, solved->deck.control.harmonic_options(), silent);
  if (adjust) adjust(*solved);
  solved->problem = make_three_phonon_problem(solved->deck.crystal, solved->deck.third_order,
                                              solved->deck.symmetry, solved->run.modes,
                                              solved->deck.control.three_phonon_options());
  solved->kernels = make_three_phonon_kernels(device);
  const Transport transport = solved->transport();
  add_scattering(transport, solved->deck.control.rate_options(), *solved->kernels, solved->problem,
                 solved->run, {silent});
  add_conductivity({transport, solved->deck.third_order, *solved->kernels, FurtherScattering{}},
                   solved->run, silent);
  return solved;
}

double integral_over_omega(const Cumulative& spectrum) {
  double integral = 0.0;
  for (std::size_t i = 1; i < spectrum.abscissa.size(); ++i)
    integral +=
        (spectrum.abscissa[i] - spectrum.abscissa[i - 1]) * spectrum.kappa_w_per_mk[i][0][0];
  return integral;
}

}  // namespace quasi::thermal::test
