#pragma once

namespace quasi::wire {

/// Lets this process end without a core dump from now on, because its memory holds tokens and keys
/// (I18). Programs that it starts inherit the limit and may raise it up to the hard limit.
void forbid_core_dumps();

}  // namespace quasi::wire
