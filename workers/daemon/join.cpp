#include "workers/daemon/join.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>

#include "proto/wire/access/login.hpp"
#include "workers/daemon/error.hpp"
#include "workers/daemon/ports/posix_file_system.hpp"
#include "workers/daemon/worker_config.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;

/// True if a line of the configuration sets one of the keys that this join writes.
bool is_replaced(const std::string& line, const wire::Login& login) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string::npos) return false;
  const std::string key = line.substr(first, line.find_first_of(" \t=", first) - first);
  return key == "server" || key == "token_file" || key == "ca" ||
         (key == "pool" && !login.pool.empty());
}

std::string other_lines(const fs::path& file, const wire::Login& login) {
  std::ifstream in(file);
  std::string text;
  for (std::string line; std::getline(in, line);)
    if (!is_replaced(line, login)) text += line + "\n";
  return text;
}

}  // namespace

void join_server(const std::string& code_text, const std::string& file, std::ostream& out) {
  const fs::path path = fs::absolute(file);
  const fs::path stem = path.parent_path() / path.stem();
  const std::string token_file = stem.string() + ".token";
  const std::string ca_file = stem.string() + ".ca.pem";
  if (::access(path.parent_path().c_str(), W_OK) != 0)
    throw ConfigError("cannot write into " + path.parent_path().string() +
                      "; run this command as the user who owns it, or name another file by "
                      "--config; the code is not used up");
  try {
    const wire::Login login = wire::redeem(wire::read_join_code(code_text));
    if (login.role != "worker")
      throw ConfigError("this code is for " + login.principal + ", who is no worker but " +
                        login.role + "; ask for a code of a worker: quasi admin code NAME");
    PosixFileSystem files;
    replace_file_durably(files, ca_file, login.ca_pem);
    replace_file_durably(files, token_file, login.token + "\n");
    replace_file_durably(files, path,
                         "server = \"" + login.address + "\"\ntoken_file = \"" + token_file +
                             "\"\nca = \"" + ca_file + "\"\n" +
                             (login.pool.empty() ? "" : "pool = \"" + login.pool + "\"\n") +
                             other_lines(path, login));
    out << "this machine is the worker " << login.principal << " of " << login.address
        << "\nstart it: quasi-worker --config " << path.string() << "\n";
  } catch (const wire::LoginError& error) {
    throw ConfigError(std::string(error.what()) + "; " + error.remedy);
  }
}

}  // namespace quasi
