#pragma once

#include <google/protobuf/repeated_field.h>

#include "server/access/principal.hpp"

namespace quasi::server {

/// Returns the scopes of a new token or code; without any in the request, every scope.
/// @param numbers  of quasi.v1.TokenScope, known ones
/// @throws Refused if they narrow the token of a worker
TokenScopes granted_scopes(const google::protobuf::RepeatedField<int>& numbers,
                           const Principal& owner);

}  // namespace quasi::server
