#pragma once

#include <iosfwd>
#include <string>

namespace quasi {

/// Exchanges a one-time code for the token of a worker and writes the configuration `file`: its
/// keys `server`, `token_file` and `ca`, and `pool` if the worker is bound to one. Other lines
/// stay. The token and the CA lie beside it, with mode 0600.
/// @param code  "-" or "": read from standard input
/// @param out   gets the next step
/// @throws ConfigError naming what went wrong and the remedy.
void join_server(const std::string& code, const std::string& file, std::ostream& out);

}  // namespace quasi
