#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/ranks/ranks.hpp"

namespace quasi::thermal {

/// A linear operator on fields.
using FieldOperator = std::function<std::vector<double>(const std::vector<double>&)>;

/// Wraps `apply` so that its results are kept in a checkpoint. A field to which it was applied in
/// an earlier attempt of the job gives the stored result, with the same bits. An iteration with the
/// operator is thus replayed up to the step at which it ended. An empty result, that of an
/// application which was broken off, is not kept.
/// @param checkpoint  of rank 0, which sends its contents to the other ranks
/// @param digest      of everything but the field on which the result depends
/// @param ranks       call the result at the same time
FieldOperator remembered(Checkpoint& checkpoint, const std::string& name, std::uint64_t digest,
                         FieldOperator apply, Ranks& ranks = one_rank());

}  // namespace quasi::thermal
