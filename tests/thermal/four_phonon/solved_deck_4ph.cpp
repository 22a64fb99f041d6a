#include "tests/thermal/four_phonon/solved_deck_4ph.hpp"

namespace quasi::thermal::test {

std::unique_ptr<SolvedDeck4ph> solve_deck_4ph(const std::filesystem::path& directory,
                                              const std::vector<std::string>& settings,
                                              const std::vector<Device>& devices,
                                              const std::function<void(SolvedDeck&)>& adjust) {
  std::vector<std::string> all{"four_phonon=T"};
  all.insert(all.end(), settings.begin(), settings.end());
  return solve_model_4ph(read_deck(directory, settings_of(all)), devices, adjust);
}

std::unique_ptr<SolvedDeck4ph> solve_model_4ph(Deck model, const std::vector<Device>& devices,
                                               const std::function<void(SolvedDeck&)>& adjust) {
  auto solved = std::make_unique<SolvedDeck4ph>();
  solved->deck = std::move(model);
  solved->run = start_run(solved->deck, solved->deck.control.harmonic_options(), solved->silent);
  if (adjust) adjust(*solved);
  solved->problem = make_three_phonon_problem(solved->deck.crystal, solved->deck.third_order,
                                              solved->deck.symmetry, solved->run.modes,
                                              solved->deck.control.three_phonon_options());
  solved->kernels = make_three_phonon_kernels(devices.front());
  const Deck& deck = solved->deck;
  const Transport transport = solved->transport();
  add_scattering(transport, deck.control.rate_options(), *solved->kernels, solved->problem,
                 solved->run, {solved->silent});
  solved->four_phonon =
      run_four_phonon(transport, *deck.fourth_order, deck.control.four_phonon_options(),
                      {.devices = devices}, solved->run, solved->silent);
  add_conductivity({transport, deck.third_order, *solved->kernels, solved->four_phonon->further},
                   solved->run, solved->silent);
  return solved;
}

}  // namespace quasi::thermal::test
