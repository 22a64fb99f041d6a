#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace quasi::test {

/// The surroundings of a caged process and the objects that it must not reach. The folder holds
/// `in/deck`, `out/`, `in/link` (a symbolic link to the foreign file) and, beside the attempt,
/// `foreign/secret` and `foreign/socket`, on which the test listens.
struct Prison {
  std::filesystem::path attempt;  ///< readable: in/, writable: out/
  std::filesystem::path foreign;  ///< files outside the attempt, of the same user
  int tcp_port = 0;               ///< on 127.0.0.1; the test listens
  int victim = 0;                 ///< a process of the same user
};

/// An action that a hostile engine might try.
struct Escape {
  std::string name;
  std::function<bool(const Prison&)> reaches;  ///< true if the attempt succeeded
  bool open_elsewhere = false;  ///< An ordinary process of the same user succeeds, harmlessly.
  bool hidden = false;          ///< Of the walls of the cage, a root of its own alone prevents it.
};

/// Attempts on files, sockets, other processes and the kernel; all must fail inside the cage. Those
/// that are `hidden` may succeed where the system permits no mount namespace.
std::vector<Escape> escapes();
/// Actions that a calculation needs; all must succeed inside the cage.
std::vector<Escape> needs();

}  // namespace quasi::test
