#pragma once

#include <filesystem>
#include <string>
#include <vector>

// Begin here. A cage confines a process that works on somebody else's deck. It has three walls:
// network.cpp takes the network away, files.cpp the files (Landlock), system_calls.cpp the calls of
// the kernel that no calculation needs (seccomp). quasi-cage (main.cpp) builds them and becomes the
// engine; the engine itself adds deny_new_processes() once it has started.

namespace quasi {

/// What a caged process may still reach. Paths that do not exist are passed over.
struct CageRules {
  std::vector<std::filesystem::path> readable;  ///< trees and files to read and to execute
  std::vector<std::filesystem::path> writable;  ///< trees to read, write, create and remove in
  std::vector<std::filesystem::path> devices;   ///< device files to read, write and control
  bool processes = false;  ///< An MPI launcher starts ranks, which find each other by sockets.
  bool network = false;    ///< The network stays as it is.
};

/// One wall of a cage.
struct CageWall {
  bool stands = false;
  std::string detail;  ///< how it was built, or why the system did not permit it
};

/// The walls around this process.
struct Cage {
  CageWall network;       ///< no address can be reached
  CageWall files;         ///< only the files of the rules can be opened
  CageWall system_calls;  ///< no tracing, mounting, namespaces, keys or kernel modules

  bool is_whole() const { return network.stands && files.stands && system_calls.stands; }
  /// One line for a log and for people, e.g. "network closed (no sockets), files closed (Landlock
  /// 7), system calls filtered".
  std::string summary() const;
};

/// The libraries, devices and kernel files that every engine needs on this machine, and the
/// folders of LD_LIBRARY_PATH. The engine's own folder and the attempt's are the caller's to add.
CageRules system_rules();

/// Confines this process and all that it starts, for good. It must have one thread: Landlock holds
/// for the calling thread and its descendants only (landlock(7)).
/// @return the walls that the system permitted; the caller decides whether they suffice.
Cage enter_cage(const CageRules& rules);

/// From now on no thread of this process starts a program or a process or opens a socket; threads
/// may still be started. A call that is refused fails with EPERM.
CageWall deny_new_processes();

namespace cage {

/// Each builds one wall around the calling process.
CageWall close_network(const CageRules& rules);
CageWall close_files(const CageRules& rules);
CageWall filter_system_calls(const CageRules& rules);

}  // namespace cage
}  // namespace quasi
