#pragma once

#include <filesystem>
#include <vector>

namespace quasi {

/// Bounds the files that this process reads for its job to those below `roots`.
///
/// An attempt under a worker runs a deck of someone else: a path in it, absolute or with "..", must
/// not read another file of the machine. Without a call every place is allowed, as for a run by
/// hand. Call it once, before the deck is read.
void confine_inputs(const std::vector<std::filesystem::path>& roots);

/// Returns `path` if a deck may read it: below one of the roots after all links are resolved, and a
/// plain file. A path where nothing lies is returned too, so that its reader words the failure.
/// @throws InvalidInput naming the path.
const std::filesystem::path& input_file(const std::filesystem::path& path);

}  // namespace quasi
