#pragma once

#include <filesystem>
#include <string>

namespace quasi::gw {

/// True if the directory holds epsilon.inp or sigma.inp.
bool has_field_deck(const std::filesystem::path& directory);

/// epsilon.inp and sigma.inp of the field's programs, as a deck of ours (TOML text), so that they
/// pass the same checks. Files are those the programs expect beside them: WFN (WFN_inner), WFNq,
/// RHO, vxc.dat or VXC, or the .h5 twins. With sigma.inp alone ε⁻¹ comes from eps0mat.h5 and
/// epsmat.h5; with epsilon.inp alone the job ends with these files. The rules of the field's
/// program apply (compat = "bgw").
///
/// @throws InvalidInput naming file and line for every keyword whose effect is not supported;
/// keywords that
///         only steer how the field's programs run (communication, verbosity) are accepted.
std::string translate_field_deck(const std::filesystem::path& directory);

}  // namespace quasi::gw
