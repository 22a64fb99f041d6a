#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workers/cage/namespaces.hpp"

// Begin here: a cage confines a process that works on another user's deck. It has four walls.
// namespaces.cpp and network.cpp close the network, mounts.cpp hides files, files.cpp closes them
// (Landlock), and system_calls.cpp closes the system calls that no calculation needs (seccomp).
// quasi-cage (main.cpp) builds them and becomes the engine. The engine adds deny_new_processes()
// after its start.

namespace quasi {

/// Files and rights that a caged process keeps. Paths that do not exist are ignored.
struct CageRules {
  std::vector<std::filesystem::path> readable;  ///< trees and files to read and to execute
  std::vector<std::filesystem::path> writable;  ///< trees to read, write, create and remove in
  std::vector<std::filesystem::path> devices;   ///< device files to read, write and control
  bool processes = false;  ///< MPI launchers start ranks, which connect through sockets
  bool network = false;    ///< leaves the network as it is
};

/// One wall of a cage.
struct CageWall {
  bool stands = false;
  std::string detail;  ///< description of the wall, or the reason why the system did not permit it
};

/// The walls around this process.
struct Cage {
  CageWall network;       ///< no address can be reached
  CageWall mounts;        ///< files outside the rules cannot be seen either
  CageWall files;         ///< only the files of the rules can be opened
  CageWall system_calls;  ///< no tracing, mounting, namespaces, keys or kernel modules

  /// The whole cage has all walls but `mounts`. That wall hides names and sizes of files, and many
  /// systems forbid it to an ordinary user.
  bool is_whole() const { return network.stands && files.stands && system_calls.stands; }
  /// Returns one line for a log, e.g. "network closed (empty namespace), mounts closed (a root of
  /// its own with 31 mounts), files closed (Landlock 7), system calls closed (filtered)".
  std::string summary() const;
};

/// Returns the libraries, devices and kernel files that every engine needs on this machine, and the
/// folders of LD_LIBRARY_PATH. The caller adds the folders of the engine and of the attempt.
CageRules system_rules();

/// Confines this process and all its children permanently. The process must have one thread,
/// because Landlock holds for the calling thread and its descendants only (landlock(7)). @return
/// the walls that the system permitted; the caller decides whether they suffice.
Cage enter_cage(const CageRules& rules);

/// Forbids all threads of this process to start programs or processes and to connect. Threads
/// may still be started. A refused call fails with EPERM.
CageWall deny_new_processes();

namespace cage {

/// Each of these functions builds one wall around the calling process.
CageWall close_network(const CageRules& rules, const Namespaces& namespaces);
CageWall hide_files(const CageRules& rules, const Namespaces& namespaces);
CageWall close_files(const CageRules& rules);
CageWall filter_system_calls(const CageRules& rules);

}  // namespace cage
}  // namespace quasi
