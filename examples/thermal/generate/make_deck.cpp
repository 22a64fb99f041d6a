#include <cstdio>
#include <cstring>
#include <exception>

#include "examples/thermal/generate/deck_writer.hpp"

// quasi-make-deck NAME DIRECTORY [--espresso] writes a model crystal's deck.
int main(int argc, char** argv) {
  const bool help =
      argc == 2 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0);
  const bool espresso = argc == 4 && std::strcmp(argv[3], "--espresso") == 0;
  if (argc != 3 && !espresso) {
    std::fputs(
        "usage: quasi-make-deck NAME DIRECTORY [--espresso]\n"
        "NAME: silicon-sw, germanium-sw, gaas-sw, wurtzite-sw, rocksalt, quartic-cubic, or a "
        "polytype of silicon with 8, 12 or 24 atoms: silicon-4h-sw, silicon-6h-sw, "
        "silicon-12h-sw\n",
        help ? stdout : stderr);
    return help ? 0 : 2;
  }
  try {
    using quasi::model::SecondOrder;
    quasi::model::write_deck(argv[1], argv[2],
                             espresso ? SecondOrder::kEspresso : SecondOrder::kSupercell);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "quasi-make-deck: %s\n", failure.what());
    return 1;
  }
}
