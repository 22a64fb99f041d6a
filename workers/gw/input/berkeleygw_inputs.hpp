#pragma once

#include <filesystem>
#include <string>

namespace quasi::gw {

/// Returns true if the directory holds epsilon.inp or sigma.inp.
bool has_berkeleygw_inputs(const std::filesystem::path& directory);

/// Translates epsilon.inp and sigma.inp of BerkeleyGW into a TOML deck with compat = "bgw", so that
/// both kinds of input pass the same checks.
///
/// The deck names the files that BerkeleyGW expects beside its inputs: WFN or WFN_inner, WFNq, RHO,
/// vxc.dat or VXC, or their .h5 twins. With sigma.inp alone ε⁻¹ comes from eps0mat.h5 and
/// epsmat.h5. With epsilon.inp alone the job ends with these files.
///
/// Keywords that only steer how BerkeleyGW runs (communication, verbosity) are accepted.
/// @throws InvalidInput with file and line for every other keyword that is not supported
std::string translate_berkeleygw_inputs(const std::filesystem::path& directory);

}  // namespace quasi::gw
