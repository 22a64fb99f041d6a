#include "tests/thermal/four_phonon/solved_deck_4ph.hpp"

namespace quasi::thermal::test {

std::unique_ptr<SolvedDeck4ph> solve_deck_4ph(const std::filesystem::path& directory,
                                              const std::vector<std::string>& settings,
                                              const std::vector<Device>& devices,
                                              const std::function<void(SolvedDeck&)>& adjust) {
  auto solved = std::make_unique<SolvedDeck4ph>();
  std::vector<std::string> all{"four_phonon=T"};
  all.insert(all.end(), settings.begin(), settings.end());
  solved->deck = read_deck(directory, settings_of(all));
  solved->run = start_run(solved->deck, solved->silent);
  if (adjust) adjust(*solved);
  solved->problem = make_three_phonon_problem(solved->deck.crystal, solved->deck.third_order,
                                              solved->deck.symmetry, solved->run.modes,
                                              solved->deck.control.three_phonon_options());
  solved->kernels = make_three_phonon_kernels(devices.front());
  add_scattering(solved->deck, *solved->kernels, solved->problem, solved->run, solved->silent);
  solved->four_phonon =
      run_four_phonon(solved->deck, devices, one_rank(), solved->run, {}, solved->silent);
  add_conductivity(solved->deck, *solved->kernels, solved->four_phonon->further, solved->run,
                   solved->silent);
  return solved;
}

}  // namespace quasi::thermal::test
