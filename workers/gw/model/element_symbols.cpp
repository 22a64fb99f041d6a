#include "workers/gw/model/element_symbols.hpp"

#include <algorithm>
#include <iterator>

namespace quasi::gw {
namespace {

constexpr std::string_view kSymbols[] = {
    "H",  "He", "Li", "Be", "B",  "C",  "N",  "O",  "F",  "Ne", "Na", "Mg", "Al", "Si", "P",
    "S",  "Cl", "Ar", "K",  "Ca", "Sc", "Ti", "V",  "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn",
    "Ga", "Ge", "As", "Se", "Br", "Kr", "Rb", "Sr", "Y",  "Zr", "Nb", "Mo", "Tc", "Ru", "Rh",
    "Pd", "Ag", "Cd", "In", "Sn", "Sb", "Te", "I",  "Xe", "Cs", "Ba", "La", "Ce", "Pr", "Nd",
    "Pm", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu", "Hf", "Ta", "W",  "Re",
    "Os", "Ir", "Pt", "Au", "Hg", "Tl", "Pb", "Bi", "Po", "At", "Rn", "Fr", "Ra", "Ac", "Th",
    "Pa", "U",  "Np", "Pu", "Am", "Cm", "Bk", "Cf", "Es", "Fm", "Md", "No", "Lr", "Rf", "Db",
    "Sg", "Bh", "Hs", "Mt", "Ds", "Rg", "Cn", "Nh", "Fl", "Mc", "Lv", "Ts", "Og"};

}  // namespace

int atomic_number_of(std::string_view symbol) {
  const auto* const found = std::find(std::begin(kSymbols), std::end(kSymbols), symbol);
  return found == std::end(kSymbols) ? 0 : static_cast<int>(found - std::begin(kSymbols)) + 1;
}

std::string element_symbol(int atomic_number) {
  if (atomic_number < 1 || atomic_number > static_cast<int>(std::size(kSymbols)))
    return "element " + std::to_string(atomic_number);
  return std::string(kSymbols[atomic_number - 1]);
}

}  // namespace quasi::gw
