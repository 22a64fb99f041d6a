#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/session/session.hpp"

namespace quasi::client {

/// True for a word that may be the id of a set of jobs or its beginning: "s_" and at least 6
/// characters.
bool could_be_set(const std::string& word);

/// The set that a word names; empty if the server knows none.
std::optional<v1::JobSet> find_set(Session& session, const std::string& word);

/// The set that is the only word, or the newest submission if that is `last`.
std::optional<v1::JobSet> only_set(Session& session, const std::vector<std::string>& words);

/// The jobs of a set in the order of the sweep, without attempts and results.
std::vector<v1::Job> jobs_of_set(Session& session, const std::string& set_id);

/// The value of a key in a job: that of its last setting; "" without one.
std::string value_in(const v1::Job& job, const std::string& key);

/// The keys of the axes of a set, in their order.
std::vector<std::string> keys_of(const v1::JobSet& set);

}  // namespace quasi::client
