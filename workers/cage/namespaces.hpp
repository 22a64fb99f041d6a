#pragma once

#include <string>

namespace quasi::cage {

/// Names the namespaces that this process has entered.
struct Namespaces {
  bool network = false;  ///< empty: without interfaces
  bool mounts = false;   ///< a copy of the mounts of the machine, which this process may change
  std::string refusal;   ///< the reason of the system for each that is false
};

/// Enters an empty network namespace, unless `network` is true, and a mount namespace.
Namespaces enter_namespaces(bool network);

}  // namespace quasi::cage
