#pragma once

#include <filesystem>
#include <vector>

namespace quasi {

/// Limits the files that this process reads for its job to the files below `roots`.
///
/// An attempt under a worker may run another user's deck. A path in such a deck, absolute or with
/// "..", must not read other files of the machine. Without this call all paths are allowed, as for
/// a run by hand. Call it once, before the deck is read.
void confine_inputs(const std::vector<std::filesystem::path>& roots);

/// Returns `path` if a deck may read it: a plain file below one of the roots after all links are
/// resolved. A path without a file is returned too, so that its reader reports the failure. @throws
/// InvalidInput naming the path.
const std::filesystem::path& input_file(const std::filesystem::path& path);

}  // namespace quasi
