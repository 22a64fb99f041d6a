#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/figures/exposition.hpp"
#include "server/store/figures/figure_store.hpp"
#include "server/web/fleet_board.hpp"
#include "server/web/web_site.hpp"

/// The families of `GET /metrics`, by the part of the server that they describe.
/// docs/reference/operations.md has a row for each.
namespace quasi::server {

void write_queue(Exposition& out, const std::vector<UnfinishedJobs>& unfinished,
                 std::int64_t now_ms);
/// @param database_path  file of the database; its write-ahead log lies beside it
void write_writer(Exposition& out, const WriterFigures& writer, const std::string& database_path);
void write_files(Exposition& out, const FileFigures& files, const ServerState& state);
void write_fleet(Exposition& out, const FleetBoard::View& fleet);

}  // namespace quasi::server
