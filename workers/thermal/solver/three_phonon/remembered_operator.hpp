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

/// `apply` through a checkpoint: a field that it was applied to in an earlier attempt of the job
/// gives what it gave then, to the bit, at once. Whatever iterates with it is so replayed up to
/// where it was ended. An empty result, of an application that was broken off, is not kept.
/// @param checkpoint  of rank 0, from which the others hear what it holds
/// @param digest      of everything but the field that the result depends on
/// @param ranks       that call the result together
FieldOperator remembered(Checkpoint& checkpoint, const std::string& name, std::uint64_t digest,
                         FieldOperator apply, Ranks& ranks = one_rank());

}  // namespace quasi::thermal
