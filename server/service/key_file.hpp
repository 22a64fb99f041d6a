#pragma once

#include <string>

#include "server/store/file_system.hpp"

namespace quasi::server {

/// The key that seals the sessions of users, 32 random bytes in `ROOT/session.key`. It is made at
/// the first call and lies outside the database (I18). Without the file every session ends, and
/// users get new ones by themselves.
/// @throws FileError.
std::string session_key(FileSystem& files, const std::string& root);

}  // namespace quasi::server
