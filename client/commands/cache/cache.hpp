#pragma once

#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

struct CacheOptions {
  std::vector<std::string> words;  ///< explain, and two jobs
};

/// `quasi cache explain A B` prints in what two jobs differ for the result cache.
ExitStatus cache(Session& session, const CacheOptions& options);

}  // namespace quasi::client
