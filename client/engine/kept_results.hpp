#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "client/views/console.hpp"
#include "quasi/v1/job.pb.h"

namespace quasi::client {

/// The action of a job that runs on this machine. The files of its deck are hashed; a deck that
/// cannot be collected gives nullopt, and `console` says why.
///
/// @param spec  kind, settings and exports of the job; its inputs are added
struct LocalAction {
  std::string digest;  ///< wire::action_digest, which a server would compute too
  v1::JobSpec spec;
};
std::optional<LocalAction> local_action(Console& console, v1::JobSpec spec,
                                        const std::filesystem::path& deck);

/// The folder of `quasi run --store`: results by their action, as docs/reference/cache.md defines
/// it, and files by their digest, in the places of a server's data directory. A crash leaves a
/// result whole or absent, and several programs may use a folder at the same time.
class KeptResults {
 public:
  /// @throws Failure (kLocalFile) if the folder cannot be made
  explicit KeptResults(std::filesystem::path folder);

  /// Copies the files of an equal run of the same program version into `output`, and checks their
  /// digests. A result whose files are damaged is forgotten.
  /// @return the time of that run in milliseconds since 1970; nullopt without a result
  std::optional<std::int64_t> take(Console& console, const LocalAction& action,
                                   const std::filesystem::path& output) const;

  /// Keeps the files of a run that succeeded. @param names  relative to `output`
  void keep(const LocalAction& action, const std::filesystem::path& output,
            const std::set<std::filesystem::path>& names) const;

 private:
  std::filesystem::path entry_of(const LocalAction& action) const;
  std::filesystem::path blob_of(const std::string& digest) const;

  std::filesystem::path folder_;
};

}  // namespace quasi::client
