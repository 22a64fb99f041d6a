#pragma once

#include <string>
#include <string_view>

namespace quasi::gw {

/// Returns the atomic number of an element such as "Si"; 0: there is no element of that symbol.
int atomic_number_of(std::string_view symbol);

/// Returns the symbol of an element; "element Z" without one.
std::string element_symbol(int atomic_number);

}  // namespace quasi::gw
