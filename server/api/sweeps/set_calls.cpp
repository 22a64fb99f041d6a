// Calls about the sets of jobs of sweeps.

#include <algorithm>

#include "proto/wire/limits.hpp"
#include "server/access/sealed.hpp"
#include "server/api/calls.hpp"
#include "server/api/job_service.hpp"
#include "server/api/sweeps/job_parts.hpp"

namespace quasi::server {
namespace {

constexpr char kPurpose[] = "job sets";

}  // namespace

grpc::ServerUnaryReactor* JobServiceApi::GetJobSet(grpc::CallbackServerContext* context,
                                                   const v1::GetJobSetRequest* request,
                                                   v1::GetJobSetResponse* response) {
  return read_call(services_, context, violations_of(*request), "GetJobSet",
                   [request, response](ReadStore& store, const Caller& caller) {
                     const auto view = store.find_set(scope_of(caller), request->job_set_id());
                     if (!view)
                       throw Refused(Refusal::kNotFound, wire::reason::kJobSet,
                                     "there is no job set " + request->job_set_id());
                     *response->mutable_job_set() = to_message(*view);
                   });
}

grpc::ServerUnaryReactor* JobServiceApi::ListJobSets(grpc::CallbackServerContext* context,
                                                     const v1::ListJobSetsRequest* request,
                                                     v1::ListJobSetsResponse* response) {
  return read_call(
      services_, context, violations_of(*request), "ListJobSets",
      [this, request, response](ReadStore& store, const Caller& caller) {
        RowId cursor = 0;
        if (!request->page_token().empty()) {
          const auto payload =
              open_token(services_.token_key, kPurpose, kPurpose, request->page_token());
          if (!payload)
            throw Refused(Refusal::kInvalidArgument, wire::reason::kPageTokenMismatch,
                          "page_token: was not given out for this query; begin at the first page");
          cursor = std::stoll(*payload);
        }
        const std::int32_t size =
            request->page_size() == 0
                ? static_cast<std::int32_t>(limits::kDefaultPageSize)
                : std::min(request->page_size(), static_cast<std::int32_t>(limits::kPageSize));
        const auto views = store.list_sets(scope_of(caller), cursor, size + 1);
        for (std::size_t i = 0; i < views.size(); ++i) {
          if (static_cast<std::int32_t>(i) == size) {
            response->set_next_page_token(seal_token(services_.token_key, kPurpose, kPurpose,
                                                     std::to_string(views[i - 1].row.id)));
            break;
          }
          *response->add_job_sets() = to_message(views[i]);
        }
      });
}

}  // namespace quasi::server
